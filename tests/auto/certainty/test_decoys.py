"""Decoys are like the real columns, and the estimated false discovery rates are kept."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from marks import slow_ids

from fsjax.auto.certainty import false_discovery
from fsjax.auto.certainty.covariance import (
    estimated_covariance,
    graph_covariance,
    shrunk_covariance,
)
from fsjax.auto.certainty.decoys import knockoff_model, permuted
from fsjax.auto.certainty.false_discovery import (
    decoy_model,
    decoy_statistic,
    false_discovery_rates,
    known_rates,
    network_scores,
    order_by_content,
    simple_scores,
    smallest_rate,
    swapped,
)
from fsjax.auto.contest.rankers import l1, rank_units
from fsjax.auto.contest.rankers.parts import Part
from fsjax.auto.reading.columns import design_of_array
from fsjax.tables.datasets.nonlinear import ring_xor_sum


def neighbours(rng: np.random.Generator, rows: int, columns: int, correlation: float) -> np.ndarray:
    X = rng.standard_normal((rows, columns))
    for column in range(1, columns):
        X[:, column] = correlation * X[:, column - 1] + np.sqrt(1 - correlation**2) * X[:, column]
    return X


def test_knockoffs_swap_with_their_columns():
    X = neighbours(np.random.default_rng(0), 4000, 6, 0.7)
    copy = knockoff_model(X)(np.random.default_rng(1))
    # Knockoffs: correlated with each other, and with the other columns, as the columns are ...
    real = np.corrcoef(X.T)
    both = np.corrcoef(np.hstack([X, copy]).T)
    np.testing.assert_allclose(both[6:, 6:], real, atol=0.06)
    others = ~np.eye(6, dtype=bool)
    np.testing.assert_allclose(both[:6, 6:][others], real[others], atol=0.06)
    # ... and as little with their own as that allows.
    assert np.diag(both[:6, 6:]).max() < 0.9
    assert np.diag(both[:6, 6:]).mean() < 0.75


def test_the_order_of_decoys_does_not_depend_on_units_of_measurement():
    X = np.random.default_rng(0).normal(size=(40, 8))
    groups, scales = np.arange(8), np.r_[1000.0, 3.7, np.ones(6)]
    order = order_by_content(X, groups)
    np.testing.assert_array_equal(order_by_content(X * scales, groups), order)
    np.testing.assert_array_equal(order_by_content(X.astype(np.float32), groups), order)
    np.testing.assert_array_equal(order_by_content(X[:, ::-1], groups), 7 - order)
    # Equal ranks are told apart by their values.
    tied = np.column_stack([X[:, 0], 2 * X[:, 0]])
    first = order_by_content(tied, np.arange(2))
    np.testing.assert_array_equal(order_by_content(tied[:, ::-1], np.arange(2)), 1 - first)


def test_knockoffs_of_many_columns_keep_the_correlations_with_neighbours():
    # Ledoit and Wolf's estimate leaves 0.46 of 0.6 here.
    X = neighbours(np.random.default_rng(0), 300, 150, 0.6)
    copy = knockoff_model(X)(np.random.default_rng(1))
    both = np.corrcoef(np.hstack([X, copy]).T)
    column = np.arange(149)
    assert both[150 + column, column + 1].mean() == pytest.approx(0.6, abs=0.04)
    assert both[150 + column, 151 + column].mean() == pytest.approx(0.6, abs=0.04)


def test_covariances_of_neighbours_are_those_of_the_rows():
    Z = neighbours(np.random.default_rng(0), 400, 60, 0.6)
    Z = (Z - Z.mean(axis=0)) / Z.std(axis=0)
    covariance = graph_covariance(Z)
    column = np.arange(59)
    sample = Z.T @ Z / len(Z)
    np.testing.assert_allclose(
        covariance[column, column + 1], sample[column, column + 1], atol=1e-3
    )
    np.testing.assert_allclose(estimated_covariance(Z), covariance)
    assert np.linalg.eigvalsh(covariance)[0] > 0


def test_columns_with_common_factors_have_a_shrunk_covariance():
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(100, 3)) @ rng.normal(size=(3, 80)) + rng.normal(size=(100, 80))
    Z = (Z - Z.mean(axis=0)) / Z.std(axis=0)
    np.testing.assert_allclose(estimated_covariance(Z), shrunk_covariance(Z))


def test_constant_and_equal_columns_have_knockoffs():
    X = np.random.default_rng(0).normal(size=(60, 4))
    X[:, 1], X[:, 2] = X[:, 0], 3.0
    copy = knockoff_model(X)(np.random.default_rng(1))
    assert np.isfinite(copy).all()
    np.testing.assert_array_equal(copy[:, 2], 3.0)


def test_knockoffs_keep_the_values_of_each_column():
    rng = np.random.default_rng(0)
    X = np.column_stack([np.exp(rng.normal(size=300)), rng.integers(0, 30, 300)])
    copy = knockoff_model(X)(rng)
    for column in range(2):
        assert set(copy[:, column]) <= set(X[:, column])
    np.testing.assert_allclose(np.median(copy, axis=0), np.median(X, axis=0), rtol=0.25)


def test_knockoffs_of_columns_with_many_equal_values_keep_their_distribution():
    rng = np.random.default_rng(0)
    X = rng.lognormal(size=(300, 4)) * (rng.random((300, 4)) > 0.9)
    copy = knockoff_model(X)(rng)
    np.testing.assert_array_equal(np.sort(copy, axis=0), np.sort(X, axis=0))
    assert np.mean((copy != 0) & (X != 0)) < 0.5 * np.mean(X != 0)


def test_wide_tables_have_knockoffs_from_common_factors(monkeypatch):
    monkeypatch.setattr("fsjax.auto.certainty.decoys.MAX_COVARIANCE", 20)
    rng = np.random.default_rng(0)
    common = rng.normal(size=(500, 1))
    X = common + 0.7 * rng.normal(size=(500, 40))
    copy = knockoff_model(X)(rng)
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
    both, units = decoy_model(X, design.groups)(rng)
    in_order = both[:, np.argsort(units)]
    np.testing.assert_array_equal(in_order[:, :2], X)
    np.testing.assert_array_equal(np.sort(units), [0, 1, 2, 3])
    assert in_order[:, 3].sum() == X[:, 1].sum()


def test_decoys_of_numbers_with_missing_values_keep_their_correlations():
    rng = np.random.default_rng(0)
    X = neighbours(rng, 2000, 2, 0.9)
    indicator = rng.random(2000) < 0.05
    X[indicator, 1] = 0.0
    groups = np.array([0, 1, 1])
    both, units = decoy_model(np.column_stack([X, indicator]), groups)(rng)
    value, missing = both[:, units == 3].T
    # A permuted copy has a correlation of 0.
    correlation = np.corrcoef(X.T)[0, 1]
    assert np.corrcoef(X[:, 0], value)[0, 1] == pytest.approx(correlation, abs=0.05)
    np.testing.assert_array_equal(np.sort(missing), np.sort(indicator))
    assert (missing != indicator).any()


def test_which_of_a_pair_stands_first_is_drawn_at_random():
    X = np.random.default_rng(0).normal(size=(50, 400))
    _, units = decoy_model(X, design_of_array(X, None, None).groups)(np.random.default_rng(1))
    np.testing.assert_array_equal(units[:400] % 400, units[400:] % 400)
    np.testing.assert_array_equal(np.sort(units), np.arange(800))
    assert 0.4 < (units[:400] < 400).mean() < 0.6
    order = swapped(units[:400] >= 400)
    np.testing.assert_array_equal(order[order], np.arange(800))


def drawn_by_unit(X, groups: np.ndarray) -> np.ndarray:
    """Columns and decoys, sorted by unit."""
    both, units = decoy_model(X, groups)(np.random.default_rng(3))
    both = both.toarray() if sp.issparse(both) else both
    return both[:, np.argsort(units, kind="stable")]


@pytest.mark.parametrize("kind", ["numbers", "factors", "whole numbers", "mixed", "sparse"])
def test_decoys_do_not_depend_on_the_order_of_the_columns(kind, monkeypatch):
    if kind == "factors":
        monkeypatch.setattr("fsjax.auto.certainty.decoys.MAX_COVARIANCE", 5)
        monkeypatch.setattr("fsjax.auto.certainty.decoys._FACTORS", 3)
    rng = np.random.default_rng(0)
    X = neighbours(rng, 80, 12, 0.6)
    if kind == "whole numbers":
        X = X.round()
    if kind == "mixed":
        X[:, ::3] = X[:, ::3].round()
    table = sp.csr_array(np.where(X > 0, X, 0)) if kind == "sparse" else X
    order = rng.permutation(12)
    first, second = (drawn_by_unit(columns, np.arange(12)) for columns in (table, table[:, order]))
    np.testing.assert_array_equal(second, first[:, np.concatenate([order, 12 + order])])


def test_units_of_several_columns_keep_their_decoys_in_another_order():
    rng = np.random.default_rng(0)
    color = np.eye(3)[rng.integers(0, 3, 60)]
    X = np.column_stack([rng.normal(size=60), color, rng.normal(size=60)])
    first = drawn_by_unit(X, np.array([0, 1, 1, 1, 2]))
    second = drawn_by_unit(X[:, [4, 1, 2, 3, 0]], np.array([0, 1, 1, 1, 2]))
    places = [4, 1, 2, 3, 0]
    np.testing.assert_array_equal(second, first[:, [*places, *(5 + np.array(places))]])


@slow_ids("forest")
@pytest.mark.parametrize("name", ["l1", "forest"])
def test_rates_do_not_depend_on_the_order_of_the_columns(name):
    rng = np.random.default_rng(0)
    X = neighbours(rng, 100, 15, 0.5)
    part, order = Part(X, X[:, 3] * X[:, 4] + X[:, 9]), rng.permutation(15)
    rates = []
    for columns in (np.arange(15), order):
        some = Part(X[:, columns], part.y)
        model = decoy_model(some.X, np.arange(15))
        sets = [simple_scores(some, model, "regression", 15, name, n) for n in range(3)]
        rates.append(false_discovery_rates(*map(np.concatenate, zip(*sets, strict=True))))
    np.testing.assert_array_equal(rates[1], rates[0][order])


def test_rates_are_known_where_the_sets_of_decoys_suffice():
    # One column above all decoys: a set of decoys allows a rate of 1, ten of 0.1.
    scores = np.tile([9.0, 5.0, 0.0, 0.0], (10, 1))
    decoys = np.tile([0.0, 0.0, 0.0, 1.0], (10, 1))
    assert known_rates(scores, decoys)[0] == pytest.approx(smallest_rate(10, 2)) == 0.05
    np.testing.assert_array_equal(known_rates(scores[:, :1], decoys[:, :1]), [0.1])
    np.testing.assert_array_equal(known_rates(scores[:4, :1], decoys[:4, :1]), [np.nan])
    # A column that is not more important than its decoy is a false discovery in any case.
    assert known_rates(scores[:1], decoys[:1])[3] == 1.0
    assert np.isnan(known_rates(np.zeros((0, 3)), np.zeros((0, 3)))).all()
    # One that is, beside one set of decoys, has a rate that is 1 only for want of sets.
    assert np.isnan(known_rates(scores[:1, :1], decoys[:1, :1]))


def test_rates_that_differ_between_sets_of_decoys_are_not_known():
    # Four decoys of the sixteen sets of one column are above it, all in one set, or in four.
    scores, decoys = np.ones((16, 6)), np.zeros((16, 6))
    scores[:, 1:] = 0.0
    decoys[:, 1:] = 0.1
    spread, together = decoys.copy(), decoys.copy()
    spread[[0, 4, 8, 12], 1] = 2.0
    together[0, 1:5] = 2.0
    np.testing.assert_array_equal(
        false_discovery_rates(scores, spread), false_discovery_rates(scores, together)
    )
    assert known_rates(scores, spread)[0] == pytest.approx(5 / 16)
    assert np.isnan(known_rates(scores, together)[0])


def by_hand(scores: np.ndarray, decoys: np.ndarray) -> np.ndarray:
    """The definition, threshold by threshold."""
    gains, sets = (scores - decoys).mean(axis=0), len(scores)
    rates = np.ones(len(gains))
    for unit, gain in enumerate(gains):
        if gain > 0:
            thresholds = gains[gains <= gain]
            shares = [
                (1 + (decoys - scores >= t).sum()) / sets / (gains >= t).sum() for t in thresholds
            ]
            rates[unit] = min(1.0, *shares, 1.0)
    return rates


@given(st.integers(0, 10_000), st.integers(1, 4), st.integers(1, 12))
def test_rates_are_those_of_the_definition(seed, sets, units):
    rng = np.random.default_rng(seed)
    # Few different values, so that there are ties.
    scores, decoys = rng.integers(0, 6, (2, sets, units)).astype(float)
    np.testing.assert_allclose(false_discovery_rates(scores, decoys), by_hand(scores, decoys))


@slow_ids("0.0")
@pytest.mark.parametrize("correlation", [0.0, 0.6])
def test_few_of_the_discoveries_are_false(correlation):
    false, discovered = [], []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        X = neighbours(rng, 400, 120, correlation)
        true = rng.choice(120, 10, replace=False)
        y = X[:, true] @ rng.choice([-0.4, 0.4], 10) + rng.standard_normal(400)
        draw, real, decoys = decoy_model(X, design_of_array(X, None, None).groups), [], []
        for _ in range(4):
            both, units = draw(rng)
            scores = l1(Part(both, y), "regression", 0)
            scores = rank_units(scores, units, (1,)).scores
            real.append(scores[:120])
            decoys.append(scores[120:])
        chosen = np.flatnonzero(false_discovery_rates(np.array(real), np.array(decoys)) <= 0.1)
        false.append(1 - np.isin(chosen, true).mean() if len(chosen) else 0.0)
        discovered.append(np.isin(true, chosen).mean())
    assert np.mean(false) < 0.15
    assert np.mean(discovered) > 0.9


def test_statistic_that_predicts_best_competes_with_decoys():
    means = {"l1": 0.7, "forest": 0.9, "lassonet": 0.95, "univariate": 0.95}
    assert decoy_statistic(means, 0.65, dense=True) == "l1"
    assert decoy_statistic(means, 0.65, dense=True, quick="forest") == "forest"
    assert decoy_statistic(means, 0.85, dense=True, quick="forest") == "forest"
    assert decoy_statistic(means, 0.92, dense=True) == "network"
    assert decoy_statistic(means, 0.92, dense=False) == "l1"
    assert decoy_statistic({"icap": 0.95, "l1": 0.7}, 0.92, dense=True) == "l1"


def test_each_training_of_the_network_has_decoys_of_its_own(monkeypatch):
    tables = []

    def untrained(method: object, drawn: list[np.ndarray], *_: object, **__: object) -> np.ndarray:
        tables.extend(drawn)
        return np.zeros((len(drawn), drawn[0].shape[1]))

    monkeypatch.setattr(false_discovery, "scores_of_tables", untrained)
    X = np.random.default_rng(0).normal(size=(30, 4))
    draw = decoy_model(X, design_of_array(X, None, None).groups)
    for seed in (0, 1):
        network_scores(Part(X, X[:, 0]), draw, "regression", 4, num_sets=3, seed=seed)
    assert len({table.tobytes() for table in tables}) == 6


@pytest.mark.long
def test_network_finds_columns_that_matter_together():
    data = ring_xor_sum(600, 20, "xor")
    X = data.X.astype(np.float64)
    draw = decoy_model(X, design_of_array(X, None, None).groups)
    scores, decoys = network_scores(Part(X, data.y), draw, "classification", 20, num_sets=5)
    selected = np.flatnonzero(false_discovery_rates(scores, decoys) <= 0.2)
    assert tuple(selected) == data.informative
