"""Converts between masked matrices and vectors of the weights at the active positions."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array

#: Number of entries of a mask that are counted as a block.
_BLOCK = 32


def positions_of(mask: Array, count: int) -> Array:
    """The flat positions of the ``count`` true entries of a mask, ``(count,)`` int32, ascending."""
    flat = jnp.pad(mask.reshape(-1), (0, -mask.size % _BLOCK)).reshape(-1, _BLOCK)
    cumulative = jnp.cumsum(jnp.sum(flat, axis=1, dtype=jnp.int32))
    wanted = jnp.arange(count, dtype=jnp.int32)
    block = jnp.searchsorted(cumulative, wanted, side="right").astype(jnp.int32)
    before = jnp.where(block > 0, cumulative[block - 1], 0)
    rank = jnp.cumsum(flat[block], axis=1, dtype=jnp.int32)
    inside = jnp.argmax(rank > (wanted - before)[:, None], axis=1)
    return block * _BLOCK + inside.astype(jnp.int32)


def gather(leaf: Array, positions: Array) -> Array:
    """The entries of an array at flat positions; without positions, the array itself."""
    return leaf.reshape(-1)[positions] if positions.size else leaf


def scatter(values: Array, positions: Array, mask: Array) -> Array:
    """Inverse of :func:`gather`: an array in the shape of ``mask`` that is 0 elsewhere."""
    if not positions.size:
        return values
    flat = jnp.zeros(mask.size, values.dtype)
    flat = flat.at[positions].set(values, unique_indices=True, indices_are_sorted=True)
    return flat.reshape(mask.shape)
