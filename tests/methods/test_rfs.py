"""RFS against its paper's algorithm with the matrices as they stand, and as a method."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from selection_tables import linear_table

import fsjax
from fsjax.methods.rfs import rfs_weights


def reference(x: np.ndarray, y: np.ndarray, penalty: float, steps: int) -> np.ndarray:
    """``U = D^-1 A' (A D^-1 A')^-1 Y`` with ``A = [X, gamma I]`` (Nie et al., algorithm 1)."""
    count, columns = x.shape
    a = np.hstack([x, penalty * np.eye(count)])
    d = np.eye(columns + count)
    for _ in range(steps):
        inverse = np.linalg.inv(d)
        u = inverse @ a.T @ np.linalg.inv(a @ inverse @ a.T + 1e-6 * np.eye(count)) @ y
        d = np.diag([1 / (2 * np.sqrt(sum(value**2 for value in row))) for row in u])
    return u[:columns]


def objective(x: np.ndarray, y: np.ndarray, w: np.ndarray, penalty: float) -> float:
    norms = np.linalg.norm(x @ w - y, axis=1).sum()
    return norms + penalty * np.linalg.norm(w, axis=1).sum()


@pytest.mark.parametrize("shape", [(40, 8), (12, 20)])
@pytest.mark.parametrize("penalty", [0.1, 1.0])
def test_weights_are_those_of_the_algorithm(shape: tuple[int, int], penalty: float) -> None:
    x, y = linear_table(*shape)
    targets = np.eye(3)[y]
    for steps in (1, 4):
        weights = rfs_weights(
            x, targets, np.ones(len(x)), penalty=penalty, tolerance=0, max_steps=steps
        )
        np.testing.assert_allclose(weights, reference(x, targets, penalty, steps), atol=1e-6)


def test_it_ends_at_a_minimum() -> None:
    x, y = linear_table(60)
    targets = np.eye(3)[y]
    weights = rfs_weights(x, targets, np.ones(60), penalty=2.0, tolerance=1e-9)
    least = objective(x, targets, weights, 2.0)
    rng = np.random.default_rng(1)
    for size in (1e-3, 1e-2, 0.1, 1.0):
        for _ in range(20):
            moved = weights + size * rng.normal(size=weights.shape)
            assert objective(x, targets, moved, 2.0) > least - 1e-5
    assert least < objective(x, targets, 0 * weights, 2.0)


def test_whole_weights_are_repeated_rows() -> None:
    x, y = linear_table(60)
    targets = np.eye(3)[y]
    weight = np.where(np.arange(60) < 20, 2.0, 1.0)
    weights = rfs_weights(x, targets, weight, tolerance=1e-10)
    twice = np.concatenate([x, x[:20]]), np.concatenate([targets, targets[:20]]), np.ones(80)
    np.testing.assert_allclose(weights, rfs_weights(*twice, tolerance=1e-10), atol=1e-3)


def test_the_target_of_other_classes() -> None:
    x, y = linear_table(60)
    spec = fsjax.Spec(8, 3, "classification", 60, 16, 1, steps_per_epoch=4)
    rows = fsjax.Batch(jnp.asarray(x, jnp.float32), jnp.asarray(y), jnp.ones(60))
    method = fsjax.methods.rfs(penalty=0.5, low=-1.0)
    scores = method.select(method.init(jax.random.key(0), spec, rows)).scores
    weights = rfs_weights(x, 2 * np.eye(3)[y] - 1, np.ones(60), penalty=0.5)
    np.testing.assert_allclose(scores, np.linalg.norm(weights, axis=1), rtol=1e-3)
