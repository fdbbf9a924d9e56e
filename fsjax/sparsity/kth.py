"""The k smallest or largest entries of an array: exact, with a traced k.

On CPUs nothing is sorted. Floats are ordered like their bit patterns, so bisection on the bits
finds the k-th smallest value: each halving is one fused compare-and-count over the array. The
search stops as soon as exactly k entries lie below the threshold. Only if values tie at the
threshold, a second bisection, on the position, chooses those with the lowest index.

On accelerators a loop costs more than a sort (``BENCHMARKS.md``): the threshold is read from the
sorted bits, and ties are counted by a running sum.
"""

from __future__ import annotations

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

_LAST = np.int32(np.iinfo(np.int32).max)
_FIRST = np.int32(np.iinfo(np.int32).min)

#: Outside of a compiled program, these functions are one program per shape: operation by operation,
#: each call would compile its loops anew. Inside, nothing changes.
_compiled = functools.partial(jax.jit, inline=True)

#: Rows into which entries are arranged for counting, few enough for int8 column sums. XLA on CPUs
#: sums up to this many rows at full speed.
_ROWS = 32


def ordered_bits(values: Array) -> Array:
    """Returns int32 keys in the same order as the values.

    Floats of any shape are compared in float32 precision; -0 equals 0, and NaN counts as minus
    infinity. Integers may have at most 32 bits.
    """
    if values.dtype == jnp.uint32:
        values = jax.lax.bitcast_convert_type(values ^ np.uint32(1 << 31), jnp.int32)
    if jnp.issubdtype(values.dtype, jnp.integer):
        return values.astype(jnp.int32)
    values = values.astype(jnp.float32)
    values = jnp.where(jnp.isnan(values), -jnp.inf, values)
    bits = jax.lax.bitcast_convert_type(values, jnp.int32)
    # Compared as integers, because some CPUs treat denormal floats as 0.
    bits = jnp.where(bits == _FIRST, 0, bits)  # -0
    return jnp.where(bits < 0, bits ^ _LAST, bits)


@_compiled
def smallest(values: Array, k: Array | int, among: Array | None = None) -> Array:
    """Marks the k smallest entries, exactly ``min(k, candidates)``; ties go to the lowest position.

    Args:
      values: real numbers of any shape; NaN counts as minus infinity.
      k: number of entries, at least 0; may be traced.
      among: bool of the same shape, the candidates; ``None`` allows all.

    Returns:
      Bool in the shape of ``values``.
    """
    return _first_by_bits(ordered_bits(values), k, among)


@_compiled
def largest(values: Array, k: Array | int, among: Array | None = None) -> Array:
    """Marks the k largest entries; otherwise as :func:`smallest`.

    Examples:
      >>> values = jnp.array([3.0, 1.0, 2.0, 2.0])
      >>> print(sparsity.largest(values, 2))  # bool, exactly two of them, also with ties
      >>> print(sparsity.smallest(values, 2), sparsity.kth_smallest(values, 2))
      >>> print(sparsity.random_subset(jax.random.key(0), 2, jnp.ones(4, bool)))
    """
    return _first_by_bits(~ordered_bits(values), k, among)


@functools.partial(_compiled, static_argnums=1)
def random_order(key: Array, shape: tuple[int, ...]) -> Array:
    """Random uint32 numbers below 2^30; sorting by them gives a random order."""
    return jax.random.bits(key, shape, jnp.uint32) >> 2


@_compiled
def random_subset(key: Array, k: Array | int, among: Array) -> Array:
    """Marks k random candidates; all subsets are equally likely, up to ties of 30-bit numbers.

    Args:
      key: PRNG key.
      k: number of entries, at least 0; may be traced.
      among: bool of any shape, the candidates.

    Returns:
      Bool in the shape of ``among``, with exactly ``min(k, candidates)`` true entries.
    """
    return _first_by_bits(ordered_bits(random_order(key, among.shape)), k, among)


@_compiled
def preferred(choice: Array, k: Array | int, among: Array) -> Array:
    """Completes or shortens a choice to exactly ``min(k, candidates)`` entries.

    Chosen candidates come first, then others, both in order of position. A choice of exactly k
    candidates is returned unchanged, at the cost of counting it.

    Args:
      choice: bool of any shape.
      k: number of entries, at least 0; may be traced.
      among: bool of the same shape, the candidates.
    """
    k, chosen = jnp.asarray(k, jnp.int32), choice & among
    number = count_true(chosen)

    def repaired() -> Array:
        # Too few: all of the chosen and some others. Too many: some of the chosen. There is no
        # bisection on bits, so a batch of exact choices is cheap too (vmap computes both branches).
        too_few = number < k
        partly = _in_rows(among & (chosen ^ too_few), False)
        wanted = jnp.where(too_few, k - number, k)
        first = _from_rows(_first_true(partly, wanted, _count(partly) > wanted), chosen.shape)
        return ((chosen & too_few) | first) & (k > 0)

    return jax.lax.cond(number == k, lambda: chosen, repaired)


@_compiled
def kth_smallest(values: Array, k: Array | int, among: Array | None = None) -> Array:
    """The k-th smallest value, a float32 scalar; infinity if there are fewer than k candidates.

    Args:
      values: real numbers of any shape; NaN counts as minus infinity.
      k: from 1; may be traced.
      among: bool of the same shape, the candidates; ``None`` allows all.
    """
    bits = ordered_bits(values)
    chosen = _first_by_bits(bits, k, among)
    number = count_true(chosen)
    bits_of_kth = jnp.max(jnp.where(chosen, bits, ordered_bits(jnp.float32(-jnp.inf))))
    bits_of_kth = jax.lax.bitcast_convert_type(
        jnp.where(bits_of_kth < 0, bits_of_kth ^ _LAST, bits_of_kth), jnp.float32
    )
    return jnp.where(k > number, jnp.inf, bits_of_kth)


def count_true(mask: Array) -> Array:
    """Number of true entries of a bool array of any shape, int32; fast on CPUs."""
    return _count(_in_rows(mask, False))


def _count(condition: Array) -> Array:
    """Number of true entries of ``(_ROWS, ...)``, several times faster on CPUs than a plain sum."""
    by_column = jnp.sum(condition.astype(jnp.int8), axis=0, dtype=jnp.int8)
    return jnp.sum(by_column, dtype=jnp.int32)


def _middle(low: Array, high: Array) -> Array:
    """The mean rounded down, without overflow."""
    return (low >> 1) + (high >> 1) + (low & high & 1)


def _in_rows(bits: Array, filler: int = int(_LAST)) -> Array:
    """The entries, in the same order, as ``(rows, n)`` or ``(rows, m, n)``, padded if need be."""
    # Only the first axis is split: otherwise XLA fuses an index division per entry into the code
    # that computes the entries.
    lines = bits.reshape(_lines_shape(bits.shape))
    rows = _number_of_rows(lines.shape[0])
    missing = -lines.shape[0] % rows
    if missing:
        fill = [(0, missing)] + [(0, 0)] * (lines.ndim - 1)
        lines = jnp.pad(lines, fill, constant_values=filler)
    return lines.reshape(rows, -1, *lines.shape[1:])


def _number_of_rows(lines: int) -> int:
    """The most rows that need no padding, which is slow; else the most."""
    even = (rows for rows in range(_ROWS, _ROWS // 4, -1) if lines % rows == 0)
    return next(even, _ROWS)


def _from_rows(entries: Array, shape: tuple[int, ...]) -> Array:
    """The inverse of :func:`_in_rows`: the entries in their shape, without the padding."""
    lines = _lines_shape(shape)
    return entries.reshape(-1, *lines[1:])[: lines[0]].reshape(shape)


def _lines_shape(shape: tuple[int, ...]) -> tuple[int, ...]:
    return shape if len(shape) == 2 and shape[0] >= _ROWS else (math.prod(shape),)


@_compiled
def _first_by_bits(bits: Array, k: Array | int, among: Array | None) -> Array:
    shape = bits.shape
    # The smallest key is below all entries, and the largest one marks what is no candidate.
    bits = jnp.clip(bits, _FIRST + 1, _LAST - 1)
    if among is not None:
        bits = jnp.where(among, bits, _LAST)
    k = jnp.clip(jnp.asarray(k, jnp.int32), 0, bits.size)
    search = _by_bisection if jax.default_backend() == "cpu" else _by_sorting
    return _from_rows(search(_in_rows(bits), k) & (k > 0), shape)


def _by_sorting(bits: Array, k: Array) -> Array:
    """Marks the first k of the bits, at most all candidates, by value and then by position."""
    threshold = jnp.sort(bits.ravel())[jnp.maximum(k - 1, 0)]
    below = bits < threshold
    ties = (bits == threshold) & (bits < _LAST)
    return below | _first_by_running_sum(ties, k - _count(below))


def _by_bisection(bits: Array, k: Array) -> Array:
    """As :func:`_by_sorting`."""

    # Invariant: fewer than k entries are <= low, at least k are <= high; k is at most their number.
    def bisect(state: tuple[Array, ...]) -> tuple[Array, ...]:
        low, high, k, at_low, at_high = state
        # The first halving only counts the candidates: a count outside would be compiled, too.
        middle = jnp.where(high == _LAST, _LAST - 1, _middle(low, high))
        count = _count(bits <= middle)
        k = jnp.where(high == _LAST, jnp.minimum(k, count), k)
        enough = count >= k
        low, at_low = jnp.where(enough, low, middle), jnp.where(enough, at_low, count)
        high, at_high = jnp.where(enough, middle, high), jnp.where(enough, count, at_high)
        return low, high, k, at_low, at_high

    def unfinished(state: tuple[Array, ...]) -> Array:
        low, high, k, _, at_high = state
        return (at_high > k) & (high - 1 > low)

    most = jnp.asarray(_LAST)
    start: tuple[Array, ...] = (jnp.asarray(_FIRST), most, k, jnp.zeros_like(k), most)
    _, threshold, k, below, at_threshold = jax.lax.while_loop(unfinished, bisect, start)

    def without_surplus() -> Array:
        # Of the entries at the threshold, those with the highest positions are too many.
        ties = bits == threshold
        return (bits < threshold) | _first_true(ties, k - below, at_threshold > k)

    return jax.lax.cond(at_threshold > k, without_surplus, lambda: bits <= threshold)


def _first_true(mask: Array, wanted: Array, needed: Array) -> Array:
    """Keeps the first ``wanted`` true entries of a mask; all if not ``needed``."""
    if jax.default_backend() != "cpu":
        return mask & (~needed | _first_by_running_sum(mask, wanted))
    positions = jnp.arange(mask.size, dtype=jnp.int32).reshape(mask.shape)
    end = jnp.int32(mask.size - 1)

    def bisect(bounds: tuple[Array, Array]) -> tuple[Array, Array]:
        low, high = bounds
        middle = _middle(low, high)
        enough = _count(mask & (positions <= middle)) >= wanted
        return jnp.where(enough, low, middle), jnp.where(enough, middle, high)

    low = jnp.where(needed, jnp.int32(-1), end - 1)
    last = jax.lax.while_loop(lambda b: b[1] - 1 > b[0], bisect, (low, end))[1]
    return mask & (positions <= last)


def _first_by_running_sum(mask: Array, wanted: Array) -> Array:
    numbers = jnp.cumsum(mask.ravel(), dtype=jnp.int32).reshape(mask.shape)
    return mask & (numbers <= wanted)
