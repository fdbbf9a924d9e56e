"""Chooses free positions for new connections, at random or by score, without a matrix.

All functions return sorted keys of free positions, exactly as many as are wanted. In layers of more
pairs of neurons than a block has, no array has an entry for every pair.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from fsjax.methods.shared.layers import places
from fsjax.methods.shared.layers.places import LAST, Keys
from fsjax.sparsity.kth import largest, ordered_bits, random_subset

#: Layers of at most this many pairs of neurons draw the same connections as a mask would.
DRAWN_AS_MASKS = 2**18

#: Number of entries of a mask that are counted together.
_COUNTED = 32

#: Number of scores that are in memory at once.
BLOCK = 2**22

#: Bins of a histogram of scores, by the upper or the lower 16 of their 32 bits.
_BINS = 2**16


class Taken(NamedTuple):
    """Occupied positions: ascending keys ``(n,)``, and bool ``(n,)``, which of them count."""

    keys: Keys
    among: Array


class FreePairs(NamedTuple):
    """Free positions: ascending keys ``(m,)``, and bool ``(m,)``, which of them were chosen."""

    keys: Keys
    chosen: Array


def random_free(
    key: Array, taken: Sequence[Taken], wanted: Array, most: int, shape: tuple[int, int]
) -> FreePairs:
    """Draws ``wanted`` free positions; all subsets are equally likely.

    Args:
      key: PRNG key.
      taken: positions that are not free.
      wanted: number of positions, an int32 scalar of at most ``most``, and at most a quarter of all
        positions.
      most: static upper bound of ``wanted``.
      shape: shape ``(I, O)`` of the layer.
    """
    if math.prod(shape) <= DRAWN_AS_MASKS:
        return _as_masks(key, taken, wanted, most, shape)
    return by_rejection(key, taken, wanted, most, shape)


def _as_masks(
    key: Array, taken: Sequence[Taken], wanted: Array, most: int, shape: tuple[int, int]
) -> FreePairs:
    free = jnp.ones(math.prod(shape), bool)
    for part in taken:
        free = free.at[jnp.where(part.among, part.keys[0], LAST)].set(False, mode="drop")
    return _of_mask(random_subset(key, wanted, free.reshape(shape)), wanted, most)


def by_rejection(
    key: Array, taken: Sequence[Taken], wanted: Array, most: int, shape: tuple[int, int]
) -> FreePairs:
    """:func:`random_free` for layers of any size, by rejection sampling.

    More positions are drawn than wanted. Taken positions and duplicates are rejected, and a random
    surplus is discarded, so no position is favoured.
    """
    occupied = sum(block.among.size for block in taken) + most
    spare = 2.0 * occupied / math.prod(shape)
    length = most + math.ceil(spare * most) + 64

    def draw(carry: tuple) -> tuple:
        key, _ = carry
        key, *keys = jax.random.split(key, 3)
        rows, columns = (
            jax.random.randint(axis_key, (length,), 0, number)
            for axis_key, number in zip(keys, shape, strict=True)
        )
        number = wanted + jnp.ceil(spare * wanted).astype(jnp.int32) + 64
        drawn = places.where(jnp.arange(length) < number, places.keys_of(rows, columns, shape))
        drawn = places.ordered(drawn)
        before = tuple(jnp.concatenate([-jnp.ones(1, jnp.int32), part[:-1]]) for part in drawn)
        free = (drawn[0] < LAST) & ~places.same(before, drawn)
        for block in taken:
            free &= ~places.marked_keys(*block, places.find_keys(block.keys, drawn), drawn)
        return key, FreePairs(drawn, free)

    def too_few(carry: tuple) -> Array:
        return jnp.sum(carry[1].chosen, dtype=jnp.int32) < wanted

    key, key_surplus = jax.random.split(key)
    nothing = jnp.full(length, LAST)
    parts = len(places.keys_of(nothing, nothing, shape))
    start = FreePairs((nothing,) * parts, jnp.zeros(length, bool))
    accepted = jax.lax.while_loop(too_few, draw, (key, start))[1]
    surplus = jnp.sum(accepted.chosen, dtype=jnp.int32) - wanted
    return accepted._replace(
        chosen=accepted.chosen & ~random_subset(key_surplus, surplus, accepted.chosen)
    )


def _best_in_matrix(scores: Array, taken: Taken, wanted: Array, most: int) -> FreePairs:
    """:func:`best_free` for the scores ``(I, O)`` of all pairs of neurons."""
    rows, columns = places.rows_and_columns(taken.keys, (scores.shape[0], scores.shape[1]))
    free = jnp.ones(scores.shape, bool)
    free = free.at[jnp.where(taken.among, rows, LAST), columns].set(False, mode="drop")
    # Several times faster on CPUs than histograms, which are scatters of all pairs.
    return _of_mask(largest(scores, wanted, free), wanted, most)


def _of_mask(mask: Array, number: Array, most: int) -> FreePairs:
    """The ``number`` true entries of a mask, as keys."""
    chosen = jnp.arange(most) < number
    return FreePairs(places.where(chosen, (positions_of(mask, most),)), chosen)


def positions_of(mask: Array, count: int) -> Array:
    """The flat positions of the ``count`` true entries of a mask, ``(count,)`` int32, ascending."""
    flat = jnp.pad(mask.reshape(-1), (0, -mask.size % _COUNTED)).reshape(-1, _COUNTED)
    cumulative = jnp.cumsum(jnp.sum(flat, axis=1, dtype=jnp.int32))
    wanted = jnp.arange(count, dtype=jnp.int32)
    block = jnp.searchsorted(cumulative, wanted, side="right").astype(jnp.int32)
    before = jnp.where(block > 0, cumulative[block - 1], 0)
    rank = jnp.cumsum(flat[block], axis=1, dtype=jnp.int32)
    inside = jnp.argmax(rank > (wanted - before)[:, None], axis=1)
    return block * _COUNTED + inside.astype(jnp.int32)


def _capped_cumsum(counts: Array, most: int) -> Array:
    """Cumulative sums of non-negative counts ``(n,)``, capped at ``most``.

    This is a loop because JAX compiles each level of an associative scan separately.
    """
    numbers = jnp.arange(counts.size, dtype=jnp.int32)

    def add(level: Array, sums: Array) -> Array:
        earlier = numbers - (1 << level)
        before = jnp.where(earlier >= 0, sums[jnp.maximum(earlier, 0)], 0)
        return jnp.minimum(sums + before, most)

    levels = (counts.size - 1).bit_length()
    return jax.lax.fori_loop(0, levels, add, jnp.minimum(counts, most))


def best_free(
    scores: Callable[[Array], Array],
    taken: Taken,
    wanted: Array,
    most: int,
    shape: tuple[int, int],
    block: int = BLOCK,
) -> FreePairs:
    """The ``wanted`` free positions with the largest scores; ties as in :func:`largest`.

    If the scores of all pairs of neurons fit into a block, they are computed once and marked as in
    a mask. Otherwise they are computed three times, a block of rows at a time: twice to find the
    threshold, from histograms of the upper and of the lower half of their bits, and once to collect
    the positions.

    Args:
      scores: function from int32 numbers of input neurons ``(b,)`` to their scores ``(b, O)``.
      taken: positions that are not free.
      wanted, most, shape: as in :func:`random_free`.
      block: approximate number of scores that are in memory at once.
    """
    inputs, outputs = shape
    rows_at_once = max(1, min(inputs, block // outputs))
    blocks = -(-inputs // rows_at_once)
    if blocks == 1:
        return _best_in_matrix(scores(jnp.arange(inputs, dtype=jnp.int32)), taken, wanted, most)
    taken_rows, taken_columns = places.rows_and_columns(taken.keys, shape)

    def bits_of(number: Array) -> tuple[Array, Array]:
        """Keys that are lowest for the largest scores, and which of them are free."""
        rows = number * rows_at_once + jnp.arange(rows_at_once, dtype=jnp.int32)
        bits = ~ordered_bits(scores(jnp.minimum(rows, inputs - 1)))
        inside = jnp.where(taken.among, taken_rows - rows[0], -1)
        inside = jnp.where(inside < 0, rows_at_once, inside)
        free = jnp.broadcast_to((rows < inputs)[:, None], bits.shape)
        free = free.at[inside, taken_columns].set(False, mode="drop")
        flipped = jax.lax.bitcast_convert_type(bits, jnp.uint32) ^ jnp.uint32(2**31)
        return flipped.reshape(-1), free.reshape(-1)

    def count(half: Callable[[Array], tuple[Array, Array]], left: Array) -> tuple[Array, Array]:
        """The bin in which the ``left``-th key lies, and its rank within this bin."""

        def add(number: Array, counts: Array) -> Array:
            bits, free = bits_of(number)
            bins, counted = half(bits)
            bins = jnp.where(free & counted, bins.astype(jnp.int32), _BINS)
            return jnp.minimum(counts.at[bins].add(1, mode="drop"), most)

        counts = jax.lax.fori_loop(0, blocks, add, jnp.zeros(_BINS, jnp.int32))
        # Counts above ``most`` do not matter, and int32 may not hold the number of all positions.
        cumulative = _capped_cumsum(counts, most)
        position = jnp.argmax(cumulative >= left)
        return position.astype(jnp.uint32), left - jnp.where(
            position > 0, cumulative[position - 1], 0
        )

    upper, left = count(lambda bits: (bits >> 16, jnp.ones(bits.shape, bool)), wanted)
    lower, left = count(lambda bits: (bits & (_BINS - 1), bits >> 16 == upper), left)
    threshold = (upper << 16) | lower

    def collect(number: Array, carry: tuple) -> tuple:
        done, ties_left, collected = carry
        bits, free = bits_of(number)
        ties = free & (bits == threshold)
        ties &= jnp.cumsum(ties, dtype=jnp.int32) <= ties_left
        chosen = (free & (bits < threshold)) | ties
        slots = jnp.where(chosen, done + jnp.cumsum(chosen, dtype=jnp.int32) - 1, most)
        inside = jnp.arange(bits.size, dtype=jnp.int32)
        keys = places.keys_of(number * rows_at_once + inside // outputs, inside % outputs, shape)
        collected = tuple(
            earlier.at[slots].set(part, mode="drop")
            for earlier, part in zip(collected, keys, strict=True)
        )
        done += jnp.sum(chosen, dtype=jnp.int32)
        return done, ties_left - jnp.sum(ties, dtype=jnp.int32), collected

    start = (jnp.full(most, LAST),) * len(taken.keys)
    # If nothing is wanted, no ties are left, and no key lies below the first bin.
    carry = (jnp.zeros((), jnp.int32), left, start)
    best = jax.lax.fori_loop(0, blocks, collect, carry)[2]
    chosen = jnp.arange(most) < wanted
    return FreePairs(places.where(chosen, best), chosen)
