"""Positions of a layer as sortable keys, and sorted lists of them.

A key is the flat position where int32 holds it, and else the pair of row and column.
"""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

#: One flat array, or rows and columns; ``(n,)`` int32 each.
Keys = tuple[Array, ...]

#: What fills lists up; it comes after every position.
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


def where(condition: Array, keys: Keys, others: Keys | np.int32 = LAST) -> Keys:
    """Keys where the condition ``(n,)`` holds, and others, as a rule the last, elsewhere."""
    if isinstance(others, tuple):
        pairs = zip(keys, others, strict=True)
        return tuple(jnp.where(condition, key, other) for key, other in pairs)
    return tuple(jnp.where(condition, key, others) for key in keys)


def ordered(keys: Keys) -> Keys:
    """Keys in ascending order."""
    return tuple(jax.lax.sort(keys, num_keys=len(keys), is_stable=False))


def same(keys: Keys, others: Keys) -> Array:
    """Where keys are equal, bool ``(n,)``."""
    parts = [key == other for key, other in zip(keys, others, strict=True)]
    return parts[0] if len(parts) == 1 else parts[0] & parts[1]


def less(keys: Keys, others: Keys) -> Array:
    """Where keys come before others, bool ``(n,)``."""
    if len(keys) == 1:
        return keys[0] < others[0]
    return (keys[0] < others[0]) | ((keys[0] == others[0]) & (keys[1] < others[1]))


def at(keys: Keys, places: Array) -> Keys:
    """The keys at some places."""
    return tuple(key[places] for key in keys)


def find(keys: Keys, wanted: Keys) -> Array:
    """How many of the ascending keys ``(n,)`` come before each that is wanted: ``(m,)`` int32."""
    number = keys[0].size

    def halve(_: Array, bounds: tuple[Array, Array]) -> tuple[Array, Array]:
        low, high = bounds
        middle = (low + high) >> 1
        before = less(at(keys, jnp.minimum(middle, number - 1)), wanted) & (middle < high)
        return jnp.where(before, middle + 1, low), jnp.where(before, high, middle)

    low = jnp.zeros(wanted[0].shape, jnp.int32)
    return jax.lax.fori_loop(0, number.bit_length(), halve, (low, jnp.full_like(low, number)))[0]


def marked(keys: Keys, among: Array, places: Array, wanted: Keys) -> Array:
    """Which of the wanted keys are among the marked ones; ``places`` are those of :func:`find`."""
    places = jnp.minimum(places, among.size - 1)
    return among[places] & same(at(keys, places), wanted)
