"""Random and best free positions, chosen without an array of all positions."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fsjax.methods.shared.layers.free import FreePairs, Taken, best_free, by_rejection
from fsjax.methods.shared.layers.places import LAST, find_keys, keys_of
from fsjax.sparsity.kth import largest

SHAPE = (6, 9)
COUNT = 13


@functools.partial(jax.jit, static_argnames="shape")
def drawn(key, keys, among, wanted, shape=SHAPE) -> FreePairs:
    return by_rejection(key, (Taken(keys, among),), wanted, COUNT, shape)


@functools.partial(jax.jit, static_argnames="block")
def best(scores, keys, among, wanted, block=4 * 9) -> FreePairs:
    return best_free(lambda rows: scores[rows], Taken(keys, among), wanted, COUNT, SHAPE, block)


of_mask = jax.jit(largest)


def taken(seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    keys = np.sort(rng.permutation(SHAPE[0] * SHAPE[1])[:COUNT]).astype(np.int32)
    return keys, rng.random(COUNT) < 0.6


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), wanted=st.integers(0, COUNT))
def test_random_positions_are_free_and_distinct(seed: int, wanted: int) -> None:
    keys, among = taken(seed)
    picks = drawn(jax.random.key(seed), (keys,), among, wanted)
    chosen = np.asarray(picks.keys[0])[np.asarray(picks.chosen)]
    assert len(chosen) == wanted
    assert (np.diff(chosen) > 0).all()
    assert not set(chosen) & set(keys[among])
    assert wanted == 0 or (chosen.min() >= 0 and chosen.max() < SHAPE[0] * SHAPE[1])


@pytest.mark.slow
def test_random_positions_are_uniform() -> None:
    keys, among = taken(1)
    number, wanted = 20_000, 9
    occupied = Taken((jnp.asarray(keys),), jnp.asarray(among))
    draw = functools.partial(by_rejection, wanted=wanted, most=COUNT, shape=SHAPE)
    picks = jax.jit(jax.vmap(lambda key: draw(key, (occupied,))))(
        jax.random.split(jax.random.key(0), number)
    )
    positions = np.asarray(picks.keys[0])[np.asarray(picks.chosen)]
    counts = np.bincount(positions, minlength=54)
    free = np.ones(54, bool)
    free[keys[among]] = False
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
    picks = drawn(jax.random.key(0), keys, np.ones(COUNT, bool), 11, shape)
    rows, columns = (np.asarray(part)[np.asarray(picks.chosen)] for part in picks.keys)
    assert len(rows) == 11
    assert (np.diff(rows) >= 0).all()
    assert rows.max() > 2**15
    assert columns.max() > 2**15
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
    keys, among = taken(seed)
    scores = np.random.default_rng(seed).integers(0, levels, SHAPE).astype(np.float32) - 3
    free = np.ones(SHAPE, bool)
    free.ravel()[keys[among]] = False
    expected = np.flatnonzero(of_mask(scores, wanted, free))
    picks = best(scores, (keys,), among, wanted, block)
    np.testing.assert_array_equal(np.asarray(picks.keys[0])[np.asarray(picks.chosen)], expected)
    assert (np.asarray(picks.keys[0])[wanted:] == LAST).all()
