"""Chooses free positions for new connections, at random or by score, without a matrix.

Both functions return lists of keys (``position_keys.py``), exactly as many as are wanted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
from jax import Array

from fsjax.methods.shared.layers.position_keys import (
    LAST,
    Keys,
    compress,
    contains,
    keys_of,
    ordered,
    positions_of,
    rows_and_columns,
    same,
)
from fsjax.sparsity.kth import count_true, largest, ordered_bits, random_subset

#: Number of scores that are in memory at once.
BLOCK = 2**22


def random_free(
    key: Array, taken: Sequence[Keys], wanted: Array, max_count: int, shape: tuple[int, int]
) -> Keys:
    """Draws ``wanted`` free positions without replacement; all subsets are equally likely.

    More positions are drawn than wanted, taken ones and duplicates are rejected, and a random
    subset of the others is the result.

    Args:
      key: PRNG key.
      taken: lists of positions that are not free.
      wanted: number of positions, an int32 scalar of at most ``max_count``, and at most a quarter
        of all positions.
      max_count: length of the result.
      shape: shape ``(I, O)`` of the layer.
    """
    occupied = sum(keys[0].size for keys in taken) + max_count
    length = max_count + math.ceil(2.0 * occupied / math.prod(shape) * max_count) + 64

    def draw(carry: tuple[Array, Keys, Array]) -> tuple[Array, Keys, Array]:
        key, *axis_keys = jax.random.split(carry[0], 3)
        rows, columns = (
            jax.random.randint(axis_key, (length,), 0, size)
            for axis_key, size in zip(axis_keys, shape, strict=True)
        )
        drawn = ordered(keys_of(rows, columns, shape))
        before = tuple(jnp.concatenate([-jnp.ones(1, jnp.int32), part[:-1]]) for part in drawn)
        accepted = ~same(before, drawn)
        for keys in taken:
            accepted &= ~contains(keys, drawn)
        return key, drawn, accepted

    key_draws, key_subset = jax.random.split(key)
    nothing = jnp.full(length, LAST)
    empty = (nothing,) * len(keys_of(nothing, nothing, shape))
    _, drawn, accepted = jax.lax.while_loop(
        lambda carry: count_true(carry[2]) < wanted,
        draw,
        (key_draws, empty, jnp.zeros(length, bool)),
    )
    return compress(drawn, random_subset(key_subset, wanted, accepted), max_count)


def best_free(
    scores: Callable[[Array], Array],
    taken: Keys,
    wanted: Array,
    max_count: int,
    shape: tuple[int, int],
    block: int = BLOCK,
) -> Keys:
    """The ``wanted`` free positions with the largest scores; ties as in :func:`largest`.

    Scores are computed a block of rows at a time; the best so far compete with those of the next.

    Args:
      scores: function from int32 numbers of input neurons ``(b,)`` to their scores ``(b, O)``.
      taken: list of positions that are not free.
      wanted, max_count, shape: as in :func:`random_free`; there may be fewer free positions.
      block: approximate number of scores that are in memory at once.
    """
    inputs, outputs = shape
    height = max(1, min(inputs, max(block, max_count) // outputs))
    taken_rows, taken_columns = rows_and_columns(taken, shape)

    def compete(number: Array, best: tuple[Array, Keys]) -> tuple[Array, Keys]:
        best_scores, best_keys = best
        rows = number * height + jnp.arange(height, dtype=jnp.int32)
        of_block = ordered_bits(scores(jnp.minimum(rows, inputs - 1)))
        row = jnp.where(taken_rows < rows[0], height, taken_rows - rows[0])
        free = jnp.broadcast_to((rows < inputs)[:, None], of_block.shape)
        free = free.at[row, taken_columns].set(False, mode="drop")
        # The best so far come first, as they have lower positions.
        both = jnp.concatenate([best_scores, of_block.reshape(-1)])
        candidates = jnp.concatenate([best_keys[0] < LAST, free.reshape(-1)])
        chosen = largest(both, wanted, candidates)
        positions = positions_of(chosen, max_count)
        inside = positions - max_count
        row, column = number * height + inside // outputs, inside % outputs
        is_old, old = inside < 0, jnp.minimum(positions, max_count - 1)
        is_chosen = jnp.arange(max_count) < count_true(chosen)
        keys = tuple(
            jnp.where(is_chosen, jnp.where(is_old, before[old], new), LAST)
            for before, new in zip(best_keys, keys_of(row, column, shape), strict=True)
        )
        return both[positions], keys

    nothing = jnp.full(max_count, LAST)
    start = (nothing, (nothing,) * len(taken))
    return jax.lax.fori_loop(0, -(-inputs // height), compete, start)[1]
