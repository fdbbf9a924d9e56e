"""The rule, and the score of what it chooses."""

import numpy as np
import pytest

from fsjax.auto.contest import rule

FOLDS = 4


def scores(**means: float) -> dict[tuple[str, int], np.ndarray]:
    """Scores by ``METHOD_SIZE``; the difference of any two of them has no spread."""
    spread = np.array([-1.0, 1.0, -1.0, 1.0]) * np.sqrt(3)
    return {
        (name.split("_")[0], int(name.split("_")[1])): mean + spread for name, mean in means.items()
    }


def test_the_fewest_columns_that_are_not_worse_win():
    table = scores(a_1=80.0, b_10=90.0)
    # Behind the best by 1 on average, with a standard error of 1.01 or of 0.97.
    table["c", 5] = table["b", 10] - (1.0 + 1.15 * np.array([-1.0, 1.0, -1.0, 1.0]))
    assert rule.choose(table, FOLDS)[:2] == ("c", 5)
    table["c", 5] = table["b", 10] - (1.0 + 1.1 * np.array([-1.0, 1.0, -1.0, 1.0]))
    choice = rule.choose(table, FOLDS)
    assert choice[:2] == ("b", 10) and choice.mean == pytest.approx(90.0)
    assert choice.error == pytest.approx(1.0)


def test_no_more_than_a_margin_is_given_up():
    table = scores(b_10=90.0)
    table["c", 5] = table["b", 10] - (3.0 + 8.0 * np.array([-1.0, 1.0, -1.0, 1.0]))
    assert rule.choose(table, FOLDS)[:2] == ("c", 5)
    assert rule.choose(table, FOLDS, margin=2.0)[:2] == ("b", 10)
    assert rule.choose(table, FOLDS, margin=3.5)[:2] == ("c", 5)
    # All folds agree on 0.4 points, which are nothing, or on 0.6.
    assert rule.choose(scores(a_1=89.6, b_10=90.0), FOLDS, margin=2.0)[:2] == ("a", 1)
    assert rule.choose(scores(a_1=89.4, b_10=90.0), FOLDS, margin=2.0)[:2] == ("b", 10)


def test_folds_that_are_hard_for_everybody_do_not_excuse_a_worse_method():
    # The spread over folds is 20, that of the difference 0: 1 point is worse.
    hard = np.array([-20.0, 20.0, -20.0, 20.0])
    table = {("a", 1): 80.0 + hard, ("b", 10): 81.0 + hard}
    assert rule.choose(table, FOLDS)[:2] == ("b", 10)


def test_of_equally_few_columns_those_win_that_do_best_with_a_few_more():
    table = scores(a_3=90.0, a_5=90.0, b_3=90.0, b_5=80.0)
    assert rule.choose(table, FOLDS)[:2] == ("a", 3)
    assert rule.choose(dict(reversed(table.items())), FOLDS)[:2] == ("a", 3)


def test_the_consensus_is_preferred_unless_another_is_better():
    table = scores(a_3=90.0, a_5=80.0)
    noise = np.array([-1.0, 1.0, -1.0, 1.0])
    table["consensus", 3] = table["a", 3] - (0.5 + noise)
    assert rule.choose(table, FOLDS)[:2] == ("consensus", 3)
    table["consensus", 3] = table["a", 3] - (0.5 + 0.1 * noise)
    assert rule.choose(table, FOLDS)[:2] == ("a", 3)


def test_methods_for_comparison_are_passed_over_and_all_columns_are_not():
    assert rule.choose(scores(random_2=95.0, a_5=89.5), FOLDS)[:2] == ("a", 5)
    assert rule.choose(scores(all_30=95.0, a_5=89.5), FOLDS)[:2] == ("all", 30)


def test_costs_take_the_place_of_numbers_of_columns():
    table = scores(a_2=90.0, b_3=90.0)
    assert rule.choose(table, FOLDS)[:2] == ("a", 2)
    costs = {("a", 2): np.full(FOLDS, 9.0), ("b", 3): np.array([9.0, 0.0, 0.0, 3.0])}
    choice = rule.choose(table, FOLDS, costs)
    assert choice[:2] == ("b", 3)
    # In each fold by the costs of the others, also of rounds beyond the first.
    assert set(rule.nested_choices(table, FOLDS, costs=costs).values()) == {("b", 3)}
    table["b", 3] = table["b", 3] - 0.5
    costs = {key: np.tile(values, 2) for key, values in costs.items()}
    assert rule.nested_scores(table, FOLDS, 2.0, costs).tolist() == table["b", 3].tolist()
    assert list(rule.enough(table, choice, FOLDS, 2.0, costs)) == ["b", "a"]


def test_a_method_that_ran_on_easy_folds_only_is_not_better_for_it():
    easy = np.array([50.0, 50.0, 90.0, 90.0])
    part = np.array([np.nan, np.nan, 89.0, 89.0])
    means = rule.means_on_common_folds({("a", 1): easy, ("b", 1): part})
    assert means["a", 1] == pytest.approx(70.0) and means["b", 1] == pytest.approx(69.0)


def test_more_rounds_of_folds_do_not_shrink_the_error():
    values = np.array([1.0, 2.0, 3.0, 4.0])
    error = rule.standard_error(np.tile(values, 5), 4)
    assert error == pytest.approx(np.tile(values, 5).std(ddof=1) / 2)
    assert rule.standard_error(np.array([1.0, np.nan]), 4) == 0.0


def test_the_score_of_choosing_does_not_look_at_its_fold():
    # Each method is good in one fold only: who wins elsewhere is bad here.
    table = {("a", 1): np.array([9.0, 0.0, 0.0, 0.0]), ("b", 1): np.array([0.0, 9.0, 0.0, 0.0])}
    honest = rule.nested_scores(table, FOLDS)
    assert honest[0] == 0.0 and honest[1] == 0.0
    # The rows of later rounds decided which methods take part in them.
    rounds = {key: np.concatenate([values, values + 9.0]) for key, values in table.items()}
    np.testing.assert_array_equal(rule.nested_scores(rounds, FOLDS), honest)


def test_what_is_enough_is_told_of_methods_that_ran():
    table = scores(a_1=80.0, a_20=90.0, a_5=90.0, b_10=90.0, c_1=70.0)
    choice = rule.choose(table, FOLDS)
    assert rule.enough(table, choice, FOLDS) == {"a": 5, "b": 10}


@pytest.mark.parametrize("scale", [1e-6, 1.0, -1e9])
def test_the_last_bit_of_a_score_chooses_nothing(scale):
    base = scale * np.array([0.7, 0.8, 0.9, 0.8, 0.7])
    bit = np.abs(base) * 4e-16
    choice = rule.choose({("l1", 2): base, ("l1", 5): base + bit, ("rfe", 8): base + 2 * bit}, 5)
    assert (choice.size, choice.best_size) == (2, 2)
