"""Decoys are like the real columns, and the estimated false discovery rates are kept."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fsjax.auto.columns import design_of_array
from fsjax.auto.decoys import knockoffs, permuted
from fsjax.auto.discoveries import decoy_model, false_discovery_rates
from fsjax.auto.preparation import Part
from fsjax.auto.rankers import l1


def neighbours(rng: np.random.Generator, rows: int, columns: int, correlation: float) -> np.ndarray:
    X = rng.standard_normal((rows, columns))
    for column in range(1, columns):
        X[:, column] = correlation * X[:, column - 1] + np.sqrt(1 - correlation**2) * X[:, column]
    return X


def test_knockoffs_swap_with_their_columns():
    X = neighbours(np.random.default_rng(0), 4000, 6, 0.7)
    copy = knockoffs(X, np.random.default_rng(1))
    # Knockoffs: correlated with each other, and with the other columns, as the columns are ...
    real = np.corrcoef(X.T)
    both = np.corrcoef(np.hstack([X, copy]).T)
    np.testing.assert_allclose(both[6:, 6:], real, atol=0.06)
    others = ~np.eye(6, dtype=bool)
    np.testing.assert_allclose(both[:6, 6:][others], real[others], atol=0.06)
    # ... and as little with their own as that allows.
    assert np.diag(both[:6, 6:]).max() < 0.9
    assert np.diag(both[:6, 6:]).mean() < 0.75


def test_knockoffs_keep_the_values_of_each_column():
    rng = np.random.default_rng(0)
    X = np.column_stack([np.exp(rng.normal(size=300)), rng.integers(0, 30, 300)])
    copy = knockoffs(X, rng)
    for column in range(2):
        assert set(copy[:, column]) <= set(X[:, column])
    np.testing.assert_allclose(np.median(copy, axis=0), np.median(X, axis=0), rtol=0.25)


def test_wide_tables_have_knockoffs_from_common_factors(monkeypatch):
    monkeypatch.setattr("fsjax.auto.decoys.MAX_COVARIANCE", 20)
    rng = np.random.default_rng(0)
    common = rng.normal(size=(500, 1))
    X = common + 0.7 * rng.normal(size=(500, 40))
    copy = knockoffs(X, rng)
    across = np.corrcoef(np.hstack([X, copy]).T)[:40, 40:]
    real = np.corrcoef(X.T)[~np.eye(40, dtype=bool)].mean()
    assert abs(across[~np.eye(40, dtype=bool)].mean() - real) < 0.06


def test_permuted_copies_move_the_columns_of_a_group_together():
    X = np.arange(40.0).reshape(10, 4)
    copy = permuted(X, np.array([0, 1, 1, 2]), np.random.default_rng(0))
    np.testing.assert_array_equal(np.sort(copy, axis=0), X)
    np.testing.assert_array_equal(copy[:, 2] - copy[:, 1], 1.0)
    assert (copy[:, 0] + 1 != copy[:, 1]).any()


def test_categories_get_permuted_copies_and_their_own_units():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=50), rng.integers(0, 2, 50)]).astype(float)
    design = design_of_array(X, None, None)
    both, units = decoy_model(X, design)(rng)
    np.testing.assert_array_equal(both[:, :2], X)
    np.testing.assert_array_equal(units, [0, 1, 2, 3])
    assert both[:, 3].sum() == X[:, 1].sum()


def by_hand(scores: np.ndarray, decoys: np.ndarray) -> np.ndarray:
    """The definition, threshold by threshold."""
    mean, sets = scores.mean(axis=0), len(scores)
    rates = np.ones(len(mean))
    for unit, own in enumerate(mean):
        if own <= min(mean.min(), 0):
            continue
        shares = [(1 + (decoys >= t).sum()) / sets / (mean >= t).sum() for t in mean[mean <= own]]
        rates[unit] = min(1.0, *shares, 1.0)
    return rates


@given(st.integers(0, 10_000), st.integers(1, 4), st.integers(1, 12))
def test_rates_are_those_of_the_definition(seed, sets, units):
    rng = np.random.default_rng(seed)
    # Few different values, so that there are ties.
    scores, decoys = rng.integers(0, 6, (2, sets, units)).astype(float)
    np.testing.assert_allclose(false_discovery_rates(scores, decoys), by_hand(scores, decoys))


@pytest.mark.parametrize("correlation", [0.0, 0.6])
def test_few_of_the_discoveries_are_false(correlation):
    false, found = [], []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        X = neighbours(rng, 400, 120, correlation)
        true = rng.choice(120, 10, replace=False)
        y = X[:, true] @ rng.choice([-0.4, 0.4], 10) + rng.standard_normal(400)
        design = design_of_array(X, None, None)
        draw, real, decoys = decoy_model(X, design), [], []
        for _ in range(4):
            both, _ = draw(rng)
            scores = l1(Part(both, y), "regression", 0)
            real.append(scores[:120])
            decoys.append(scores[120:])
        chosen = np.flatnonzero(false_discovery_rates(np.array(real), np.array(decoys)) <= 0.1)
        false.append(1 - np.isin(chosen, true).mean() if len(chosen) else 0.0)
        found.append(np.isin(true, chosen).mean())
    assert np.mean(false) < 0.15
    assert np.mean(found) > 0.9
