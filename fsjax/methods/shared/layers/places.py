"""Positions in a layer as sortable keys, and operations on sorted lists of them.

A key is the flat position if int32 can hold it; otherwise it is the pair of row and column.
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


def keys_of(rows: Array, columns: Array, shape: tuple[int, int]) -> Keys:
    """The keys of positions ``(n,)``."""
    if math.prod(shape) <= LAST:
        return (rows * shape[1] + columns,)
    return rows, columns


def rows_and_columns(keys: Keys, shape: tuple[int, int]) -> tuple[Array, Array]:
    """The inverse of :func:`keys_of`."""
    if len(keys) == 1:
        return keys[0] // shape[1], keys[0] % shape[1]
    rows, columns = keys
    return rows, columns


def where(condition: Array, keys: Keys) -> Keys:
    """The keys where the condition ``(n,)`` is true, and padding elsewhere."""
    return tuple(jnp.where(condition, key, LAST) for key in keys)


def ordered(keys: Keys) -> Keys:
    """The keys in ascending order."""
    return tuple(jax.lax.sort(keys, num_keys=len(keys), is_stable=False))


def same(keys: Keys, others: Keys) -> Array:
    """Whether keys are equal, element by element, bool ``(n,)``."""
    parts = [key == other for key, other in zip(keys, others, strict=True)]
    return parts[0] if len(parts) == 1 else parts[0] & parts[1]


def less(keys: Keys, others: Keys) -> Array:
    """Whether keys are smaller than others, element by element, bool ``(n,)``."""
    if len(keys) == 1:
        return keys[0] < others[0]
    return (keys[0] < others[0]) | ((keys[0] == others[0]) & (keys[1] < others[1]))


def at(keys: Keys, indices: Array) -> Keys:
    """The keys at some indices."""
    return tuple(key[indices] for key in keys)


def find_keys(keys: Keys, wanted: Keys) -> Array:
    """The number of ascending keys ``(n,)`` before each wanted key, int32 ``(m,)``."""
    number = keys[0].size

    def halve(_: Array, bounds: tuple[Array, Array]) -> tuple[Array, Array]:
        low, high = bounds
        middle = (low + high) >> 1
        before = less(at(keys, jnp.minimum(middle, number - 1)), wanted) & (middle < high)
        return jnp.where(before, middle + 1, low), jnp.where(before, high, middle)

    low = jnp.zeros(wanted[0].shape, jnp.int32)
    return jax.lax.fori_loop(0, number.bit_length(), halve, (low, jnp.full_like(low, number)))[0]


def marked_keys(keys: Keys, among: Array, indices: Array, wanted: Keys) -> Array:
    """Which wanted keys are in ``keys[among]``; ``indices`` are those of :func:`find_keys`."""
    nearest = jnp.minimum(indices, among.size - 1)
    return among[nearest] & same(at(keys, nearest), wanted)
