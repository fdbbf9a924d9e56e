"""The same rules change connections as they change masks, up to random numbers."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from marks import slow_ids

from fsjax.methods.shared.layers.position_keys import positions_of
from fsjax.methods.shared.layers.rewiring import GROW, draw_connections, rewire_connections
from fsjax.sparsity import choose_dropped, drop, grow, largest, random_mask
from fsjax.sparsity.connections import connected
from fsjax.sparsity.rules import Layer, Rule
from fsjax.sparsity.topology import rewire

SHAPE, COUNT = (13, 17), 40

DROP = (drop.magnitude, drop.per_sign, drop.random, drop.lowest_similarity)

EXACT_GROW = (grow.similar, grow.gradient)
ORDINARY = [(drop.per_sign, grow.similar), (drop.magnitude, grow.similar_or_random)]
ALL = [*itertools.product(DROP, GROW), (drop.magnitude, grow.switched(grow.similar, grow.random))]


def changes(drop_rule: Rule, grow_rule: Rule) -> Callable:
    """Changes a layer in both forms: ``(key, fraction) -> (masks, positions, expected, change)``.

    The positions are those before the change; expected are those that have to be there after it.
    """

    @jax.jit
    def both(key, fraction):
        key_mask, key_weight, key_scores, key = jax.random.split(key, 4)
        mask = random_mask(key_mask, SHAPE, COUNT)
        # Few values, so that many are tied and some weights are 0.
        weight = jnp.where(mask, jnp.round(2 * jax.random.normal(key_weight, SHAPE)) / 2, 0.0)
        scores = jnp.round(8 * jax.random.uniform(key_scores, SHAPE)) / 8 - 0.5
        constants = {"search": jnp.ones((), bool), "number": 0}
        layer = Layer(weight, mask, similarity=scores, gradient=scores, **constants)
        dense = rewire(layer, drop_rule, grow_rule, fraction, key)
        again, key_drop = jax.random.clone(key), jax.random.split(jax.random.clone(key))[0]
        dropped = choose_dropped(drop_rule, layer, fraction, key_drop)
        expected = mask & ~dropped
        if grow_rule is grow.similar_or_random:
            expected |= largest(scores, dropped.sum(), ~expected) & ~dropped

        flat = positions_of(mask, COUNT)
        old = connected(flat // SHAPE[1], flat % SHAPE[1], SHAPE)
        small = Layer(
            weight.reshape(-1)[flat],
            jnp.ones(COUNT, bool),
            similarity=scores.reshape(-1)[flat],
            **constants,
        )
        args = (old, small, drop_rule, grow_rule, fraction, again)
        ranked = dict.fromkeys(("similarity", "gradient"), lambda rows: scores[rows])
        change = rewire_connections(*args, ranked)
        return dense, flat, expected, change

    return both


def check(rules: tuple[Rule, Rule], both: Callable, seed: int, fraction: float) -> None:
    dense, before, expected, change = both(jax.random.key(seed), fraction)
    before, kept = np.asarray(before), np.asarray(change.kept)
    after = np.asarray(change.connections.rows * SHAPE[1] + change.connections.columns)
    assert len(after) == COUNT and (np.diff(after) > 0).all()
    assert after[0] >= 0 and after[-1] < SHAPE[0] * SHAPE[1]
    np.testing.assert_array_equal(kept, np.isin(after, before))
    np.testing.assert_array_equal(before[np.asarray(change.source)][kept], after[kept])
    assert int(change.connections.grown) == (~kept).sum()
    drop_rule, grow_rule = rules
    if drop_rule is drop.random:
        assert kept.sum() >= expected.sum()
        return
    assert set(np.flatnonzero(expected)) <= set(after)
    if grow_rule in EXACT_GROW:
        np.testing.assert_array_equal(after, np.flatnonzero(dense.mask))


@pytest.mark.slow
@pytest.mark.parametrize("rules", ORDINARY, ids=lambda rules: "-".join(r.name for r in rules))
def test_the_same_topology_as_masks(rules: tuple) -> None:
    both = changes(*rules)

    @settings(max_examples=40, deadline=None)
    @given(seed=st.integers(0, 2**32 - 1), fraction=st.sampled_from([0.0, 0.1, 0.3, 0.7, 1.0]))
    def holds(seed: int, fraction: float) -> None:
        check(rules, both, seed, fraction)

    holds()


@pytest.mark.long
@pytest.mark.parametrize("rules", ALL, ids=lambda rules: "-".join(r.name for r in rules))
def test_the_same_topology_by_every_pair_of_rules(rules: tuple) -> None:
    both = changes(*rules)
    for seed, fraction in ((0, 0.3), (1, 0.0), (2, 1.0), (3, 0.6)):
        check(rules, both, seed, fraction)


@slow_ids("55-*")
@pytest.mark.parametrize(("count", "shape"), [(COUNT, SHAPE), (55, SHAPE), (500, (3000, 2000))])
def test_first_connections(count: int, shape: tuple[int, int]) -> None:
    connections = draw_connections(jax.random.key(3), count, shape)
    flat = np.asarray(connections.rows) * shape[1] + np.asarray(connections.columns)
    assert len(flat) == count
    assert (np.diff(flat) > 0).all() and flat[-1] < shape[0] * shape[1]
