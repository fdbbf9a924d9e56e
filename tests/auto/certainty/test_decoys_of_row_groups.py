"""Decoys of rows that depend on each other: in groups, and in order of time."""

import dataclasses

import numpy as np
import pytest
import scipy.sparse as sp
from auto_helpers import LINEAR, problem
from marks import slow_ids

import fsjax
from fsjax.auto.certainty import decoy_competition
from fsjax.auto.certainty.decoy_competition import why_no_decoys
from fsjax.auto.certainty.decoys import decoy_columns, knockoff_model, permuted
from fsjax.auto.certainty.false_discovery import (
    Draw,
    decoy_model,
    false_discovery_rates,
    simple_scores,
)
from fsjax.auto.contest.rankers.parts import Part

PATIENTS = np.repeat(np.arange(60), 4)


def shares_of_groups(X: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """``(D,)`` the share of each column's variance that is between groups."""
    numbers = np.unique(groups, return_inverse=True)[1]
    means = np.array([X[numbers == group].mean(axis=0) for group in range(numbers.max() + 1)])
    return means[numbers].var(axis=0) / X.var(axis=0)


@pytest.mark.parametrize("sizes", ["equal", "different"])
def test_decoys_vary_between_groups_as_their_columns_do(sizes):
    rng = np.random.default_rng(0)
    counts = np.full(300, 4) if sizes == "equal" else rng.integers(1, 9, 300)
    # Labels in any order, and the rows of a group apart.
    groups = rng.permutation(np.repeat(rng.permutation(300), counts))
    rows = len(groups)
    of_group = rng.normal(size=(300, 4))[groups]
    noise = rng.normal(size=(rows, 4))
    X = np.column_stack(
        [
            of_group[:, 0],
            of_group[:, 1] + noise[:, 1],
            noise[:, 2],
            of_group[:, 3] > 0,
            of_group[:, 3] + noise[:, 3] > 1,
        ]
    )
    draw = decoy_columns(X, np.arange(5), groups)
    copies = [draw(np.random.default_rng(seed)) for seed in range(3)]
    expected = shares_of_groups(X, groups)
    shares = np.mean([shares_of_groups(copy, groups) for copy in copies], axis=0)
    np.testing.assert_allclose(shares, expected, atol=0.07)
    np.testing.assert_allclose(shares[[0, 3]], 1.0)
    for copy in copies:
        assert not (copy == X).all(axis=0).any()
        np.testing.assert_allclose(copy.std(axis=0), X.std(axis=0), rtol=0.15)


def test_knockoffs_keep_correlations_between_and_within_groups():
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(500), 4)
    shared, noise = rng.normal(size=(500, 1)), rng.normal(size=(2000, 1))
    between = (shared + 0.7 * rng.normal(size=(500, 3)))[groups]
    within = noise * [1.0, -1.0, 0.0] + 0.7 * rng.normal(size=(2000, 3))
    X = between + within
    copy = knockoff_model(X, groups)(np.random.default_rng(1))

    def correlations(table: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        means = table.reshape(500, 4, -1).mean(axis=1)
        return np.corrcoef(means.T), np.corrcoef((table - means[groups]).T)

    for real, both in zip(correlations(X), correlations(np.hstack([X, copy])), strict=True):
        np.testing.assert_allclose(both[3:, 3:], real, atol=0.1)
        others = ~np.eye(3, dtype=bool)
        np.testing.assert_allclose(both[:3, 3:][others], real[others], atol=0.1)
        assert np.diag(both[:3, 3:]).max() < 0.9


def test_groups_of_single_rows_are_no_groups():
    X = np.random.default_rng(0).normal(size=(40, 3))
    single = knockoff_model(X, np.arange(40)[::-1])(np.random.default_rng(1))
    np.testing.assert_array_equal(single, knockoff_model(X)(np.random.default_rng(1)))


def test_whole_groups_are_permuted():
    groups = np.repeat(np.arange(6), [1, 2, 3, 3, 2, 1])
    X = groups[:, None] * [1.0, 1.0, 10.0]
    copy = permuted(X, np.array([0, 0, 1]), np.random.default_rng(0), groups)
    np.testing.assert_array_equal(copy[:, 0], copy[:, 1])
    assert (copy[:, 2] != 10 * copy[:, 0]).any()
    for column in (0, 2):
        values = [set(copy[groups == group, column]) for group in range(6)]
        # Each group gets the value of one group, and no two get the same.
        assert all(len(value) == 1 for value in values)
        assert len(set.union(*values)) == 6


@slow_ids("category")
@pytest.mark.parametrize("kind", ["number", "category"])
def test_few_discoveries_are_false_where_patients_have_several_rows(kind):
    # Decoys with independent rows: 0.6 of the selected numbers, and 0.7 of the categories.
    false, power = [], []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((60, 30))[PATIENTS]
        X = (X > 0) + 1.0 * (X > 1) if kind == "category" else X
        y = X[:, :5].sum(axis=1) + rng.standard_normal(60)[PATIENTS]
        part = Part((X - X.mean(axis=0)) / X.std(axis=0), y)
        draw = decoy_model(part.X, np.arange(30), PATIENTS)
        sets = [simple_scores(part, draw, "regression", 30, "l1", n, seed) for n in range(5)]
        rates = false_discovery_rates(*map(np.concatenate, zip(*sets, strict=True)))
        chosen = np.flatnonzero(rates <= 0.1)
        false.append((chosen >= 5).sum() / max(len(chosen), 1))
        power.append((chosen < 5).sum() / 5)
    assert np.mean(false) < 0.2
    assert np.mean(power) > 0.5


def test_no_rate_where_decoys_cannot_keep_the_dependence_of_rows():
    assert why_no_decoys(problem()) is None
    groups = np.arange(60) // 4
    assert why_no_decoys(problem(60, row_groups=groups)) is None
    assert "order of time" in (why_no_decoys(problem(60, ordered=True)) or "")
    grouped = problem(60, row_groups=groups)
    design = dataclasses.replace(grouped.design, X=sp.csr_array(grouped.design.X))
    assert "sparse" in (why_no_decoys(grouped.replace(design=design)) or "")


@pytest.mark.slow
def test_a_selection_draws_decoys_by_groups_of_rows(monkeypatch):
    groups_seen = []

    def spied(X: np.ndarray, units: np.ndarray, row_groups: np.ndarray | None = None) -> Draw:
        groups_seen.append(row_groups)
        return decoy_model(X, units, row_groups)

    monkeypatch.setattr(decoy_competition, "decoy_model", spied)
    X = np.random.default_rng(0).normal(size=(60, 4))[PATIENTS]
    result = fsjax.select(X, X[:, 1], row_groups=PATIENTS, fdr=0.2, budget=None, **LINEAR)
    assert result.table["false_discovery_rate"].notna().any()
    assert groups_seen
    for groups in groups_seen:
        np.testing.assert_array_equal(np.unique(groups, return_counts=True)[1], np.full(60, 4))


@pytest.mark.slow
def test_rows_in_order_of_time_get_no_rate_and_a_reason():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 5)).cumsum(axis=0)
    y = X[:, 1] + 0.1 * rng.normal(size=120)
    result = fsjax.select(X, y, ordered=True, fdr=0.2, budget=None, **LINEAR)
    assert not len(result.columns)
    assert result.table["false_discovery_rate"].isna().all()
    assert "not known, as rows of decoys do not depend on earlier rows" in result.statements[0]
