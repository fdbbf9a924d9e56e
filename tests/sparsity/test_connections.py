"""Layers stored by their connections, compared with the same layers as matrices."""

from __future__ import annotations

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fsjax.sparsity import connections as module
from fsjax.sparsity.connections import (
    Connections,
    connected,
    connected_dot,
    indexed,
    of_inputs,
    products,
)


def random_connections(
    count: int = 300, shape: tuple[int, int] = (40, 30)
) -> tuple[np.ndarray, Connections]:
    """A matrix and its connections; some neurons have none."""
    rng = np.random.default_rng(count)
    flat = np.sort(rng.permutation(shape[0] * shape[1] - 60)[:count])
    matrix = np.zeros(shape, np.float32)
    matrix.ravel()[flat] = rng.normal(size=count)
    where = (jnp.asarray(part, jnp.int32) for part in np.divmod(flat, shape[1]))
    return matrix, connected(*where, shape)


@pytest.mark.parametrize("batch", [2, 12])
@pytest.mark.parametrize("wide", [False, True], ids=["plain", "indexed"])
def test_products_and_their_gradients(batch: int, wide: bool, monkeypatch) -> None:
    matrix, connections = random_connections()
    # Parts of two rows of the batch; the last one is not full.
    monkeypatch.setattr(module, "_MAX_HELD", 5 * 300 if batch > 2 else 2**24)
    rng = np.random.default_rng(batch)
    x, wish = (rng.normal(size=(size, batch)).astype(np.float32) for size in matrix.shape)
    values = matrix[connections.rows, connections.columns]

    @jax.jit
    def both(values, connections, x):
        out, pull = jax.vjp(lambda v, x: connected_dot(v, connections, x), values, x)
        return out, *pull(jnp.asarray(wish))

    out, to_values, to_x = both(values, indexed(connections, wide), x)
    chex.assert_trees_all_close(out, matrix.T @ x, atol=1e-5)
    chex.assert_trees_all_close(to_x, matrix @ wish, atol=1e-5)
    chex.assert_trees_all_close(
        to_values, (x @ wish.T)[connections.rows, connections.columns], atol=1e-5
    )


def test_products_do_not_depend_on_the_size_of_their_pieces(monkeypatch) -> None:
    """Three pieces of 128 connections, the last one not full, and one piece."""
    _, connections = random_connections()
    rng = np.random.default_rng(0)
    x, y = (rng.normal(size=(size, 12)).astype(np.float32) for size in connections.shape)
    rows, columns = connections.rows, connections.columns
    in_one = jax.jit(lambda x, y: products(x, y, rows, columns))(x, y)
    monkeypatch.setattr(module, "_MAX_PRODUCTS", 120 * 12)
    in_three = jax.jit(lambda x, y: products(x, y, rows, columns))(x, y)
    chex.assert_trees_all_equal(in_one, in_three)
    chex.assert_trees_all_close(in_three, (x @ y.T)[rows, columns], atol=1e-5)


def test_vmapped_seeds() -> None:
    matrix, connections = random_connections()
    connections = indexed(connections)
    x = np.random.default_rng(0).normal(size=(2, 40, 9)).astype(np.float32)
    values = jnp.stack([matrix[connections.rows, connections.columns]] * 2) * jnp.array(
        [[1.0], [2.0]]
    )
    both = jax.tree.map(lambda leaf: jnp.stack([leaf, leaf]), connections)
    out = jax.jit(jax.vmap(connected_dot))(values, both, x)
    chex.assert_trees_all_close(out, np.stack([matrix.T @ x[0], 2 * matrix.T @ x[1]]), atol=1e-5)


def test_sums_over_inputs() -> None:
    matrix, connections = random_connections()
    sums = of_inputs(jnp.abs(matrix[connections.rows, connections.columns]), connections)
    chex.assert_trees_all_close(sums, np.abs(matrix).sum(axis=1), rtol=1e-6)
    assert not sums[-1]
