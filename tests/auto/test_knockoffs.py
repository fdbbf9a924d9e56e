"""``fsjax.false_discoveries``: networks and functions against decoys.

Covers ``fsjax.auto.knockoffs``.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import fsjax
from fsjax.auto.stacked_fits import scores_of_tables, shares


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


def test_methods_that_select_a_number_take_narrow_tables():
    X, y = linear_table()
    result = fsjax.false_discoveries("random_selection", X, y, num_draws=3, task="classification")
    assert result.rates.shape == (12,)


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


@pytest.mark.parametrize(
    ("method", "options", "message"),
    [
        (3, {}, "method is of the type int; give the name of a method"),
        ("fisher", {}, "did you mean 'fisher_score'"),
        ("laplacian_score", {}, "laplacian_score selects without a target"),
        ("fisher_score", {"task": "survival"}, "task='survival'"),
        ("fisher_score", {"seeds": (0,)}, "sets seeds itself"),
        ("fisher_score", {"num_draws": 0}, "num_draws=0"),
        (correlations, {"num_epochs": 3}, "num_epochs is for methods of the library"),
        (correlations, {"num_seeds": 2}, "num_seeds is for methods of the library"),
        (correlations, {"task": "clustering"}, "task='clustering'"),
        (lambda X, y: X[0, :3], {}, r"returned scores of the shape \(3,\); return one for each"),
        (lambda X, y: np.full(X.shape[1], np.nan), {}, "24 scores that are NaN"),
    ],
)
def test_what_does_not_fit_is_refused_before_training(method, options, message):
    with pytest.raises(fsjax.FsjaxError, match=message):
        fsjax.false_discoveries(method, *linear_table(), **options)


def test_data_that_cannot_be_used_is_refused():
    X, y = linear_table()
    for rows, target, message in (
        (X[:5], y[:5], "X has 5 rows; give at least 10"),
        (np.where(X > 2, np.nan, X), y, "missing"),
        (X, None, "y is None"),
        (X, y[:9], "X has 200 rows but y has 9"),
    ):
        with pytest.raises(fsjax.FsjaxError, match=message):
            fsjax.false_discoveries(correlations, rows, target)
    with pytest.raises(fsjax.ConfigError, match="rate=1"):
        fsjax.false_discoveries(correlations, X, y).select(1)
