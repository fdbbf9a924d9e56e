"""Very sparse layers by their coordinates: the same network at a fraction of the cost.

A mask over dense weights stays the form in which a topology is kept and changed. While it does
not change, a layer with few connections is trained as a vector of weights with their positions.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array

from fsjax.sparsity.connections import products

#: Entries of a mask that are counted together.
_BLOCK = 32

#: Largest density at which this form is the faster one on CPUs (``BENCHMARKS.md``).
MAX_DENSITY = 0.02


def positions_of(mask: Array, count: int) -> Array:
    """Flat positions ``(count,)``, int32, ascending, of the ``count`` true entries of a mask."""
    flat = jnp.pad(mask.reshape(-1), (0, -mask.size % _BLOCK)).reshape(-1, _BLOCK)
    upto = jnp.cumsum(jnp.sum(flat, axis=1, dtype=jnp.int32))
    wanted = jnp.arange(count, dtype=jnp.int32)
    block = jnp.searchsorted(upto, wanted, side="right").astype(jnp.int32)
    before = jnp.where(block > 0, upto[block - 1], 0)
    rank = jnp.cumsum(flat[block], axis=1, dtype=jnp.int32)
    inside = jnp.argmax(rank > (wanted - before)[:, None], axis=1)
    return block * _BLOCK + inside.astype(jnp.int32)


def gather(leaf: Array, positions: Array) -> Array:
    """The entries at flat positions; the leaf itself where there are no positions."""
    return leaf.reshape(-1)[positions] if positions.size else leaf


def scatter(values: Array, positions: Array, mask: Array) -> Array:
    """Undoes :func:`gather` into an array of 0 in the shape of ``mask``."""
    if not positions.size:
        return values
    flat = jnp.zeros(mask.size, values.dtype)
    flat = flat.at[positions].set(values, unique_indices=True, indices_are_sorted=True)
    return flat.reshape(mask.shape)


@jax.custom_vjp
def sparse_dot(values: Array, rows: Array, columns: Array, x: Array, like: Array) -> Array:
    """A sparse ``(I, O)`` layer on activations with the neurons first: ``(I, B) -> (O, B)``.

    Args:
      values: ``(n,)`` weights.
      rows, columns: ``(n,)`` their input neurons, ascending, and their output neurons.
      x: ``(I, B)``.
      like: any array of length O, which tells the number of outputs.
    """
    out = jnp.zeros((like.shape[0], x.shape[1]), x.dtype)
    return out.at[columns].add(values[:, None] * x[rows])


def _forward(values: Array, rows: Array, columns: Array, x: Array, like: Array):
    return sparse_dot(values, rows, columns, x, like), (values, rows, columns, x, like)


def _backward(saved: tuple, grad: Array):
    values, rows, columns, x, like = saved
    pulled = grad[columns]
    to_values = products(x, grad, rows, columns)
    to_x = jnp.zeros_like(x).at[rows].add(values[:, None] * pulled)
    return to_values, None, None, to_x, jnp.zeros_like(like)


sparse_dot.defvjp(_forward, _backward)
