"""How networks rewire themselves: the rules against NumPy.

Covers ``fsjax.methods.ctre``.
"""

from __future__ import annotations

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from marks import slow_ids
from sparse_network_reference import (
    DEEPER,
    SHAPES,
    SIZES,
    B,
    C,
    D,
    N,
    begun,
    change,
    cosines,
    dropped_by_magnitude,
    kernels,
    momentum,
    random_rows,
    rows,
    slopes,
    some_state,
    spec_for,
    top,
)

import fsjax
from fsjax.methods.shared import rule_inputs
from fsjax.methods.shared.sparse_network import sparse_network
from fsjax.sparsity import Layer, drop, erdos_renyi_counts, needs

#: Of which what was dropped may come back at once.
SIMILAR = fsjax.methods.ctre_sim(grow="similar", drop_fraction=0.5, **SIZES)


def test_new_connections_start_anew_and_regrown_ones_stay() -> None:
    state = some_state(SIMILAR)
    after = change(SIMILAR, state)
    regrown, drawn = 0, []
    for (fan_in, _), old, new, weight, new_weight, moment, new_moment in zip(
        SHAPES,
        kernels(state.masks),
        kernels(after.masks),
        kernels(state.params),
        kernels(after.params),
        momentum(state),
        momentum(after),
        strict=True,
    ):
        assert new.sum() == old.sum()
        fresh, kept = new & ~old, new & old
        regrown += int((kept & dropped_by_magnitude(weight, old, 0.5)).sum())
        chex.assert_trees_all_equal(new_weight[kept], weight[kept])
        chex.assert_trees_all_equal(new_moment[kept], moment[kept])
        assert not new_weight[~new].any() and not new_moment[~kept].any()
        drawn.append(new_weight[fresh] / np.sqrt(6 / fan_in))
    assert regrown > 0
    drawn = np.concatenate(drawn)
    assert drawn.size > 10 and len(np.unique(drawn)) == drawn.size
    assert np.abs(drawn).max() <= 1 and np.ptp(drawn) > 1.2
    for layer in after.params:
        chex.assert_trees_all_equal(after.params[layer]["bias"], state.params[layer]["bias"])


def test_nothing_is_rewired_after_the_last_epoch() -> None:
    state = some_state(SIMILAR)
    for epoch, changes in ((7, True), (8, False)):
        state = state.replace(epoch=jnp.int32(epoch))
        after = change(SIMILAR, state)
        assert (kernels(after.masks)[0] != kernels(state.masks)[0]).any() == changes
    chex.assert_trees_all_equal(after, state)


def test_snip_keeps_what_the_loss_depends_on_most() -> None:
    spec, data = spec_for(), rows()
    dense = fsjax.methods.dense(hidden=SIZES["hidden"])
    state, pruned = (
        jax.jit(lambda key, m=method: m.init(key, spec, data))(jax.random.key(0))
        for method in (dense, fsjax.methods.snip(**SIZES))
    )
    batch = rule_inputs.random_batch(jax.random.split(jax.random.key(0))[1], data, B)
    gradients = slopes(state.params, np.asarray(batch.x), np.asarray(batch.y))
    counts = erdos_renyi_counts(SHAPES, 1.5)
    for mask, weight, left, slope, count in zip(
        kernels(pruned.masks),
        kernels(state.params),
        kernels(pruned.params),
        gradients,
        counts,
        strict=True,
    ):
        expected = top(np.abs(slope * weight), count, np.ones_like(mask))
        chex.assert_trees_all_equal(mask, expected)
        assert mask.sum() == count
        chex.assert_trees_all_equal(left, np.where(mask, weight, 0))


def test_rigl_grows_where_the_dense_gradient_is_largest() -> None:
    method = fsjax.methods.rigl(drop_fraction=0.3, **SIZES)
    state = some_state(method)
    after = change(method, state)
    batch = random_rows(jax.random.key(3))
    gradients = slopes(state.params, np.asarray(batch.x), np.asarray(batch.y))
    for old, new, weight, left, slope in zip(
        *map(kernels, (state.masks, after.masks, state.params, after.params)),
        gradients,
        strict=True,
    ):
        dropped = dropped_by_magnitude(weight, old, 0.3)
        kept = old & ~dropped
        grown = top(np.abs(slope), int(dropped.sum()), ~kept)
        chex.assert_trees_all_equal(new, kept | grown)
        # They start at 0.
        assert (new & ~old).any() and not left[new & ~old].any()


@pytest.mark.slow
@pytest.mark.parametrize(("task", "fraction"), [("classification", 1.0), ("regression", 0.4)])
def test_ctre_grows_between_similar_neurons(task: str, fraction: float) -> None:
    method = fsjax.methods.ctre_sim(grow="similar", similarity_fraction=fraction, **DEEPER)
    state, data = some_state(method, spec_for(task)), rows(task)
    after = change(method, state, task)
    x, counts = rule_inputs.some_rows(jax.random.split(jax.random.key(3))[1], data, fraction)
    assert counts.all()
    assert len(np.unique(x, axis=0)) == len(x) == round(fraction * N)
    # Class probabilities are the last activations; other tasks have plain outputs.
    similarities = cosines(state.params, np.asarray(x), task)
    for old, new, weight, similarity in zip(
        *map(kernels, (state.masks, after.masks, state.params)), similarities, strict=True
    ):
        dropped = dropped_by_magnitude(weight, old, 0.2)
        kept = old & ~dropped
        chex.assert_trees_all_equal(new, kept | top(similarity, int(dropped.sum()), ~kept))


def test_ctre_sim_takes_random_connections_for_similar_ones_just_dropped() -> None:
    method = fsjax.methods.ctre_sim(drop_fraction=0.5, **SIZES)
    state = some_state(method)
    after = change(method, state)
    rejected = 0
    for old, new, weight, similarity in zip(
        *map(kernels, (state.masks, after.masks, state.params)),
        cosines(state.params, np.asarray(rows().x), "classification"),
        strict=True,
    ):
        dropped = dropped_by_magnitude(weight, old, 0.5)
        picks = top(similarity, int(dropped.sum()), ~old | dropped)
        assert new[picks & ~dropped].all() and new[old & ~dropped].all()
        assert new.sum() == old.sum()
        rejected += int((picks & dropped).sum())
    assert rejected > 0


@pytest.mark.parametrize("name", ["cosine", "euclidean"])
def test_similarities_add_up_over_chunks_of_rows(name: str, monkeypatch) -> None:
    def activations(x: jax.Array) -> list[jax.Array]:
        return [x, jnp.tanh(x[:, :5] - 0.3), jnp.exp(x[:, 2:4])]

    def similarities(x: jax.Array) -> list[jax.Array]:
        roots = jnp.where(jnp.arange(len(x)) < N, 1.0, 0.0)
        return rule_inputs.layer_similarities(activations, x, roots, name)

    at_once = jax.jit(similarities)(rows().x)
    # Rows that only fill up may hold anything.
    filled = jnp.concatenate([rows().x, jnp.full((3, D), 9.0)])
    chex.assert_trees_all_close(jax.jit(similarities)(filled), at_once, rtol=1e-5, atol=1e-6)
    # A row of weight 4 counts as four rows.
    roots = jnp.where(jnp.arange(N) < 9, 2.0, 1.0)
    weighted = rule_inputs.layer_similarities(activations, rows().x, roots, name)
    repeated = jnp.repeat(rows().x, roots.astype(int) ** 2, axis=0)
    alike = rule_inputs.layer_similarities(activations, repeated, jnp.ones(len(repeated)), name)
    chex.assert_trees_all_close(weighted, alike, rtol=1e-5, atol=1e-6)
    # 29 rows: five chunks of six rows, the last with one too many.
    monkeypatch.setattr(rule_inputs, "ROWS_AT_ONCE", 7)
    in_chunks = jax.jit(lambda x: similarities(x))(rows().x)
    chex.assert_trees_all_close(in_chunks, at_once, rtol=1e-5, atol=1e-6)


@pytest.mark.slow
def test_every_layer_gets_its_own_similarity() -> None:
    # With eleven layers, as layer_10 comes before layer_2 in the order of words.
    hidden, seen = tuple(range(5, 15)), {}

    @needs("similarity")
    def nowhere_else(layer: Layer, dropped: jax.Array, key: jax.Array) -> jax.Array:
        assert layer.similarity.shape == layer.weight.shape
        assert layer.state.spec == spec_for()
        seen[layer.number] = layer.weight.shape
        return dropped

    rules = dict(drop=drop.magnitude, grow=nowhere_else, drop_fraction=0.2)
    options = dict(epsilon=1.0, learning_rate=0.1, momentum=0.9, l2=0.0)
    method = sparse_network(hidden=hidden, **rules, **options)
    state = begun(method, spec_for())
    jax.eval_shape(method.after_epoch, state, rows(), jax.random.key(0))
    widths = (D, *hidden, C)
    assert [seen[number] for number in range(11)] == list(zip(widths, widths[1:], strict=False))


def test_rows_are_drawn_from_those_that_count() -> None:
    data = rows()._replace(weight=(jnp.arange(N) < 20) * 1.0)
    drawn = jax.jit(lambda key: rule_inputs.random_batch(key, data, 500))(jax.random.key(0))
    allowed = {bytes(row) for row in np.asarray(data.x[:20])}
    assert {bytes(row) for row in np.asarray(drawn.x)} == allowed
    some_rows = jax.jit(lambda key: rule_inputs.some_rows(key, data, 0.4))
    x, counts = some_rows(jax.random.key(1))
    chosen = {bytes(row) for row in np.asarray(x)[np.asarray(counts) > 0]}
    assert len(chosen) == 8 and chosen <= allowed


#: After which epochs, with the best epoch so far, CTRE_seq has switched, for patience 2.
STALLING = [(1, 1, False), (2, 1, False), (3, 3, False), (4, 3, False), (5, 3, True), (6, 6, True)]
WITHOUT_VALIDATION = [(2, 0, False), (7, 0, False)]
HALF = [(1, 1, False), (3, 1, False), (4, 4, True), (5, 5, True), (7, 7, True)]


@slow_ids("random_first-*")
@slow_ids("half-*")
@pytest.mark.parametrize(
    ("order", "sequence"),
    [
        ("similar_first", STALLING),
        ("similar_first", WITHOUT_VALIDATION),
        ("random_first", STALLING),
        ("half", HALF),
    ],
)
def test_ctre_seq_switches_once(order: str, sequence: list[tuple[int, int, bool]]) -> None:
    method = fsjax.methods.ctre_seq(order=order, patience=2, **SIZES)
    state = some_state(method)
    for epoch, best, switched in sequence:
        best = state.best._replace(epoch=jnp.int32(best))
        state = state.replace(epoch=jnp.int32(epoch), best=best)
        after = change(method, state, seed=epoch)
        assert bool(after.log["search"]) == switched
        similarities = cosines(state.params, np.asarray(rows().x), "classification")
        follows = []
        for old, new, weight, similarity in zip(
            *map(kernels, (state.masks, after.masks, state.params)), similarities, strict=True
        ):
            dropped = dropped_by_magnitude(weight, old, 0.2)
            kept = old & ~dropped
            expected = kept | top(similarity, int(dropped.sum()), ~kept)
            follows.append((new == expected).all())
        at_random = switched == (order == "similar_first")
        assert not follows[0] if at_random else all(follows)
        state = after
