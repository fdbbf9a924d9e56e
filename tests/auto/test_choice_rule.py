"""The rule, its honest score, chance, time, and what is kept of the work."""

import json

import numpy as np
import pytest

from fsjax.auto import chance, rule
from fsjax.auto.budget import seconds
from fsjax.auto.chance import Chance, above_chance
from fsjax.auto.ledger import NAME, Ledger
from fsjax.auto.models import METRICS, choose_metric, judge
from fsjax.auto.preparation import Part
from fsjax.auto.rankers import forest, l1, rank_units, univariate
from fsjax.errors import ConfigError

FOLDS = 4


def scores(**means: float) -> dict:
    """Scores whose standard error is 1: folds at -1, 1, -1, 1 times sqrt(3)."""
    spread = np.array([-1.0, 1.0, -1.0, 1.0]) * np.sqrt(3)
    return {
        (name.split("_")[0], int(name.split("_")[1])): mean + spread for name, mean in means.items()
    }


def test_the_fewest_columns_within_a_standard_error_win():
    found = rule.choose(scores(a_1=80, a_5=89.5, b_5=89.2, b_10=90, all_30=90.1), FOLDS)
    assert found[:2] == ("a", 5)
    assert (found.best_method, found.best_size) == ("all", 30)
    assert found.error == pytest.approx(1.0)
    assert found.threshold == pytest.approx(89.1)
    # Methods that are there for comparison are passed over.
    assert rule.choose(scores(random_2=90, a_5=89.5), FOLDS)[:2] == ("a", 5)
    assert rule.enough(scores(a_1=80, a_5=89.5, b_10=90), 89.1) == {"a": 5, "b": 10}


def test_more_rounds_of_folds_do_not_shrink_the_error():
    values = np.array([1.0, 2.0, 3.0, 4.0])
    assert rule.standard_error(np.tile(values, 5), 4) == pytest.approx(
        np.tile(values, 5).std(ddof=1) / 2
    )
    assert rule.standard_error(np.array([1.0, np.nan]), 4) == 0.0


def test_the_score_of_choosing_does_not_look_at_its_fold():
    # Each method is good in one fold only: who wins elsewhere is bad here.
    table = {("a", 1): np.array([9.0, 0.0, 0.0, 0.0]), ("b", 1): np.array([0.0, 9.0, 0.0, 0.0])}
    np.testing.assert_array_equal(rule.honest_scores(table, FOLDS, (0, 1)), [0.0, 0.0])
    assert rule.choose(table, FOLDS).mean == pytest.approx(2.25)


def test_all_columns_may_be_chosen_and_their_score_is_that_of_the_choice():
    values = np.array([9.0, 8.0, 9.0, 8.0])
    table = {("all", 30): values, ("a", 1): np.zeros(4), ("random", 2): values}
    assert rule.choose(table, FOLDS)[:2] == ("all", 30)
    np.testing.assert_array_equal(rule.honest_scores(table, FOLDS, range(4)), values)


def test_verdicts_on_chance():
    assert not Chance(1.0, (0.5, 1.5, 1.2, 1.1)).better
    assert Chance(1.0, (0.5, 1.5, 1.2, 1.1)).settled
    drawn = tuple(np.linspace(0, 0.5, 60))
    assert Chance(0.6, drawn).better and not Chance(0.6, drawn[:5]).better
    # Far out of reach: few draws are enough.
    assert Chance(5.0, drawn[:10]).better and Chance(5.0, drawn[:10]).settled
    assert Chance(0.2, drawn).p_value == pytest.approx((1 + sum(d >= 0.2 for d in drawn)) / 61)
    # One draw says nothing, and is not said to.
    assert (
        "0 of 1 permutations" in Chance(1.0, (0.5,)).told and "too few" in Chance(1.0, (0.5,)).told
    )
    assert Chance(1.0, (1.5, 1.2, 1.1)).told.endswith("itself (p = 1)")
    gain = np.array([1.0, 2.0, 1.5, 1.7, np.nan])
    assert above_chance(gain, np.zeros(5), 0.25) < 0.01
    assert above_chance(-gain, np.zeros(5), 0.25) > 0.9
    assert above_chance(gain[:1], np.zeros(1), 0.25) == 1.0
    assert chance.LEVEL <= 0.02


@pytest.mark.parametrize(
    ("given", "expected"), [("90s", 90), ("5min", 300), ("1.5h", 5400), (7, 7), ("12", 12)]
)
def test_budgets(given, expected):
    assert seconds(given) == expected


@pytest.mark.parametrize("given", ["", "5 parsecs", 0, -1, True, "0s", "min"])
def test_budgets_that_are_none(given):
    with pytest.raises(ConfigError, match="choose a time such as"):
        seconds(given)


def test_the_ledger_goes_on_after_a_cut_line(tmp_path):
    first = Ledger(tmp_path, {"seed": 0})
    assert first.get("a", lambda: {"value": 1.5}) == {"value": 1.5}
    assert first.get("b", lambda: 2) == 2
    path = tmp_path / NAME
    path.write_text(path.read_text()[:-4])
    again = Ledger(tmp_path, {"seed": 0})
    assert "a" in again and "b" not in again
    assert again.get("a", lambda: pytest.fail("it was done")) == {"value": 1.5}
    again.get("b", lambda: 3)
    assert Ledger(tmp_path, {"seed": 0})["b"] == 3
    with pytest.raises(ConfigError, match="another selection .it differs in seed"):
        Ledger(tmp_path, {"seed": 1})
    assert [json.loads(line) for line in path.read_text().splitlines()][-1]["value"] == 3


def test_a_folder_that_is_a_file_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="is a file; name a folder"):
        Ledger(tmp_path / "file", {})


def test_simple_selectors_find_what_matters():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 12))
    y = (X[:, 3] + 0.8 * X[:, 7] > 0).astype(int)
    many = rng.integers(0, 3, 300)
    spread = X.copy()
    spread[:, 5] += 2.0 * many
    for score in (univariate, l1, forest):
        assert set(np.argsort(-score(Part(X, y), "classification", 0))[:2]) == {3, 7}
        assert score(Part(spread, many), "classification", 0).argmax() == 5
        several = np.column_stack([X[:, 1], X[:, 2]]) + 0.1 * rng.normal(size=(300, 2))
        assert set(np.argsort(-score(Part(X, several), "regression", 0))[:2]) == {1, 2}
    ranked = rank_units(np.array([1.0, 5.0, 2.0, 5.0]), np.array([0, 0, 1, 2]), (1, 3))
    np.testing.assert_array_equal(ranked.scores, [5, 2, 5])
    np.testing.assert_array_equal(ranked.order[3], [0, 2, 1])


def test_metrics():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 2))
    y = (X[:, 0] > 0).astype(int)
    train, test = Part(X[:80], y[:80]), Part(X[80:], y[80:])
    good, bad = np.array([0]), np.array([1])
    for name, floor, chance_level in (("accuracy", 90, 60), ("auc", 0.95, 0.65)):
        assert judge(METRICS[name], "classification", train, test, good) > floor
        assert judge(METRICS[name], "classification", train, test, bad) < chance_level
    numbers = X[:, 0] * 3 + 7
    train, test = Part(X[:80], numbers[:80]), Part(X[80:], numbers[80:])
    assert judge(METRICS["r2"], "regression", train, test, good) > 0.9
    assert judge(METRICS["r2"], "regression", train, test, bad) < 0.2
    assert METRICS["accuracy"].chance(np.array([0, 1, 1]), np.array([0, 1, 1, 1])) == 75.0
    assert METRICS["r2"].chance(np.array([1.0, 3.0]), np.array([2.0, 5.0])) <= 0.0
    assert choose_metric(None, "classification", np.array([0] * 30 + [1] * 2)).name == "auc"
    assert choose_metric(None, "classification", y).name == "accuracy"
    with pytest.raises(ConfigError, match="metric='acuracy' of classification: did you mean"):
        choose_metric("acuracy", "classification", y)
    with pytest.raises(ConfigError, match="is for two classes"):
        choose_metric("auc", "classification", np.array([0, 1, 2]))
