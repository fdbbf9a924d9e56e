"""The simple selectors: what each must find, on every kind of target and table.

Covers ``fsjax.auto.contest.rankers.costs``, ``fsjax.auto.contest.rankers.elimination``,
``fsjax.auto.contest.rankers.filters``, ``fsjax.auto.contest.rankers.greedy``,
``fsjax.auto.contest.rankers.ranking``, ``fsjax.auto.contest.rankers.parts``,
``fsjax.auto.contest.rankers.trees``.
"""

import numpy as np
import pytest
import scipy.sparse as sp
from marks import slow_ids

from fsjax.auto.contest.rankers import (
    MEMBERS,
    SIMPLE,
    forward,
    merged_ranking,
    mrmr,
    rank_units,
    rfe,
    shadow,
    targets,
    univariate,
)
from fsjax.auto.contest.rankers.costs import expected_seconds
from fsjax.auto.contest.rankers.lasso import _path, _wide_path
from fsjax.auto.contest.rankers.parts import Part, fewer_columns, fewer_rows, standardise

SELECTORS = [name for name in SIMPLE if name != "random"]
TASKS = ("classification", "regression", "multilabel", "counts", "survival")


def planted(task: str, rows: int = 240, columns: int = 12) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of which the third and the eighth column matter, and the last is constant."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, columns))
    X[:, -1] = 3.0
    signal = X[:, 2] + 0.8 * X[:, 7]
    y = {
        "classification": np.digitize(signal, [-0.7, 0.7]),
        "regression": np.column_stack([X[:, 2], X[:, 7]]) + 0.2 * rng.normal(size=(rows, 2)),
        "multilabel": np.column_stack([X[:, 2] > 0, X[:, 7] > 0, X[:, 2] > -9]).astype(int),
        "counts": rng.poisson(np.exp(1 + 0.6 * signal)),
        "survival": np.column_stack(
            [rng.exponential(np.exp(-1.2 * signal)) + 1e-3, rng.random(rows) < 0.8]
        ),
    }
    return X, y[task]


@slow_ids("1.0-shadow-*")
@slow_ids("0.1-*-regression", "0.1-*-multilabel", "0.1-*-counts", "0.1-*-survival")
@slow_ids("1.0-shadow-regression", "1.0-shadow-multilabel", "1.0-shadow-counts")
@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("name", SELECTORS)
@pytest.mark.parametrize("effort", [1.0, 0.1])
def test_every_selector_finds_what_matters_for_every_task(name, task, effort):
    X, y = planted(task)
    scores = SIMPLE[name](Part(standardise(X)[0], y), task, 0, effort=effort)
    order = np.argsort(-scores, kind="stable")
    assert scores.shape == (12,) and set(order[:2]) == {2, 7}
    assert scores[11] == scores.min()


@slow_ids("shadow")
@pytest.mark.parametrize("name", SELECTORS)
def test_sparse_tables_have_the_same_leaders(name):
    rng = np.random.default_rng(0)
    X = sp.random_array((300, 60), density=0.2, rng=rng, format="csr")
    y = np.asarray(X[:, [5, 9]].sum(axis=1)).ravel() > 0.3
    part = Part(standardise(sp.csr_array(X))[0], y.astype(int))
    assert {5, 9} <= set(np.argsort(-SIMPLE[name](part, "classification", 0))[:3])


@slow_ids("shadow")
@pytest.mark.parametrize("name", SELECTORS)
def test_more_columns_than_rows(name):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 1500))
    y = np.resize([0, 1], 60)
    X[:, [4, 900]] += 1.8 * y[:, None]
    scores = SIMPLE[name](Part(standardise(X)[0], y), "classification", 0)
    assert {4, 900} <= set(np.argsort(-scores, kind="stable")[:4])


@slow_ids("regression-forest", "classification-shadow")
@pytest.mark.parametrize("name", SELECTORS)
@pytest.mark.parametrize("task", ["classification", "regression"])
def test_a_target_of_one_value_says_nothing_and_is_no_error(name, task):
    X = np.random.default_rng(0).normal(size=(40, 5))
    scores = SIMPLE[name](Part(standardise(X)[0], np.ones(40, int)), task, 0)
    assert scores.shape == (5,) and not np.isnan(scores).any()


def test_minimum_redundancy_passes_over_a_copy():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 6))
    X[:, 1] = X[:, 0] + 0.1 * rng.normal(size=400)
    y = X[:, 0] + 0.5 * X[:, 3] + 0.3 * rng.normal(size=400)
    part = Part(standardise(X)[0], y)
    assert set(np.argsort(-univariate(part, "regression", 0))[:2]) == {0, 1}
    assert set(np.argsort(-mrmr(part, "regression", 0))[:2]) in ({0, 3}, {1, 3})


@pytest.mark.parametrize("score", [forward, rfe])
def test_columns_that_matter_only_together(score):
    # The second column says nothing by itself; it takes the noise off the first.
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 8))
    y = X[:, 0].copy()
    X[:, 0] += 2.0 * X[:, 1]
    X[:, 5] = y + 1.5 * rng.normal(size=300)
    part = Part(standardise(X)[0], y)
    assert np.argsort(-univariate(part, "regression", 0))[0] == 5
    assert set(np.argsort(-score(part, "regression", 0))[:3]) == {0, 1, 5}


def test_forward_selection_minimises_the_squared_error_at_each_step():
    rng = np.random.default_rng(0)
    X = standardise(rng.normal(size=(80, 10)) @ rng.normal(size=(10, 10)))[0]
    y = X @ rng.normal(size=10) + rng.normal(size=80)
    order = np.argsort(-forward(Part(X, y), "regression", 0))

    def error(columns):
        return np.linalg.lstsq(X[:, columns], y - y.mean())[1][0]

    for step in range(6):
        before = list(order[:step])
        errors = {column: error([*before, column]) for column in set(range(10)) - set(before)}
        assert order[step] == min(errors, key=errors.get)


@pytest.mark.parametrize("score", [SIMPLE["forest"], shadow])
def test_trees_do_not_depend_on_the_unit_of_the_target(score):
    X, y = planted("regression")
    whole, small = (
        score(Part(standardise(X)[0], y * unit), "regression", 0, effort=0.1)
        for unit in ([1.0, 1.0], [0.5**30, 0.5**20])
    )
    np.testing.assert_allclose(small, whole)
    assert set(np.argsort(whole)[-2:]) == {2, 7}


@pytest.mark.slow
def test_shadows_are_beaten_by_columns_that_matter_only():
    X, y = planted("classification")
    scores = shadow(Part(standardise(X)[0], y), "classification", 0)
    assert scores[[2, 7]].min() > 10
    assert np.delete(scores, [2, 7]).max() < 3


def test_the_two_lasso_paths_agree():
    X, y = planted("regression")
    X, y = np.asfortranarray(standardise(X)[0]), (y[:, 0] - y[:, 0].mean()) / y[:, 0].std()
    np.testing.assert_allclose(_path(X, y, X.T @ X, 20), _wide_path(X, y, 20), atol=1e-3)


def test_fewer_rows_hold_classes_in_proportion():
    rng = np.random.default_rng(0)
    y = rng.permutation(np.repeat([0, 1, 2], [7000, 2500, 500]))
    part = fewer_rows(Part(rng.normal(2.0, 3.0, size=(10_000, 3)), y), "classification", 1000, 0)
    np.testing.assert_allclose(np.bincount(part.y), [700, 250, 50], atol=1)
    np.testing.assert_allclose(part.X.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(part.X.std(axis=0), 1)
    few = Part(part.X[:50], part.y[:50])
    assert fewer_rows(few, "classification", 10, 0) is few


def test_fewer_columns_are_those_of_the_largest_relevance():
    X = np.random.default_rng(0).normal(size=(20, 80))
    relevance = np.r_[np.arange(79.0), -np.inf]
    table = fewer_columns(Part(X, X[:, 0]), relevance, 60)
    assert np.array_equal(table.columns, np.arange(19, 79))
    np.testing.assert_array_equal(table.X, X[:, 19:79])


def test_a_unit_counts_by_its_best_column():
    ranking = rank_units(np.array([5.0, 1.0, 2.0, 5.0]), np.array([0, 0, 1, 2]), (1, 3))
    np.testing.assert_array_equal(ranking.scores, [5, 2, 5])
    np.testing.assert_array_equal(ranking.order[3], [0, 2, 1])
    np.testing.assert_array_equal(ranking.order[1], [0])


def test_counts_are_compared_by_their_roots():
    np.testing.assert_array_equal(targets(np.array([0, 4, 9]), "counts", split=False)[0], [0, 2, 3])
    (first, second) = targets(np.array([[0, 1], [4, 16]]), "counts", split=True)
    np.testing.assert_array_equal([first, second], [[0, 2], [1, 4]])


def test_the_consensus_adds_reciprocal_ranks():
    merged = merged_ranking([[3, 1], [1, 0, 3]], 5, (2, 5))
    expected = [1 / 4, 1 / 4 + 1 / 3, 0, 1 / 3 + 1 / 5, 0]
    np.testing.assert_allclose(merged.scores, expected)
    np.testing.assert_array_equal(merged.order[5], [1, 3, 0, 2, 4])
    np.testing.assert_array_equal(merged.order[2], [1, 3])
    assert set(MEMBERS) <= set(SIMPLE)


def test_every_contender_has_its_seconds() -> None:
    for name in SIMPLE:
        assert expected_seconds(name, 100, 20, 2, 1.0) > 0
