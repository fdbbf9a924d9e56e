"""Comparisons paired over test rows: what rows add up to, and when nothing may be said."""

import numpy as np
import pytest
from auto_helpers import LINEAR
from sklearn.linear_model import LinearRegression, LogisticRegression, PoissonRegressor
from sklearn.metrics import roc_auc_score

import fsjax
from fsjax.auto import comparisons as comparing
from fsjax.auto.answer import early_choice
from fsjax.auto.budget import Clock
from fsjax.auto.columns import design_of_array
from fsjax.auto.comparisons import comparisons
from fsjax.auto.compete import Contest
from fsjax.auto.differences import UNCLEAR, row_difference
from fsjax.auto.judge import judges_of
from fsjax.auto.problem import Problem, on_rows, sizes_of
from fsjax.auto.progress_file import Ledger
from fsjax.auto.row_scores import ROW_SCORES, area_by_row, concordance_by_row
from fsjax.auto.scoring import METRICS, metric_named
from fsjax.evaluation import concordance_index

RNG = np.random.default_rng(0)
X = RNG.normal(size=(90, 3))
TARGETS = {
    "accuracy": (X[:, 0] + RNG.normal(size=90) > 0).astype(int),
    "auc": (X[:, 0] + RNG.normal(size=90) > 0.8).astype(int),
    "r2": X[:, 0] + RNG.normal(size=90),
    "d2": RNG.poisson(np.exp(X[:, 0])),
}
MODELS = {"r2": LinearRegression, "d2": PoissonRegressor}


@pytest.mark.parametrize("name", TARGETS)
def test_the_parts_of_rows_add_up_to_the_score(name):
    y = TARGETS[name]
    model = MODELS.get(name, LogisticRegression)().fit(X, y)
    of_rows = ROW_SCORES[name](model, X, y, y)
    assert of_rows.shape == y.shape
    assert of_rows.mean() == pytest.approx(METRICS[name].score(model, X, y))


def test_areas_and_concordances_have_the_error_of_their_rows():
    rng = np.random.default_rng(1)
    scores, labels = rng.normal(size=(400, 60)).round(1), rng.random((400, 60)) < 0.3
    areas = [roc_auc_score(y, s) for y, s in zip(labels, scores, strict=True)]
    parts = [area_by_row(s, y) for y, s in zip(labels, scores, strict=True)]
    np.testing.assert_allclose([part.mean() for part in parts], areas)
    errors = [part.std(ddof=1) / np.sqrt(60) for part in parts]
    assert np.mean(errors) == pytest.approx(np.std(areas), rel=0.1)
    times = rng.exponential(size=(400, 60)).round(1)
    rows = list(zip(times, labels | (rng.random((400, 60)) < 0.4), scores, strict=True))
    parts = [concordance_by_row(*row) for row in rows]
    indices = [concordance_index(*row) for row in rows]
    np.testing.assert_allclose([part.mean() for part in parts], indices)
    errors = [part.std(ddof=1) / np.sqrt(60) for part in parts]
    assert np.mean(errors) == pytest.approx(np.std(indices), rel=0.1)


def test_rows_of_a_group_count_once():
    rng = np.random.default_rng(0)
    values = rng.normal(0.2, 1.0, size=40)
    single = row_difference(values, np.arange(40), np.full(5, 0.2), 0.25)
    repeated = row_difference(
        np.repeat(values, 10), np.repeat(np.arange(40), 10), np.full(5, 0.2), 0.25
    )
    np.testing.assert_allclose(repeated, single)
    assert (
        row_difference(np.repeat(values, 10), np.arange(400), np.full(5, 0.2), 0.25).low
        > single.low + 0.05
    )


def test_a_few_rows_show_nothing():
    clusters = np.arange(200)
    for rows in (1, 2, 4):
        few = np.where(clusters < rows, 100.0, 0.0)
        assert row_difference(few, clusters, np.zeros(5), 0.25).verdict(np.inf) == UNCLEAR
    assert row_difference(np.where(clusters < 12, 100.0, 0.0), clusters, np.zeros(5), 0.25).low > 0
    outlier = np.append(np.full(100, 0.01), 50.0)
    assert row_difference(outlier, np.arange(101), np.zeros(5), 0.25).verdict(np.inf) == UNCLEAR
    same = row_difference(np.full(50, 7e-15), np.arange(50), np.zeros(5), 0.25)
    assert same[:3] == (0.0, 0.0, 0.0)


def test_training_rows_that_matter_widen_the_interval():
    values = np.random.default_rng(0).normal(1.0, 1.0, size=100)
    steady = row_difference(values, np.arange(100), np.full(5, 1.0), 0.25)
    varied = row_difference(values, np.arange(100), np.array([-4.0, 0.0, 1.0, 3.0, 5.0]), 0.25)
    assert steady.low > 0 > varied.low


def test_a_clear_difference_is_shown():
    rng = np.random.default_rng(3)
    table = rng.normal(size=(150, 30))
    y = np.where(table[:, 0] - table[:, 1] + 0.5 * rng.normal(size=150) > 0, "a", "b")
    result = fsjax.select(table, y, budget=20, **LINEAR)
    against = result.comparisons.set_index("against")
    (random,) = [row for name, row in against.iterrows() if "random" in name]
    # Over folds the interval is 29 wide.
    assert random["verdict"] == "better" and random["high"] - random["low"] < 20


def small_contest(clock: Clock, **more) -> Contest:
    rng = np.random.default_rng(0)
    columns = rng.normal(size=(80, 12))
    y = columns[:, 0] + 0.5 * rng.normal(size=80)
    whole = Problem(
        design_of_array(columns, None, None), y, "regression", METRICS["r2"], [],
        ("random", "univariate", "l1"), 0, sizes_of(12), judges_of("regression")[0], **more,
    )  # fmt: skip
    contest = Contest(on_rows(whole, np.arange(80)), Ledger(None), clock)
    contest.run_needed()
    contest.run_simple(1.0)
    return contest


@pytest.mark.parametrize("kind", ["rows", "groups", "series", "scorer"])
def test_what_is_paired_is_said(kind):
    more = {
        "groups": {"row_groups": np.arange(80) // 4},
        "series": {"ordered": True},
    }.get(kind, {})
    contest = small_contest(Clock(1e6), **more)
    if kind == "scorer":
        contest.problem = contest.problem.replace(
            metric=metric_named("neg_median_absolute_error", "regression")
        )
    choice = early_choice(contest)
    (over,) = {row.over for row in comparisons(contest, choice)}
    words = {"rows": "80 rows", "groups": "20 groups of rows", "series": "20 blocks of 80 rows"}
    assert over.startswith(words.get(kind, "the folds"))


def test_without_time_nothing_is_compared():
    clock = Clock(1e6)
    contest = small_contest(clock)
    choice = early_choice(contest)
    assert len(comparisons(contest, choice)) == 3
    clock.stop()
    assert comparisons(contest, choice) == []


def test_random_columns_are_several_draws_and_hold_those_to_keep(monkeypatch):
    contest = small_contest(Clock(1e6), keep=(7,))
    seen, real = [], comparing.fitted
    monkeypatch.setattr(
        comparing, "fitted", lambda *args: seen.append(args[-1].tolist()) or real(*args)
    )
    comparisons(contest, early_choice(contest))
    assert len({tuple(columns) for columns in seen}) > comparing.DRAWS
    assert all(7 in columns for columns in seen)
