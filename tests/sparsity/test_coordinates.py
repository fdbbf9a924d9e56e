"""Layers by their coordinates against the same layers as dense matrices."""

from __future__ import annotations

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jax.test_util import check_grads

from fsjax.sparsity.coordinates import gather, positions_of, scatter, sparse_dot

#: Around the blocks of 32 in which entries are counted.
SHAPES = [(1, 1), (31,), (32,), (33,), (8, 8), (5, 4, 3)]

find = jax.jit(positions_of, static_argnames="count")


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_positions_are_those_of_numpy(shape: tuple[int, ...]) -> None:
    size = int(np.prod(shape))
    rng = np.random.default_rng(size)
    for count in sorted({0, 1, size // 2, size - 1, size}):
        mask = (rng.permutation(size) < count).reshape(shape)
        found = find(jnp.asarray(mask), count)
        assert found.dtype == jnp.int32
        chex.assert_trees_all_equal(np.asarray(found), np.flatnonzero(mask).astype(np.int32))


def test_positions_where_blocks_are_empty_or_full() -> None:
    mask = np.zeros(32 * 6 + 5, bool)
    mask[64:96] = True  # A full block after two empty ones.
    mask[[159, 160, -1]] = True  # The ends of two blocks, and of the last one, which is cut.
    found = find(jnp.asarray(mask), int(mask.sum()))
    chex.assert_trees_all_equal(np.asarray(found), np.flatnonzero(mask).astype(np.int32))


@settings(max_examples=40, deadline=None)
@given(
    # A few shapes and counts, as each pair of them is a program of its own.
    case=st.sampled_from([((6, 11), 1), ((6, 11), 17), ((40, 25), 66)]),
    seed=st.integers(0, 2**32),
)
def test_positions_of_any_mask(case: tuple[tuple[int, int], int], seed: int) -> None:
    shape, count = case
    rng = np.random.default_rng(seed)
    mask = (rng.permutation(shape[0] * shape[1]) < count).reshape(shape)
    found = find(jnp.asarray(mask), count)
    chex.assert_trees_all_equal(np.asarray(found), np.flatnonzero(mask).astype(np.int32))


@pytest.mark.parametrize("count", [1, 20, 65])
def test_scatter_undoes_gather(count: int) -> None:
    rng = np.random.default_rng(count)
    mask = (rng.permutation(65) < count).reshape(5, 13)
    dense = np.where(mask, rng.normal(size=mask.shape), 0).astype(np.float32)

    @jax.jit
    def there_and_back(dense: jax.Array, mask: jax.Array) -> tuple[jax.Array, jax.Array]:
        positions = positions_of(mask, count)
        values = gather(dense, positions)
        return values, scatter(values, positions, mask)

    values, back = there_and_back(dense, mask)
    chex.assert_trees_all_equal(np.asarray(values), dense[mask])
    chex.assert_trees_all_equal(np.asarray(back), dense)


def test_without_positions_arrays_stay() -> None:
    leaf, nothing = jnp.arange(6.0).reshape(2, 3), jnp.zeros(0, jnp.int32)
    assert gather(leaf, nothing) is leaf
    assert scatter(leaf, nothing, leaf > 0) is leaf


def layer(seed: int, count: int = 20) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Weights ``(9, 6)``, their mask and activations ``(9, 4)``."""
    rng = np.random.default_rng(seed)
    mask = (rng.permutation(54) < count).reshape(9, 6)
    weight = jnp.asarray(np.where(mask, rng.normal(size=mask.shape), 0), jnp.float32)
    return weight, jnp.asarray(mask), jnp.asarray(rng.normal(size=(9, 4)), jnp.float32)


def product(weight: jax.Array, mask: jax.Array, x: jax.Array, count: int = 20) -> jax.Array:
    positions = positions_of(mask, count)
    rows, columns = positions // 6, positions % 6
    return sparse_dot(gather(weight, positions), rows, columns, x, jnp.zeros(6))


@pytest.mark.parametrize("count", [1, 20, 54])
def test_product_is_that_of_the_dense_layer(count: int) -> None:
    weight, mask, x = layer(0, count)
    found = jax.jit(product, static_argnames="count")(weight, mask, x, count=count)
    chex.assert_trees_all_close(found, weight.T @ x, rtol=1e-5, atol=1e-6)


def test_gradients_are_those_of_the_dense_layer() -> None:
    weight, mask, x = layer(0)

    def of_dense(weight: jax.Array, x: jax.Array) -> jax.Array:
        return jnp.sum(jnp.sin(jnp.where(mask, weight, 0).T @ x))

    @jax.jit
    def of_sparse(weight: jax.Array, x: jax.Array) -> jax.Array:
        return jnp.sum(jnp.sin(product(weight, mask, x)))

    slopes = [jax.jit(jax.grad(of, argnums=(0, 1)))(weight, x) for of in (of_sparse, of_dense)]
    chex.assert_trees_all_close(*slopes, rtol=1e-5, atol=1e-5)
    # Finite differences; the step is one at which float32 is precise enough.
    check_grads(of_sparse, (weight, x), order=1, modes=["rev"], atol=1e-2, rtol=1e-2, eps=1e-2)


def test_vmap_agrees_with_one_at_a_time() -> None:
    def square(weight: jax.Array, mask: jax.Array, x: jax.Array) -> jax.Array:
        return jnp.sum(jnp.square(product(weight, mask, x)))

    layers = [layer(seed) for seed in range(3)]
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *layers)
    slope = jax.value_and_grad(square, argnums=(0, 2))
    together, one = jax.jit(jax.vmap(slope))(*stacked), jax.jit(slope)
    alone = jax.tree.map(lambda *leaves: jnp.stack(leaves), *(one(*each) for each in layers))
    chex.assert_trees_all_close(together, alone, rtol=1e-5, atol=1e-5)
