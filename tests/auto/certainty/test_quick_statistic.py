"""The Lasso path or a forest, whichever predicts better, is compared with decoys."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from auto_helpers import problem
from marks import slow_ids
from sklearn.model_selection import KFold

import fsjax
from fsjax.auto.certainty import decoy_competition
from fsjax.auto.certainty.quick_statistic import better_predictor
from fsjax.auto.contest.budget import Clock
from fsjax.auto.contest.cross_validation import Contest
from fsjax.auto.contest.folds import Fold
from fsjax.auto.contest.progress_file import Ledger
from fsjax.auto.contest.rankers.parts import Part, standardise

SIGNALS = {
    "ring": lambda X: X[:, 0] ** 2 + X[:, 1] ** 2,
    "exclusive or": lambda X: np.sign(X[:, 0] * X[:, 1]),
    "product": lambda X: X[:, 0] * X[:, 1],
    "linear": lambda X: X[:, 0] - X[:, 1] + 0.5 * X[:, 2],
    "noise": lambda X: np.zeros(len(X)),
}


def folds(rows: int) -> list[Fold]:
    return [Fold(*parts) for parts in KFold(5, shuffle=True, random_state=0).split(np.zeros(rows))]


@slow_ids("multilabel-ring")
@slow_ids(
    "*-product", "*-exclusive or", "multilabel-noise", "multilabel-linear", "regression-noise"
)
@pytest.mark.parametrize("signal", SIGNALS)
@pytest.mark.parametrize("task", ["classification", "regression", "multilabel"])
def test_the_choice_is_what_predicts_the_table(task, signal):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 12))
    y = SIGNALS[signal](X) + 0.3 * rng.normal(size=300)
    if task != "regression":
        y = (y > np.median(y)).astype(int)
    if task == "multilabel":
        y = np.column_stack([y, y[::-1]])
    expected = "l1" if signal in ("linear", "noise") else "forest"
    assert better_predictor(Part(standardise(X)[0], y), task, folds(300)) == expected


@pytest.mark.slow
def test_events_in_time_and_counts_have_a_statistic():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 8))
    rate = np.exp(1.5 * np.abs(X[:, 0]))
    survival = np.column_stack([rng.exponential(1 / rate), rng.random(400) < 0.8])
    assert better_predictor(Part(X, survival), "survival", folds(400)) == "forest"
    assert better_predictor(Part(X, rng.poisson(rate)), "counts", folds(400)) == "forest"


@pytest.mark.slow
def test_the_choice_for_sparse_rows():
    X = sp.random_array((400, 12), density=0.5, format="csr", rng=np.random.default_rng(0))
    first, second = X[:, [0]].toarray()[:, 0], X[:, [1]].toarray()[:, 0]
    exclusive = ((first > 0) ^ (second > 0)).astype(int)
    assert better_predictor(Part(X, exclusive), "classification", folds(400)) == "forest"
    assert better_predictor(Part(X, first - second), "regression", folds(400)) == "l1"


def test_a_target_or_columns_of_one_value_have_a_statistic():
    X = np.random.default_rng(0).normal(size=(50, 3))
    assert better_predictor(Part(X, np.ones(50)), "regression", folds(50)) == "l1"
    assert better_predictor(Part(np.zeros((50, 3)), X[:, 0]), "regression", folds(50)) == "l1"


@pytest.fixture
def less_work(monkeypatch):
    monkeypatch.setattr("fsjax.auto.contest.rankers.trees.TREES", 60)
    monkeypatch.setattr("fsjax.auto.contest.schedule.PAIRS", 1)
    monkeypatch.setattr("fsjax.auto.contest.schedule.MAX_PAIRS", 1)


@pytest.mark.slow
@pytest.mark.usefixtures("less_work")
def test_both_columns_of_a_ring_are_selected_though_the_forest_is_no_contender():
    X = np.random.default_rng(0).normal(size=(300, 8))
    y = (X[:, 0] ** 2 + X[:, 1] ** 2 > 1.4).astype(int)
    result = fsjax.select(X, y, fdr=0.2, methods=("l1",), judge="rbf", budget=None)
    assert set(result.columns) == {"x0", "x1"} and result.facts.decoy_statistic == "forest"


@pytest.mark.slow
@pytest.mark.usefixtures("less_work")
def test_rates_of_a_selection_do_not_depend_on_the_order_of_the_columns():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(150, 5))).add_prefix("x")
    frame["kind"] = rng.choice(["a", "b", "c"], 150)
    frame["count"] = rng.integers(0, 4, 150)
    y = frame["x0"] - frame["x2"] + (frame["kind"] == "b") + rng.normal(size=150)
    tables = [
        fsjax.select(frame[names], y, fdr=0.2, methods=("l1",), judge="linear", budget=None).table
        for names in (list(frame), list(frame)[::-1])
    ]
    rates = [table.set_index("column")["false_discovery_rate"].sort_index() for table in tables]
    assert rates[0].notna().any()
    pd.testing.assert_series_equal(*rates)


def test_a_forest_needs_enough_rows_or_groups(monkeypatch):
    monkeypatch.setattr(decoy_competition, "better_predictor", lambda *_: "forest")
    for rows, groups, expected in [
        (99, None, "l1"),
        (100, None, "forest"),
        (300, np.arange(300) // 5, "l1"),
        (300, np.arange(300) // 3, "forest"),
    ]:
        contest = Contest(problem(rows, row_groups=groups), Ledger(None), Clock(3600.0))
        assert decoy_competition.quick_statistic(contest, 1.0) == expected
