"""The permutation test: it keeps its level, it sees what is there, it says when it cannot tell."""

import numpy as np
import pytest
from marks import slow_ids
from scipy import stats

from fsjax.auto.certainty import permutation_test
from fsjax.auto.certainty.permutation_test import LEVEL, Chance, chance_test, verdict
from fsjax.auto.contest import schedule
from fsjax.auto.contest.budget import Clock
from fsjax.auto.contest.problem import Problem, in_proportion, on_rows, representative_rows
from fsjax.auto.contest.progress_file import Ledger
from fsjax.auto.contest.scoring import METRICS, metric_named
from fsjax.auto.reading.columns import design_of_array


def problem(X: np.ndarray, y: np.ndarray, task: str = "classification", **more) -> Problem:
    metric = METRICS["accuracy" if task == "classification" else "r2"]
    table = design_of_array(X, None, None)
    return Problem(table, y, task, metric, [], (), seed=0, **more)


def result_of(X: np.ndarray, y: np.ndarray, task: str = "classification", **more) -> Chance:
    return chance_test(problem(X, y, task, **more), Ledger(None), Clock(1e6))


@pytest.fixture
def few_draws(monkeypatch):
    monkeypatch.setattr(permutation_test, "DRAWS", 99)


@pytest.mark.slow
def test_noise_has_uniform_p_values(few_draws):
    rng = np.random.default_rng(0)
    p = [result_of(rng.normal(size=(40, 30)), rng.integers(0, 2, 40)).p_value for _ in range(60)]
    assert stats.kstest(p, "uniform").pvalue > 0.01


@pytest.mark.slow
def test_noise_by_patient_is_noise_when_patients_change_places(few_draws):
    # Columns and labels by patient: rows of a patient tell each other's label.
    p_values, naive = [], []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        groups = np.repeat(np.arange(20), 4)
        X = rng.normal(size=(20, 15))[groups] + 0.1 * rng.normal(size=(80, 15))
        y = rng.permutation(np.repeat([0, 1], 10))[groups]
        p_values.append(result_of(X, y, row_groups=groups).p_value)
        naive.append(result_of(X, y).p_value)
    assert np.mean(np.array(p_values) <= 0.05) <= 0.2
    assert np.mean(np.array(naive) <= 0.05) > 0.5


@pytest.mark.parametrize("kind", ["rows", "groups", "series"])
def test_rows_that_take_part_have_their_targets_and_are_permuted_as_they_may(kind, monkeypatch):
    monkeypatch.setattr(permutation_test, "DRAWS", 49)
    monkeypatch.setattr(permutation_test, "ROWS", 60)
    calls, real = [], permutation_test.permutations
    monkeypatch.setattr(
        permutation_test, "permutations", lambda *args: calls.append(args) or real(*args)
    )
    X = np.random.default_rng(0).normal(size=(90, 3))
    more = {"groups": {"row_groups": np.arange(90) // 3}, "series": {"ordered": True}}
    asked = problem(X, X[:, 1], "regression", **more.get(kind, {})).replace(seed=4)
    assert chance_test(asked, Ledger(None), Clock(1e6)) == Chance(0, 49, 49)
    ((y, draws, seed, groups, ordered),) = calls
    rows = representative_rows(asked, 60)
    np.testing.assert_array_equal(y, X[rows, 1])
    assert (draws, seed, ordered) == (49, 4, kind == "series")
    if kind == "groups":
        np.testing.assert_array_equal(groups, rows // 3)
    else:
        assert groups is None


@pytest.mark.parametrize("kind", ["single", "sum", "square", "classes", "numbers"])
def test_what_is_there_is_seen(kind, few_draws):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(150, 12))
    noise = 0.5 * rng.normal(size=150)
    y, task = (X[:, 3] + noise > 0).astype(int), "classification"
    if kind == "sum":
        y = (X.sum(axis=1) + noise > 0).astype(int)
    if kind == "square":
        X = X[:, :4]
        y = (np.square(X[:, :2]).sum(axis=1) > 1.4).astype(int)
    if kind == "classes":
        y = X[:, :3].argmax(axis=1)
    if kind == "numbers":
        y, task = X[:, 1] + noise, "regression"
    assert result_of(X, y, task).better


def test_the_first_chunk_is_drawn_whatever_the_time_and_time_ends_the_rest(monkeypatch):
    rng = np.random.default_rng(0)
    example = problem(rng.normal(size=(40, 5)), np.resize([0, 1], 40))
    clock = Clock(1e6)
    ledger = Ledger(None)
    monkeypatch.setattr(schedule, "MORE_PERMUTATIONS", schedule.Stage("none", 1e-12))
    short = chance_test(example, ledger, clock)
    assert permutation_test.MIN_DRAWS <= short.draws < permutation_test.DRAWS
    clock.stop()
    assert chance_test(example, Ledger(None), clock) == Chance(0, 0)
    # What was drawn before counts.
    assert chance_test(example, ledger, clock) == short


def test_verdicts_are_called_what_they_are():
    assert Chance(0, 999).better and not Chance(0, 999).undecided
    assert not Chance(15, 999).better and Chance(15, 999).undecided
    assert not Chance(300, 999).better and not Chance(300, 999).undecided
    # No permutation is as good, and there are too few of them to tell.
    assert Chance(0, 20).undecided and not Chance(0, 20).better
    assert Chance(21, 999).p_value == pytest.approx(0.022)


def test_a_row_with_nearly_all_weight_leaves_it_undecided():
    X, weights = np.random.default_rng(0).normal(size=(200, 3)), np.append(1e6, np.ones(199))
    example = in_proportion(problem(X, X[:, 0], "regression", weights=weights))
    chance = chance_test(example, Ledger(None), Clock(1e6))
    assert chance == Chance(0, 0, 0) and chance.undecided and not chance.better


def test_good_folds_count_where_permutations_do_not_see_it():
    example = scored_on_rows()
    nothing, good = np.full(5, 50.0), np.array([92.0, 88.0, 95.0, 84.0, 90.0])
    significant = verdict(Chance(400, 999), good, nothing, example)
    assert significant.better and significant.by_folds and significant.p_value < 0.005
    assert "t test" in significant.words
    lucky = verdict(Chance(400, 999), nothing + [5.0, -3, 4, 2, 0], nothing, example)
    assert not lucky.better and not lucky.undecided
    weak = verdict(Chance(21, 999), nothing, nothing, example)
    assert weak.undecided and not weak.better and "level 0.01" in weak.words


HEAVY = {
    "t": lambda rng, shape: rng.standard_t(1.5, shape),
    "lognormal": lambda rng, shape: np.exp(1.5 * rng.normal(size=shape)),
}


@slow_ids("classification-t", "survival-*")
@pytest.mark.parametrize("tails", HEAVY)
@pytest.mark.parametrize("task", ["regression", "classification", "survival"])
def test_heavy_tails_hide_nothing(tails, task, few_draws):
    # The values alone show 1 to 3 of these 8.
    seen = 0
    for seed in range(8):
        rng = np.random.default_rng(seed)
        X = HEAVY[tails](rng, (150, 20))
        y = np.clip(X[:, 0], -3, 3) - np.clip(X[:, 1], -3, 3) + HEAVY[tails](rng, 150)
        if task == "classification":
            y = (y > np.median(y)).astype(int)
        if task == "survival":
            y = np.stack([np.exp(np.clip(y, -5, 5)), np.ones(150)], axis=1)
        seen += result_of(X, y, task).better
    assert seen >= 6


def scored_on_rows(rows: int = 50) -> Problem:
    X = np.random.default_rng(0).normal(size=(rows, 3))
    return on_rows(problem(X, np.resize([0, 1], rows)), np.arange(rows))


@pytest.mark.parametrize("gain", [-0.1, 0.0, 7e-15, np.nan])
def test_a_relation_that_no_model_predicts_with_is_no_finding(gain):
    nothing = np.full(5, 55.0)
    result = verdict(Chance(0, 999), nothing + gain, nothing, scored_on_rows())
    assert result.undecided and not result.better
    # Where no fold was scored, nothing is said about the prediction.
    assert result.unpredicted == (not np.isnan(gain))
    assert (result.p_value >= 0.5) == result.unpredicted
    assert verdict(Chance(0, 999), nothing + 3.0, nothing, scored_on_rows()).better
    errors = scored_on_rows().replace(metric=metric_named("neg_mean_squared_error", "regression"))
    assert verdict(Chance(0, 999), -1e-12 * nothing, -2e-12 * nothing, errors).better


def test_so_few_shifts_of_a_series_can_show_a_relation_at_the_level_that_they_reach():
    assert Chance(0, 97, 97).better and not Chance(1, 97, 97).better
    assert Chance(1, 97, 97).undecided and not Chance(0, 97).better
    # Three groups have five other orders: nothing is decided, whatever they show.
    assert Chance(0, 5, 5).undecided and not Chance(0, 5, 5).better
    assert Chance(0, 5, 5).level == LEVEL < Chance(0, 97, 97).level


def test_chance_is_not_said_beside_a_small_q_value():
    nothing = np.full(5, 50.0)
    for smallest, undecided in ((1e-9, True), (0.6, False), (np.nan, False)):
        result = verdict(Chance(400, 999), nothing, nothing, scored_on_rows(), lambda q=smallest: q)
        assert result.undecided == undecided and not result.better
