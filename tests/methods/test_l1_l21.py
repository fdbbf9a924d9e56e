"""L1_L21 against proximal steps without acceleration, and as a method."""

from __future__ import annotations

import functools
import warnings

import numpy as np
import pytest
import sklearn.datasets
from selection_tables import linear_table

import fsjax
from fsjax.methods.l1_l21 import multitask_logistic


def objective(
    x: np.ndarray, signs: np.ndarray, weight: np.ndarray, w: np.ndarray, b: np.ndarray, z: float
) -> float:
    """Term by term."""
    total = 0.0
    for n in range(len(x)):
        for c in range(signs.shape[1]):
            margin = signs[n, c] * (x[n] @ w[:, c] + b[c])
            total += weight[n] * np.log1p(np.exp(-margin))
    total /= weight.sum() * signs.shape[1]
    return total + z * sum(np.sqrt(row @ row) for row in w)


def reference(
    x: np.ndarray, signs: np.ndarray, weight: np.ndarray, z: float
) -> tuple[np.ndarray, np.ndarray]:
    """Many plain proximal gradient steps of a small size."""
    w, b = np.zeros((x.shape[1], signs.shape[1])), np.zeros(signs.shape[1])
    for _ in range(8000):
        slope = -signs / (1 + np.exp(signs * (x @ w + b)))
        slope *= weight[:, None] / (weight.sum() * signs.shape[1])
        w, b = w - 0.5 * x.T @ slope, b - 0.5 * slope.sum(axis=0)
        norms = np.maximum(np.sqrt((w**2).sum(axis=1, keepdims=True)), 1e-300)
        w *= np.maximum(0.0, 1 - 0.5 * z / norms)
    return w, b


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("penalty", [0.04, 0.06])
def test_it_ends_at_the_minimum(penalty: float, weighted: bool) -> None:
    x, y = linear_table(60)
    signs = 2.0 * np.eye(3)[y] - 1.0
    weight = np.where(np.arange(60) < 20, 3.0, 1.0) if weighted else np.ones(60)
    weights = multitask_logistic(x, signs, weight, penalty=penalty, tolerance=1e-13)
    expected, intercept = reference(x, signs, weight, penalty)
    np.testing.assert_allclose(weights, expected, atol=1e-4)
    assert np.array_equal(weights.any(axis=1), expected.any(axis=1))
    assert 0 < weights.any(axis=1).sum() < 8
    least = objective(x, signs, weight, weights, intercept, penalty)
    assert least < objective(x, signs, weight, 0.9 * weights, intercept, penalty)
    assert least < objective(x, signs, weight, 1.1 * weights, intercept, penalty)


@pytest.mark.parametrize("name", ["breast_cancer", "wine", "digits"])
def test_the_default_tolerance_ends_near_the_minimum(name: str) -> None:
    """Where the momentum turns, the objective stands still far from it."""
    x, y = getattr(sklearn.datasets, f"load_{name}")(return_X_y=True)
    signs = 2.0 * np.eye(y.max() + 1)[y] - 1.0
    x = (x - x.mean(axis=0)) / np.maximum(x.std(axis=0), 1e-9)
    solve = functools.partial(multitask_logistic, x, signs, np.ones(len(x)), relative=True)
    found, least = (
        np.linalg.norm(weights, axis=1)
        for weights in (solve(), solve(tolerance=1e-13, max_steps=20_000))
    )
    np.testing.assert_allclose(found, least, atol=0.01 * least.max())


def test_a_high_penalty_leaves_nothing() -> None:
    x, y = linear_table(60)
    signs = 2.0 * np.eye(3)[y] - 1.0
    assert not multitask_logistic(x, signs, np.ones(60), penalty=1.0).any()


@pytest.mark.parametrize("classes", [2, 30])
def test_a_relative_penalty_is_a_share_of_the_smallest_that_leaves_nothing(classes: int) -> None:
    rng = np.random.default_rng(5)
    y = np.arange(120) % classes
    x = rng.normal(size=(120, 6))
    x[:, 2] += y / classes
    signs, weight = 2.0 * np.eye(classes)[y] - 1.0, rng.uniform(0.5, 1.5, 120)
    almost = multitask_logistic(x, signs, weight, 0.98, 1e-13, relative=True)
    assert almost.any(axis=1).sum() == 1
    assert not multitask_logistic(x, signs, weight, 1.001, 1e-13, relative=True).any()


def test_many_classes_leave_weights_at_the_default_penalty() -> None:
    """A factor that suits two classes leaves no weight at all for thirty."""
    y = np.arange(300) % 30
    x = np.random.default_rng(6).normal(size=(300, 20))
    x[:, 7] += y / 5
    fitted = fsjax.fit(fsjax.methods.l1_l21(), (x, y), num_features=1)
    assert fitted.selected[0].tolist() == [7]
    fixed = fsjax.methods.l1_l21(penalty=0.1, relative=False)
    with pytest.warns(UserWarning, match="same score"):
        assert not fsjax.fit(fixed, (x, y), num_features=1).scores.any()
    some = functools.partial(fsjax.fit, fsjax.methods.l1_l21(penalty=0.95), (x, y))
    with pytest.warns(UserWarning, match=r"2 of 19 columns .* same score \(0\) .* K = 1, or"):
        some(num_features=3)
    with warnings.catch_warnings(action="error"):
        some(num_features=1)
