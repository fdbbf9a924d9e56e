"""Random and best free positions, chosen without an array of all positions."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fsjax.methods.shared.layers.free_positions import best_free, random_free
from fsjax.methods.shared.layers.position_keys import (
    LAST,
    Keys,
    compress,
    find_keys,
    index_in,
    joined,
    keys_of,
    order_of_union,
)
from fsjax.sparsity.kth import largest

SHAPE = (6, 9)
SIZE, COUNT = 54, 13


@functools.partial(jax.jit, static_argnames="shape")
def drawn(key, taken: Keys, wanted, shape=SHAPE) -> Keys:
    return random_free(key, (taken,), wanted, COUNT, shape)


@functools.partial(jax.jit, static_argnames="block")
def best(scores, taken: Keys, wanted, block) -> Keys:
    return best_free(lambda rows: scores[rows], taken, wanted, COUNT, SHAPE, block)


of_mask = jax.jit(largest)


def some_keys(seed: int) -> tuple[np.ndarray, Keys]:
    """Up to 13 positions, and the same as a list of keys."""
    rng = np.random.default_rng(seed)
    keys = np.sort(rng.permutation(SIZE)[: rng.integers(COUNT + 1)]).astype(np.int32)
    return keys, (jnp.pad(keys, (0, COUNT - len(keys)), constant_values=LAST),)


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), wanted=st.integers(0, COUNT))
def test_random_positions_are_free_and_distinct(seed: int, wanted: int) -> None:
    taken, keys = some_keys(seed)
    (positions,) = (np.asarray(part) for part in drawn(jax.random.key(seed), keys, wanted))
    chosen = positions[:wanted]
    assert (positions[wanted:] == LAST).all()
    assert (np.diff(chosen) > 0).all()
    assert not set(chosen) & set(taken)
    assert wanted == 0 or (chosen.min() >= 0 and chosen.max() < SIZE)


@pytest.mark.slow
def test_random_positions_are_uniform() -> None:
    taken, keys = some_keys(1)
    number, wanted = 20_000, 9
    draw = functools.partial(random_free, taken=(keys,), wanted=wanted, max_count=9, shape=SHAPE)
    (positions,) = jax.jit(jax.vmap(lambda key: draw(key)))(
        jax.random.split(jax.random.key(0), number)
    )
    counts = np.bincount(np.ravel(positions), minlength=SIZE)
    free = np.ones(SIZE, bool)
    free[taken] = False
    assert 0 < free.sum() < SIZE
    share = wanted / free.sum()
    # Five standard errors.
    allowed = 5 * np.sqrt(number * share * (1 - share))
    assert np.abs(counts[free] - number * share).max() < allowed
    assert not counts[~free].any()


def test_layers_of_more_positions_than_int32_holds() -> None:
    shape = (2**17, 2**18)
    rng = np.random.default_rng(0)
    keys = keys_of(*(np.sort(rng.integers(0, n, COUNT)).astype(np.int32) for n in shape), shape)
    assert len(keys) == 2
    rows, columns = (np.asarray(part)[:11] for part in drawn(jax.random.key(0), keys, 11, shape))
    assert (np.diff(rows) >= 0).all()
    assert 2**15 < rows.max() < 2**17
    assert 2**15 < columns.max() < 2**18
    on_device = tuple(jnp.asarray(part) for part in keys)
    np.testing.assert_array_equal(find_keys(on_device, on_device), np.arange(COUNT))


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    wanted=st.integers(0, COUNT),
    levels=st.integers(1, 40),
    block=st.sampled_from([4 * 9, 6 * 9]),
)
def test_best_positions_equal_those_of_a_mask(
    seed: int, wanted: int, levels: int, block: int
) -> None:
    """With few levels, most scores are tied. The larger block holds the whole layer."""
    taken, keys = some_keys(seed)
    scores = np.random.default_rng(seed).integers(0, levels, SHAPE).astype(np.float32) - 3
    free = np.ones(SHAPE, bool)
    free.ravel()[taken] = False
    expected = np.flatnonzero(of_mask(scores, wanted, free))
    (positions,) = (np.asarray(part) for part in best(scores, keys, wanted, block))
    np.testing.assert_array_equal(positions[:wanted], expected)
    assert (positions[wanted:] == LAST).all()


@jax.jit
def split_and_joined(keys: Keys, chosen: jax.Array) -> tuple[Keys, jax.Array]:
    parts = [compress(keys, part & (keys[0] < LAST), COUNT) for part in (chosen, ~chosen)]
    return joined(*parts, order_of_union(*parts, COUNT)), index_in(parts[0], keys)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_two_parts_of_a_list_make_the_list(seed: int) -> None:
    taken, keys = some_keys(seed)
    chosen = np.random.default_rng(seed).random(COUNT) < 0.5
    (both,), index = split_and_joined(keys, chosen)
    np.testing.assert_array_equal(both, keys[0])
    expected = np.where(chosen, np.cumsum(chosen) - 1, LAST)
    np.testing.assert_array_equal(index[: len(taken)], expected[: len(taken)])
