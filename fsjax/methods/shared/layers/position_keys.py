"""Positions in a layer as sortable keys, and operations on sorted lists of them.

A key is the flat position if int32 can hold it; otherwise it is the pair of row and column. Lists
are ascending and padded at the end with :data:`LAST`, so that their number may be traced.
"""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

#: One flat array, or rows and columns; ``(n,)`` int32 each.
Keys = tuple[Array, ...]

#: Padding of lists; it is larger than every position.
LAST = np.int32(np.iinfo(np.int32).max)

#: Number of entries of a mask that are counted together.
_COUNTED = 32


def keys_of(rows: Array, columns: Array, shape: tuple[int, int]) -> Keys:
    """The keys of positions ``(n,)``."""
    if math.prod(shape) <= LAST:
        return (rows * shape[1] + columns,)
    return rows, columns


def rows_and_columns(keys: Keys, shape: tuple[int, int]) -> tuple[Array, Array]:
    """The inverse of :func:`keys_of`; rows of padding are at least the number of rows."""
    if len(keys) == 1:
        return keys[0] // shape[1], keys[0] % shape[1]
    rows, columns = keys
    return rows, columns


def ordered(keys: Keys) -> Keys:
    """The keys in ascending order."""
    return tuple(jax.lax.sort(keys, num_keys=len(keys), is_stable=False))


def count_keys(keys: Keys) -> Array:
    """The number of keys of a list without its padding, int32."""
    return jnp.sum(keys[0] < LAST, dtype=jnp.int32)


def compress(keys: Keys, chosen: Array, length: int) -> Keys:
    """The list of the chosen keys, ``(length,)``, in the same order; surplus keys are left out."""
    slots = jnp.where(chosen, jnp.cumsum(chosen, dtype=jnp.int32) - 1, length)
    return tuple(jnp.full(length, LAST).at[slots].set(part, mode="drop") for part in keys)


def find_keys(keys: Keys, wanted: Keys) -> Array:
    """The number of ascending keys ``(n,)`` before each wanted key, int32 ``(m,)``."""
    number = keys[0].size

    def halve(_: Array, bounds: tuple[Array, Array]) -> tuple[Array, Array]:
        low, high = bounds
        middle = (low + high) >> 1
        before = _less(_at(keys, jnp.minimum(middle, number - 1)), wanted) & (middle < high)
        return jnp.where(before, middle + 1, low), jnp.where(before, high, middle)

    low = jnp.zeros(wanted[0].shape, jnp.int32)
    return jax.lax.fori_loop(0, number.bit_length(), halve, (low, jnp.full_like(low, number)))[0]


def index_in(keys: Keys, wanted: Keys) -> Array:
    """The index of each wanted key in a list, int32 ``(m,)``; ``LAST`` where it is not there."""
    index = find_keys(keys, wanted)
    return jnp.where(same(_at(keys, jnp.minimum(index, keys[0].size - 1)), wanted), index, LAST)


def contains(keys: Keys, wanted: Keys) -> Array:
    """Which wanted keys ``(m,)`` are in a list, bool ``(m,)``."""
    return index_in(keys, wanted) < LAST


def order_of_union(first: Keys, second: Keys, length: int) -> Array:
    """What orders the keys of two lists: indices into the one followed by the other, ``(length,)``.

    No key may be in both lists, and ``length`` is at most that of the first.
    """
    slots = jnp.arange(second[0].size, dtype=jnp.int32) + find_keys(first, second)
    is_second = jnp.zeros(length, bool).at[slots].set(True, mode="drop")
    number = jnp.cumsum(is_second, dtype=jnp.int32)
    of_first = jnp.arange(length, dtype=jnp.int32) - number
    return jnp.where(is_second, first[0].size + number - 1, of_first)


def joined(first: Keys, second: Keys, order: Array) -> Keys:
    """The entries of two lists in the order of :func:`order_of_union`."""
    return tuple(jnp.concatenate(parts)[order] for parts in zip(first, second, strict=True))


def same(keys: Keys, others: Keys) -> Array:
    """Whether keys are equal, element by element, bool ``(n,)``."""
    parts = [key == other for key, other in zip(keys, others, strict=True)]
    return parts[0] if len(parts) == 1 else parts[0] & parts[1]


def _less(keys: Keys, others: Keys) -> Array:
    """Whether keys are smaller than others, element by element, bool ``(n,)``."""
    if len(keys) == 1:
        return keys[0] < others[0]
    return (keys[0] < others[0]) | ((keys[0] == others[0]) & (keys[1] < others[1]))


def _at(keys: Keys, indices: Array) -> Keys:
    """The keys at some indices."""
    return tuple(key[indices] for key in keys)


def positions_of(mask: Array, count: int) -> Array:
    """The flat positions of the first ``count`` true entries of a mask, int32 ``(count,)``."""
    flat = jnp.pad(mask.reshape(-1), (0, -mask.size % _COUNTED)).reshape(-1, _COUNTED)
    cumulative = jnp.cumsum(jnp.sum(flat, axis=1, dtype=jnp.int32))
    wanted = jnp.arange(count, dtype=jnp.int32)
    block = jnp.searchsorted(cumulative, wanted, side="right").astype(jnp.int32)
    before = jnp.where(block > 0, cumulative[block - 1], 0)
    rank = jnp.cumsum(flat[block], axis=1, dtype=jnp.int32)
    inside = jnp.argmax(rank > (wanted - before)[:, None], axis=1)
    return block * _COUNTED + inside.astype(jnp.int32)
