"""The same rules with the same key change connections as they change masks."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fsjax.methods.shared.layers.free import positions_of
from fsjax.methods.shared.layers.rewiring import GROW, draw_connections, rewire_connections
from fsjax.sparsity import drop, grow, random_mask
from fsjax.sparsity.connections import connected
from fsjax.sparsity.topology import Layer, Rule, rewire

SHAPE, COUNT = (13, 17), 40

DROP = (drop.magnitude, drop.per_sign, drop.random, drop.lowest_similarity)

ORDINARY = [(drop.per_sign, grow.similar_or_random)]
ALL = [*itertools.product(DROP, GROW), (drop.magnitude, grow.switched(grow.similar, grow.random))]


def changes(drop_rule: Rule, grow_rule: Rule) -> Callable:
    """Changes a layer in both forms: ``(key, fraction) -> (masks, positions before, change)``."""

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
        again = jax.random.clone(key)

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
        return dense, flat, change

    return both


def check(both: Callable, seed: int, fraction: float) -> None:
    dense, before, change = both(jax.random.key(seed), fraction)
    after = np.asarray(change.connections.rows * SHAPE[1] + change.connections.columns)
    np.testing.assert_array_equal(after, np.flatnonzero(dense.mask))
    np.testing.assert_array_equal(~np.asarray(change.kept), np.asarray(dense.new).ravel()[after])
    assert int(change.connections.grown) == dense.new.sum()
    kept = np.asarray(change.kept)
    np.testing.assert_array_equal(np.asarray(before)[np.asarray(change.source)][kept], after[kept])


@pytest.mark.slow
@pytest.mark.parametrize("rules", ORDINARY, ids=lambda rules: "-".join(r.name for r in rules))
def test_the_same_topology_as_masks(rules: tuple) -> None:
    both = changes(*rules)

    @settings(max_examples=40, deadline=None)
    @given(seed=st.integers(0, 2**32 - 1), fraction=st.sampled_from([0.0, 0.1, 0.3, 0.7, 1.0]))
    def holds(seed: int, fraction: float) -> None:
        check(both, seed, fraction)

    holds()


@pytest.mark.long
@pytest.mark.parametrize("rules", ALL, ids=lambda rules: "-".join(r.name for r in rules))
def test_the_same_topology_by_every_pair_of_rules(rules: tuple) -> None:
    both = changes(*rules)
    for seed, fraction in ((0, 0.3), (1, 0.0), (2, 1.0), (3, 0.6)):
        check(both, seed, fraction)


def test_the_first_connections_are_those_of_a_mask() -> None:
    key = jax.random.key(3)
    connections = draw_connections(key, COUNT, SHAPE)
    rows, columns = np.nonzero(random_mask(jax.random.clone(key), SHAPE, COUNT))
    chex.assert_trees_all_equal((connections.rows, connections.columns), (rows, columns))


def test_first_connections_of_a_large_layer() -> None:
    connections = draw_connections(jax.random.key(0), 500, (3000, 2000))
    flat = np.asarray(connections.rows) * 2000 + np.asarray(connections.columns)
    assert len(flat) == 500
    assert (np.diff(flat) > 0).all()
