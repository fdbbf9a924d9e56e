"""The k smallest or largest entries of an array: exact, without sorting, with a traced k.

Floats order like their bit patterns, so the k-th smallest value is found by bisection on the
bits: each halving is one fused compare-and-count over the array. The search ends early once the
count is met exactly; only where values tie at the threshold does a second bisection, on the
position, choose those with the lowest index.
"""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

_LAST = np.int32(np.iinfo(np.int32).max)
_FIRST = np.int32(np.iinfo(np.int32).min)

#: Rows in which entries are counted; a byte holds their number. XLA on CPUs sums up to this many
#: rows at full speed.
_ROWS = 32


def ordered_bits(values: Array) -> Array:
    """Integers, int32 below the largest, that order as real numbers of any shape do.

    These are compared in float32 precision; -0 equals 0, and NaN counts as minus infinity.
    Integers of at most 32 bits are compared as they are.
    """
    if jnp.issubdtype(values.dtype, jnp.integer):
        return values.astype(jnp.int32)
    values = values.astype(jnp.float32)
    values = jnp.where(jnp.isnan(values), -jnp.inf, values)
    bits = jax.lax.bitcast_convert_type(values, jnp.int32)
    # On integers, as float comparisons take the smallest numbers (denormals) for 0 on some CPUs.
    bits = jnp.where(bits == _FIRST, 0, bits)  # -0
    return jnp.where(bits < 0, bits ^ _LAST, bits)


def smallest(values: Array, k: Array | int, among: Array | None = None) -> Array:
    """Marks the k smallest entries, exactly ``min(k, candidates)``; ties go to the lowest position.

    Args:
      values: real numbers of any shape, that of the bool result.
      k: how many, at least 0, may be traced.
      among: bool of the same shape, the candidates; ``None`` allows all.
    """
    return _first_by_bits(ordered_bits(values), k, among)


def largest(values: Array, k: Array | int, among: Array | None = None) -> Array:
    """Marks the k largest entries; otherwise as :func:`smallest`."""
    return _first_by_bits(~ordered_bits(values), k, among)


def random_order(key: Array, shape: tuple[int, ...]) -> Array:
    """Random uint32 numbers below 2^30, by which entries are in a random order."""
    return jax.random.bits(key, shape, jnp.uint32) >> 2


def random_subset(key: Array, k: Array | int, among: Array) -> Array:
    """Marks k of the candidates, each subset equally likely (up to ties of 30-bit numbers).

    ``k`` and ``among`` (bool of any shape) as in :func:`smallest`.
    """
    return _first_by_bits(ordered_bits(random_order(key, among.shape)), k, among)


def preferred(choice: Array, k: Array | int, among: Array) -> Array:
    """Marks exactly ``min(k, candidates)``: chosen ones first, each by the lowest position.

    ``choice`` and ``among`` are bool of any one shape. A choice of exactly k candidates stays as
    it is, and costs no more than counting it.
    """
    k, chosen = jnp.asarray(k, jnp.int32), choice & among
    number = count_true(chosen)

    def repaired() -> Array:
        # Either all of the chosen are marked and some others, or some of the chosen. No bisection
        # on bits, so that a batch of choices that are exact costs little as well.
        too_few = number < k
        partly = _in_rows(among & (chosen ^ too_few), False)
        wanted = jnp.where(too_few, k - number, k)
        last = _last_position(partly, wanted, _count(partly) > wanted)
        some = (partly & (_positions(partly.shape) <= last)).reshape(-1)[: chosen.size]
        return ((chosen & too_few) | some.reshape(chosen.shape)) & (k > 0)

    return jax.lax.cond(number == k, lambda: chosen, repaired)


def kth_smallest(values: Array, k: Array | int, among: Array | None = None) -> Array:
    """The k-th smallest value, k from 1, in float32; infinity where there are fewer candidates.

    As for :func:`smallest`, NaN counts as minus infinity.
    """
    bits = ordered_bits(values)
    chosen = _first_by_bits(bits, k, among)
    number = jnp.sum(chosen, dtype=jnp.int32)
    bits_of_kth = jnp.max(jnp.where(chosen, bits, ordered_bits(jnp.float32(-jnp.inf))))
    bits_of_kth = jax.lax.bitcast_convert_type(
        jnp.where(bits_of_kth < 0, bits_of_kth ^ _LAST, bits_of_kth), jnp.float32
    )
    return jnp.where(k > number, jnp.inf, bits_of_kth)


def count_true(mask: Array) -> Array:
    """How many entries of a bool array of any shape are true, int32; fast on CPUs."""
    return _count(_in_rows(mask, False))


def _count(condition: Array) -> Array:
    """True entries of ``(_ROWS, ...)``, several times faster on CPUs than by a plain sum."""
    of_bytes = jnp.sum(condition.astype(jnp.int8), axis=0, dtype=jnp.int8)
    return jnp.sum(of_bytes, dtype=jnp.int32)


def _middle(low: Array, high: Array) -> Array:
    """The floor of the mean, without overflow."""
    return (low >> 1) + (high >> 1) + (low & high & 1)


def _in_rows(bits: Array, filler: int = int(_LAST)) -> Array:
    """The same entries in the same order as ``(_ROWS, n)`` or ``(_ROWS, m, n)``, filled up."""
    # Only the first axis is cut: else what makes the entries is fused with a division for each.
    lines = bits if bits.ndim == 2 and bits.shape[0] >= _ROWS else bits.reshape(-1)
    fill = [(0, -lines.shape[0] % _ROWS)] + [(0, 0)] * (lines.ndim - 1)
    lines = jnp.pad(lines, fill, constant_values=filler)
    return lines.reshape(_ROWS, -1, *lines.shape[1:])


def _first_by_bits(bits: Array, k: Array | int, among: Array | None) -> Array:
    shape, size = bits.shape, bits.size
    if among is not None:
        bits = jnp.where(among, bits, _LAST)
    bits = _in_rows(bits)
    candidates = _count(bits < _LAST)
    k = jnp.clip(jnp.asarray(k, jnp.int32), 0, candidates)

    # Invariant: fewer than k entries are <= low, at least k are <= high.
    def bisect(state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        low, high, at_high = state
        middle = _middle(low, high)
        count = _count(bits <= middle)
        enough = count >= k
        return (
            jnp.where(enough, low, middle),
            jnp.where(enough, middle, high),
            jnp.where(enough, count, at_high),
        )

    def unfinished(state: tuple[Array, Array, Array]) -> Array:
        low, high, at_high = state
        return (at_high > k) & (high - 1 > low)

    start = (jnp.asarray(_FIRST), jnp.asarray(_LAST - 1), candidates)
    _, threshold, at_threshold = jax.lax.while_loop(unfinished, bisect, start)
    # Of the entries at the threshold, those with the highest positions are too many.
    surplus = at_threshold - k
    ties = bits == threshold
    last = _last_position(ties, _count(ties) - surplus, surplus > 0)
    chosen = (bits < threshold) | (ties & (_positions(bits.shape) <= last))
    return (chosen & (k > 0)).reshape(-1)[:size].reshape(shape)


def _positions(shape: tuple[int, ...]) -> Array:
    return jnp.arange(math.prod(shape), dtype=jnp.int32).reshape(shape)


def _last_position(ties: Array, wanted: Array, needed: Array) -> Array:
    """The lowest position up to which there are ``wanted`` ties; the end where not needed."""
    end = jnp.int32(ties.size - 1)

    def bisect(bounds: tuple[Array, Array]) -> tuple[Array, Array]:
        low, high = bounds
        middle = _middle(low, high)
        enough = _count(ties & (_positions(ties.shape) <= middle)) >= wanted
        return jnp.where(enough, low, middle), jnp.where(enough, middle, high)

    low = jnp.where(needed, jnp.int32(-1), end - 1)
    return jax.lax.while_loop(lambda b: b[1] - 1 > b[0], bisect, (low, end))[1]
