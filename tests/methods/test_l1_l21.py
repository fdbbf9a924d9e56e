"""L1_L21 against proximal steps without acceleration, and as a method."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fsjax
from fsjax.errors import ConfigError
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
        for row in w:
            row *= max(0.0, 1 - 0.5 * z / np.sqrt(row @ row)) if row.any() else 0.0
    return w, b


def table(rows: int = 60) -> tuple[np.ndarray, np.ndarray]:
    """Columns 1 and 5 tell of three classes."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, rows)
    x = rng.normal(size=(rows, 8))
    x[:, 1] += 1.5 * (y == 1)
    x[:, 5] -= 1.5 * (y == 2)
    return x, y


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("penalty", [0.04, 0.06])
def test_it_ends_at_the_minimum(penalty: float, weighted: bool) -> None:
    x, y = table()
    signs = 2.0 * np.eye(3)[y] - 1.0
    weight = np.where(np.arange(60) < 20, 3.0, 1.0) if weighted else np.ones(60)
    found = multitask_logistic(x, signs, weight, penalty=penalty, tolerance=1e-13)
    expected, intercept = reference(x, signs, weight, penalty)
    np.testing.assert_allclose(found, expected, atol=1e-4)
    assert np.array_equal(found.any(axis=1), expected.any(axis=1))
    assert 0 < found.any(axis=1).sum() < 8
    least = objective(x, signs, weight, found, intercept, penalty)
    assert least < objective(x, signs, weight, 0.9 * found, intercept, penalty)
    assert least < objective(x, signs, weight, 1.1 * found, intercept, penalty)


def test_a_high_penalty_leaves_nothing() -> None:
    x, y = table()
    signs = 2.0 * np.eye(3)[y] - 1.0
    assert not multitask_logistic(x, signs, np.ones(60), penalty=1.0).any()


def test_finds_the_columns_that_tell_of_the_class() -> None:
    x, y = table(300)
    method = fsjax.methods.l1_l21()
    result = fsjax.fit(method, (x, y), num_features=2, seeds=(0, 1))
    assert [set(row) for row in result.selected.tolist()] == [{1, 5}] * 2
    order = np.random.default_rng(3).permutation(8)
    again = fsjax.fit(method, (x[:, order], y), num_features=2)
    np.testing.assert_allclose(again.scores[0], result.scores[0, order], rtol=1e-3, atol=1e-6)
    shuffled = fsjax.fit(method, (x, np.random.default_rng(4).permutation(y)), num_features=2)
    assert set(shuffled.selected[0].tolist()) != {1, 5}
    assert shuffled.scores.max() < 0.5 * result.scores.max()


def test_rows_without_weight_do_not_count() -> None:
    x, y = table()
    method = fsjax.methods.l1_l21()
    spec = fsjax.Spec(8, 3, "classification", 67, 16, 1, steps_per_epoch=4)
    x = jnp.asarray(x, jnp.float32)
    more = fsjax.Batch(
        jnp.concatenate([x, jnp.full((7, 8), 50.0)]),
        jnp.concatenate([y, jnp.zeros(7, int)]),
        (jnp.arange(67) < 60) * 1.0,
    )
    padded = method.init(jax.random.key(0), spec, more)
    plain = method.init(jax.random.key(0), spec, fsjax.Batch(x, jnp.asarray(y), jnp.ones(60)))
    np.testing.assert_array_equal(method.select(padded).scores, method.select(plain).scores)


def test_a_negative_penalty_is_refused() -> None:
    with pytest.raises(ConfigError, match="penalty=-1"):
        fsjax.methods.l1_l21(penalty=-1.0)
