"""RFS against its paper's algorithm with the matrices as they stand, and as a method."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fsjax
from fsjax.errors import ConfigError
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


def table(rows: int, columns: int) -> tuple[np.ndarray, np.ndarray]:
    """Columns 1 and 5 tell of three classes."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, rows)
    x = rng.normal(size=(rows, columns))
    x[:, 1] += 2.0 * (y == 1)
    x[:, 5] -= 2.0 * (y == 2)
    return x, y


@pytest.mark.parametrize("shape", [(40, 8), (12, 20)])
@pytest.mark.parametrize("penalty", [0.1, 1.0])
def test_weights_are_those_of_the_algorithm(shape: tuple[int, int], penalty: float) -> None:
    x, y = table(*shape)
    targets = np.eye(3)[y]
    for steps in (1, 4):
        found = rfs_weights(
            x, targets, np.ones(len(x)), penalty=penalty, tolerance=0, max_steps=steps
        )
        np.testing.assert_allclose(found, reference(x, targets, penalty, steps), atol=1e-6)


def test_it_ends_at_a_minimum() -> None:
    x, y = table(60, 8)
    targets = np.eye(3)[y]
    found = rfs_weights(x, targets, np.ones(60), penalty=2.0, tolerance=1e-9)
    least = objective(x, targets, found, 2.0)
    rng = np.random.default_rng(1)
    for size in (1e-3, 1e-2, 0.1, 1.0):
        for _ in range(20):
            moved = found + size * rng.normal(size=found.shape)
            assert objective(x, targets, moved, 2.0) > least - 1e-5
    assert least < objective(x, targets, 0 * found, 2.0)


def test_whole_weights_are_repeated_rows() -> None:
    x, y = table(60, 8)
    targets = np.eye(3)[y]
    weight = np.where(np.arange(60) < 20, 2.0, 1.0)
    found = rfs_weights(x, targets, weight, tolerance=1e-10)
    twice = np.concatenate([x, x[:20]]), np.concatenate([targets, targets[:20]]), np.ones(80)
    np.testing.assert_allclose(found, rfs_weights(*twice, tolerance=1e-10), atol=1e-3)


def test_finds_the_columns_that_tell_of_the_class() -> None:
    x, y = table(200, 12)
    method = fsjax.methods.rfs()
    result = fsjax.fit(method, (x, y), num_features=2, seeds=(0, 1))
    assert [set(row) for row in result.selected.tolist()] == [{1, 5}] * 2
    order = np.random.default_rng(3).permutation(12)
    again = fsjax.fit(method, (x[:, order], y), num_features=2)
    np.testing.assert_allclose(again.scores[0], result.scores[0, order], rtol=1e-3, atol=1e-6)
    shuffled = fsjax.fit(method, (x, np.random.default_rng(4).permutation(y)), num_features=2)
    assert set(shuffled.selected[0].tolist()) != {1, 5}
    assert shuffled.scores.max() < 0.8 * result.scores.max()


def test_rows_without_weight_do_not_count() -> None:
    x, y = table(40, 8)
    method = fsjax.methods.rfs()
    spec = fsjax.Spec(8, 3, "classification", 47, 16, 1, steps_per_epoch=3)
    x = jnp.asarray(x, jnp.float32)
    more = fsjax.Batch(
        jnp.concatenate([x, jnp.full((7, 8), 50.0)]),
        jnp.concatenate([y, jnp.zeros(7, int)]),
        (jnp.arange(47) < 40) * 1.0,
    )
    padded = method.init(jax.random.key(0), spec, more)
    plain = method.init(jax.random.key(0), spec, fsjax.Batch(x, jnp.asarray(y), jnp.ones(40)))
    np.testing.assert_array_equal(method.select(padded).scores, method.select(plain).scores)


def test_a_penalty_of_zero_is_refused() -> None:
    with pytest.raises(ConfigError, match="penalty=0"):
        fsjax.methods.rfs(penalty=0.0)
