"""``fsjax.false_discoveries``: networks and functions against decoys.

Covers ``fsjax.auto.knockoffs``.
"""

from __future__ import annotations

import functools

import numpy as np
import pandas as pd
import pytest
from bad_calls import bad_calls, refuses
from marks import slow_ids

import fsjax
from fsjax.auto.contest.stacked_fits import scores_of_tables, shares


def linear_table(seed: int = 0, columns: int = 12) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(200, columns))
    return X, (X[:, 0] + X[:, 1] - X[:, 2] + 0.3 * rng.normal(size=200) > 0).astype(int)


def correlations(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.abs(np.corrcoef(X.T, y)[-1, :-1])


def small_network() -> fsjax.Method:
    return fsjax.methods.neural_network(
        hidden=(8,), optimizer="adam", learning_rate=1e-2, rank_by="attribution"
    )


def test_a_function_of_rows_and_target_scores_columns_and_decoys():
    X, y = linear_table()
    frame = pd.DataFrame(X, columns=[f"c{number}" for number in range(12)])
    result = fsjax.false_discoveries(correlations, frame, y)
    assert set(result.select(0.1)) == {0, 1, 2}
    assert result.method == "correlations"
    assert result.names == tuple(frame.columns)
    assert result.scores.shape == result.decoy_scores.shape == (10, 12)
    assert result.rates.shape == (12,)
    np.testing.assert_allclose(result.scores.sum(axis=1) + result.decoy_scores.sum(axis=1), 1.0)
    assert result.threshold(0.1) == result.gains[result.select(0.1)].min()
    assert "3 at 0.1" in repr(result)


def test_columns_of_noise_are_not_selected():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(100, 30)), rng.integers(0, 2, 100)
    result = fsjax.false_discoveries(correlations, X, y)
    assert len(result.select(0.1)) == 0
    assert result.threshold(0.1) == np.inf


@pytest.mark.slow
def test_a_network_finds_the_columns_that_matter():
    X, y = linear_table()
    result = fsjax.false_discoveries(small_network(), X, y, num_draws=5, num_epochs=10)
    assert set(result.select(0.2)) == {0, 1, 2}
    again = fsjax.false_discoveries(small_network(), X, y, num_draws=5, num_epochs=10)
    np.testing.assert_array_equal(again.scores, result.scores)
    other = fsjax.false_discoveries(small_network(), X, y, num_draws=5, num_epochs=10, seed=1)
    assert (other.decoy_scores != result.decoy_scores).any()


def test_registered_methods_go_by_name_with_their_defaults():
    X, y = linear_table()
    result = fsjax.false_discoveries("fisher_score", X, y)
    assert result.method == "fisher_score"
    assert set(result.select(0.2)) == {0, 1, 2}


def test_each_table_is_trained_on_its_own_rows():
    X, y = linear_table()
    tables = [X, X[:, ::-1]]
    method = fsjax.methods.fisher_score()
    scores = scores_of_tables(method, tables, y, "classification", num_features=1)
    np.testing.assert_allclose(scores[1], scores[0, ::-1], rtol=1e-6)
    assert set(np.argsort(-scores[0])[:3]) == {0, 1, 2}


def test_shares_add_up_to_one_and_are_finite():
    values = shares(np.array([[1.0, -np.inf, 3.0], [0.0, 0.0, 0.0], [-np.inf, np.nan, np.inf]]))
    np.testing.assert_allclose(values, [[0.2, 0.2, 0.6], [0, 0, 0], [0, 0, 0]])


BAD_X, BAD_Y = linear_table()


@bad_calls(
    ({"score": 3}, "method is of the type int; give the name of a method"),
    ({"score": "fisher"}, "did you mean 'fisher_score'"),
    ({"score": "laplacian_score"}, "laplacian_score selects without a target"),
    ({"score": "fisher_score", "task": "survival"}, "task='survival'"),
    ({"score": "fisher_score", "seeds": (0,)}, "sets seeds itself"),
    ({"score": "fisher_score", "num_draws": 0}, "num_draws=0"),
    ({"num_epochs": 3}, "num_epochs is for methods of the library"),
    ({"num_seeds": 2}, "num_seeds is for methods of the library"),
    ({"task": "clustering"}, "task='clustering'"),
    ({"score": lambda X, y: X[0, :3]}, "returned scores of the shape (3,); return one for each"),
    ({"score": lambda X, y: np.full(X.shape[1], np.nan)}, "24 scores that are NaN"),
    (
        {"score": lambda X, y: np.append(np.inf, X[0, 1:])},
        "1 scores that are infinite; return finite",
    ),
    ({"X": BAD_X[:5], "y": BAD_Y[:5]}, "X has 5 rows; give at least 10"),
    ({"X": np.where(BAD_X > 2, np.nan, BAD_X)}, "missing"),
    ({"y": None}, "y is None"),
    ({"y": BAD_Y[:9]}, "X has 200 rows but y has 9"),
    ({"score": np.add, "sample_weight": np.ones(200)}, "add a parameter sample_weight"),
    ({"score": correlations, "sample_weight": np.ones(200)}, "add a parameter sample_weight"),
)
def test_bad_calls(bad):
    call = {"score": correlations, "X": BAD_X, "y": BAD_Y, **bad[0]}
    score, X, y = (call.pop(name) for name in ("score", "X", "y"))
    refuses(lambda: fsjax.false_discoveries(score, X, y, **call), *bad[1:])


def test_a_bad_rate_is_refused():
    result = fsjax.false_discoveries(correlations, BAD_X, BAD_Y)
    refuses(lambda: result.select(1), "rate=1")


def weighted_correlations(
    X: np.ndarray, y: np.ndarray, sample_weight: np.ndarray | None = None
) -> np.ndarray:
    covariance = np.cov(X.T, y, aweights=sample_weight)
    return np.abs(covariance[-1, :-1]) / np.sqrt(np.diag(covariance)[:-1])


def two_tables() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows whose target is column 0, then as many whose target is column 1, and who is first."""
    X = np.random.default_rng(0).normal(size=(160, 6))
    first = np.arange(160) < 80
    return X, (np.where(first, X[:, 0], X[:, 1]) > 0).astype(int), first


@slow_ids("method2")
@pytest.mark.parametrize("method", [weighted_correlations, "fisher_score", small_network()])
def test_rows_of_weight_0_count_as_if_they_did_not_exist(method):
    X, y, first = two_tables()
    options = {"num_draws": 2} | ({"num_epochs": 3} if isinstance(method, fsjax.Method) else {})
    X[-1] = np.nan
    weighted = fsjax.false_discoveries(method, X, y, sample_weight=first, **options)
    some = fsjax.false_discoveries(method, X[first], y[first], **options)
    np.testing.assert_allclose(weighted.scores, some.scores, rtol=1e-5)
    np.testing.assert_allclose(weighted.rates, some.rates)


@pytest.mark.parametrize("method", [weighted_correlations, "fisher_score"])
def test_rows_of_small_weight_hardly_count(method):
    X, y, first = two_tables()
    weight = np.where(first, 1.0, 1e-3)
    gains = fsjax.false_discoveries(method, X, y, num_draws=3, sample_weight=weight).gains
    equal = fsjax.false_discoveries(method, X, y, num_draws=3).gains
    assert gains[1] < 0.2 * gains[0] and equal[1] > 0.25 * equal[0]


def test_weights_of_rows_are_those_of_repeated_rows():
    X, y, first = two_tables()
    weight = np.where(first, 3, 1)
    rows = np.repeat(np.arange(160), weight)
    method = fsjax.methods.fisher_score()
    options = {"task": "classification", "num_features": 1}
    weighted = scores_of_tables(method, [X, X], y, sample_weight=weight, **options)
    repeated = scores_of_tables(method, [X[rows]], y[rows], **options)
    np.testing.assert_allclose(weighted, np.repeat(repeated, 2, axis=0), rtol=1e-4)


def test_rates_do_not_depend_on_the_order_of_the_columns():
    X, y = linear_table()
    X[:, 5:8] = X[:, 5:8].round()
    order = np.random.default_rng(1).permutation(12)
    for method in (correlations, "fisher_score"):
        first = fsjax.false_discoveries(method, X, y, num_draws=3)
        second = fsjax.false_discoveries(method, X[:, order], y, num_draws=3)
        np.testing.assert_array_equal(second.rates, first.rates[order])
        np.testing.assert_allclose(second.scores, first.scores[:, order], rtol=1e-12)


@bad_calls(
    (np.ones(3), "shape (3,); give one for each of the 200 rows"),
    (np.ones((200, 1)), "shape (200, 1)"),
    (np.r_[np.ones(199), -1.0], "sample_weight[199] is -1.0"),
    (np.r_[np.nan, np.ones(199)], "sample_weight[0] is nan"),
    (np.r_[np.inf, np.ones(199)], "sample_weight[0] is inf"),
    (np.zeros(200), "0 for all rows"),
    (np.arange(200) < 5, "X has 5 rows; give at least 10"),
    (["one"] * 200, "give a number of at least 0"),
    (2.0, "shape ()"),
)
def test_bad_weights(bad):
    for score in (weighted_correlations, "fisher_score"):
        call = functools.partial(fsjax.false_discoveries, score, BAD_X, BAD_Y)
        refuses(lambda call=call: call(sample_weight=bad[0]), *bad[1:])
