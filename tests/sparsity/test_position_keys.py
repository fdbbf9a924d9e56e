"""The positions of the true entries of a mask, compared with NumPy's."""

from __future__ import annotations

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from marks import slow_ids

from fsjax.methods.shared.layers.position_keys import positions_of

#: Around the blocks of 32 in which entries are counted.
SHAPES = [(1, 1), (31,), (32,), (33,), (8, 8), (5, 4, 3)]

find = jax.jit(positions_of, static_argnames="count")


@slow_ids("(31,)", "(8, 8)")
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_positions_are_those_of_numpy(shape: tuple[int, ...]) -> None:
    size = int(np.prod(shape))
    rng = np.random.default_rng(size)
    for count in sorted({0, 1, size // 2, size - 1, size}):
        mask = (rng.permutation(size) < count).reshape(shape)
        positions = find(jnp.asarray(mask), count)
        assert positions.dtype == jnp.int32
        chex.assert_trees_all_equal(np.asarray(positions), np.flatnonzero(mask).astype(np.int32))


def test_positions_where_blocks_are_empty_or_full() -> None:
    mask = np.zeros(32 * 6 + 5, bool)
    mask[64:96] = True  # A full block after two empty ones.
    mask[[159, 160, -1]] = True  # The ends of two blocks, and of the last one, which is cut.
    positions = find(jnp.asarray(mask), int(mask.sum()))
    chex.assert_trees_all_equal(np.asarray(positions), np.flatnonzero(mask).astype(np.int32))
