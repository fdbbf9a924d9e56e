"""The Optax wrapper with masks of SNIP and of users, and the errors that it raises.

Covers ``fsjax.sparsity.named_recipes``, ``fsjax.sparsity.recipes``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import chex
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from bad_calls import bad_calls, refuses
from sparsity_reference import first_of_sort, rules_of
from sparsity_trees import (
    SMALL,
    START,
    noisy_gradient,
    only_dense,
)

from fsjax import sparsity
from fsjax.errors import ConfigError
from fsjax.sparsity import drop, grow
from fsjax.sparsity.topology import choose_dropped, choose_grown
from fsjax.sparsity.updates import layers_of


def test_snip_keeps_the_largest_products_of_every_layer_and_starts_from_them() -> None:
    params = START
    gradients = noisy_gradient(params, jnp.int32(0))
    recipe = sparsity.static(0.3)
    masks = sparsity.snip_masks(params, gradients, recipe.counts)
    counts = recipe.counts([(3, 3, 1, 4), (12, 6)])
    for layer, count in zip(("conv", "dense"), counts, strict=True):
        scores = np.abs(np.asarray(params[layer]["kernel"] * gradients[layer]["kernel"]))
        expected = first_of_sort(scores, count, descending=True)
        np.testing.assert_array_equal(masks[layer]["kernel"], expected)
        assert np.asarray(masks[layer]["bias"]).all()
    tx = optax.chain(optax.clip(1.0), sparsity.sparse(optax.adam(0.1), recipe, jax.random.key(0)))
    state = sparsity.with_masks(tx.init(params), masks)
    chex.assert_trees_all_equal(sparsity.masks_of(state), masks)
    chex.assert_trees_all_equal(
        sparsity.mask_params(params, state), sparsity.apply_masks(params, masks)
    )


def test_snip_of_the_parameters_themselves_is_magnitude_pruning() -> None:
    params = SMALL
    masks = sparsity.snip_masks(params, params, lambda shapes: [10])
    expected = first_of_sort(np.abs(params["dense"]["kernel"]), 10, descending=True)
    np.testing.assert_array_equal(masks["dense"]["kernel"], expected)


def test_bad_masks_are_refused() -> None:
    state = sparsity.sparse(optax.sgd(0.1), sparsity.static(0.3), jax.random.key(0)).init(SMALL)
    turned = {"dense": {"bias": jnp.ones(6, bool), "kernel": jnp.ones((6, 12), bool)}}
    flat = {"dense": jnp.ones((12, 6), bool)}
    refuses(lambda: sparsity.with_masks(state, flat), "structure")
    with_turned = sparsity.sparse(
        optax.sgd(0.1), sparsity.static(0.3), jax.random.key(0), masks=turned
    )
    refuses(lambda: with_turned.init(SMALL), "dense/kernel has shape (6, 12)", "(12, 6)")
    refuses(lambda: sparsity.with_masks(state, turned), "dense/kernel has shape (6, 12)", "(12, 6)")
    plain = optax.adam(0.1).init(SMALL)
    refuses(lambda: sparsity.masks_of(plain), "0 sparse optimisers", "wrap")
    refuses(lambda: sparsity.masks_of((state, state)), "2 sparse optimisers")


@bad_calls(
    ({"fraction": 30, "end_step": 300}, "fraction=30", "0 to 1"),
    ({"fraction": -0.3, "end_step": 300}, "fraction=-0.3", "0 to 1"),
    ({"end_step": 0}, "end_step=0", "from 1"),
)
@pytest.mark.parametrize("build", [sparsity.rigl, sparsity.srigl])
def test_fractions_that_decay_are_checked(build: Callable, bad: tuple) -> None:
    refuses(lambda: build(0.1, **bad[0]), *bad[1:])


@bad_calls(
    ({"density": 1.5}, "density=1.5", "above 0 to 1"),
    ({"density": 0.0}, "density=0.0", "above 0"),
    ({"epsilon": -1}, "epsilon=-1", "above 0"),
    ({}, "one of the two"),
    ({"density": 0.1, "epsilon": 1}, "one of the two"),
    ({"density": 0.1, "distribution": "erkk"}, "did you mean 'erk'"),
    ({"density": 0.1, "fraction": 1.2}, "fraction=1.2", "0 to 1"),
    ({"density": 0.1, "every": 0}, "every=0", "at least 1"),
    ({"density": 0.1, "end_step": 2.5}, "end_step=2.5", "whole"),
    ({"density": 0.1, "grow": grow.random}, "give drop= too"),
    ({"density": 0.1, "drop": "random"}, "drop='random'", "pass a function"),
)
def test_bad_recipes_are_refused(bad: tuple) -> None:
    refuses(lambda: sparsity.Recipe(**bad[0]), *bad[1:])


def test_recipes_have_the_settings_that_were_asked_for() -> None:
    rigl = sparsity.rigl(0.2, fraction=0.4, end_step=12, every=3)
    assert (rigl.density, rigl.end_step, rigl.every, rigl.replaces_step) == (0.2, 12, 3, True)
    fractions = [float(rigl.fraction_at(step)) for step in (0, 6, 12)]
    np.testing.assert_allclose(fractions, [0.4, 0.2, 0.0], atol=1e-6)
    assert sparsity.rigl(0.2).fraction_at(99) == 0.3
    own = sparsity.rigl(0.2, fraction=optax.linear_schedule(0.5, 0.1, 10), end_step=12, every=3)
    assert float(own.fraction_at(5)) == pytest.approx(0.3)
    ctre = sparsity.ctre_sim(epsilon=1, fraction=0.1, distribution="er")
    assert (ctre.epsilon, ctre.fraction, ctre.distribution) == (1, 0.1, "er")
    cht = sparsity.cht(0.2, grow=grow.sampled_short_paths, end_step=500)
    assert (cht.drop, cht.grow, cht.end_step) == (drop.magnitude, grow.sampled_short_paths, 500)


@pytest.mark.slow
def test_equal_layers_get_different_connections() -> None:
    weight = jnp.ones((8, 8))
    params = {name: {"kernel": weight} for name in ("first", "second")}
    masks = jax.tree.map(lambda leaf: jnp.arange(64).reshape(8, 8) < 20, params)
    recipe = sparsity.Recipe(density=0.3, drop=drop.magnitude, grow=grow.random, fraction=0.5)
    layers = layers_of(params, masks)
    changed = recipe.change(params, masks, layers, jax.random.key(0)).masks
    first, second = (np.asarray(changed[name]["kernel"]) for name in ("first", "second"))
    assert first.sum() == second.sum() == 20 and (first != second).any()


def test_bad_use_is_refused_with_advice() -> None:
    def update(recipe: sparsity.Recipe, where: Any = sparsity.is_kernel, **extra: Any) -> None:
        tx = sparsity.sparse(optax.sgd(0.1), recipe, jax.random.key(0), where)
        tx.update(START, tx.init(START), START, **extra)

    tx = sparsity.sparse(optax.sgd(0.1), sparsity.static(0.3), jax.random.key(0))
    refuses(lambda: tx.init({"bias": jnp.ones(3)}), "chooses no parameter; there are bias")
    refuses(lambda: tx.update(START, tx.init(START)), "tx.update(grads, opt_state, params)")
    ctre, small = sparsity.ctre_sim(0.3), {"conv": {"kernel": jnp.ones((2, 2))}}
    refuses(lambda: update(ctre), "similar_or_random needs similarity of conv/kernel")
    refuses(lambda: update(ctre, similarity=small), "similarity of conv/kernel", "(2, 2)")
    inputs = sparsity.Recipe(density=0.3, drop=drop.random, grow=grow.important_inputs)
    wide = {"conv": {"kernel": jnp.ones((3, 3, 1, 1))}}
    refuses(lambda: update(inputs, importance=wide), "important_inputs is for matrices")
    flat = {"dense": {"kernel": jnp.ones(12)}}
    refuses(lambda: update(inputs, only_dense, importance=flat), "dense/kernel", "broadcast")


def test_rules_declare_what_they_need() -> None:
    weight = jnp.ones((2, 2))
    optional = (
        *("gradient", "similarity", "importance", "search", "hessian_gradient", "momentum"),
        "movement",
    )
    full = sparsity.Layer(
        weight, weight > 0, 0, weight, weight, weight, jnp.array(False), None, *[weight] * 3
    )
    rules = [(rule, choose_dropped, 0.5) for rule in rules_of(drop, "fraction").values()]
    rules += [(rule, choose_grown, weight > 0) for rule in rules_of(grow, "dropped").values()]
    rules.append((grow.switched(grow.similar, grow.gradient), choose_grown, weight > 0))
    assert len(rules) == 19
    for rule, choose, second in rules:
        missed = set()
        for field in optional:
            layer, choice = full._replace(**{field: None}), functools.partial(choose, rule)
            try:
                jax.eval_shape(choice, layer, second, jax.random.key(0))
            except (TypeError, AttributeError, ConfigError):
                missed.add(field)
        assert rule.needs == missed, rule


def test_the_mean_of_gradients_in_bfloat16_decays() -> None:
    recipe = sparsity.Recipe(
        density=0.5, drop=drop.magnitude, grow=grow.momentum, every=10**6, momentum_decay=0.999
    )
    params = {"kernel": jnp.ones((2, 2), jnp.bfloat16)}
    tx = sparsity.sparse(optax.sgd(0.0), recipe, jax.random.key(0))
    ones = jnp.repeat(jnp.bfloat16([1, 0]), 2000)

    def step(state: Any, gradient: jax.Array) -> Any:
        state = tx.update({"kernel": jnp.full((2, 2), gradient)}, state, params)[1]
        return state, state.momentum["kernel"][0, 0]

    means = jax.lax.scan(step, tx.init(params), ones)[1]
    np.testing.assert_allclose(means[1999::2000], [0.865, 0.117], atol=1e-3)


def test_growth_by_momentum_sees_the_mean_of_all_gradients() -> None:
    recipe = sparsity.Recipe(
        density=0.3, drop=drop.magnitude, grow=grow.momentum, every=3, momentum_decay=0.5
    )
    tx = sparsity.sparse(optax.apply_if_finite(optax.sgd(0.1), 3), recipe, jax.random.key(0))
    state = tx.init(SMALL)
    params, update = sparsity.mask_params(SMALL, state), jax.jit(tx.update)
    mean = jax.tree.map(np.zeros_like, SMALL)
    for step in range(3):
        before = sparsity.masks_of(state)
        gradients = noisy_gradient(params, step)
        if step == 1:  # Leaves the mean as it is.
            gradients = jax.tree.map(lambda g: g * jnp.nan, gradients)
        else:
            mean = jax.tree.map(lambda m, g: 0.5 * m + 0.5 * np.asarray(g), mean, gradients)
        updates, state = update(gradients, state, params)
        params = optax.apply_updates(params, updates)
    chex.assert_trees_all_close(state.momentum, mean, rtol=1e-6)
    old, new = (np.asarray(m["dense"]["kernel"]) for m in (before, sparsity.masks_of(state)))
    scores = np.abs(mean["dense"]["kernel"])
    assert (new & ~old).any() and scores[new & ~old].min() >= scores[~old & ~new].max()
    assert (
        sparsity.sparse(optax.sgd(0.1), sparsity.rigl(0.3), jax.random.key(0)).init(SMALL).momentum
        is None
    )


@pytest.mark.parametrize("straight_through", [False, True])
def test_movement_is_the_sum_over_all_steps(straight_through: bool) -> None:
    schedule, options = sparsity.polynomial(1, 5, power=1), {"distribution": "uniform"}
    options["straight_through"] = straight_through
    recipe = sparsity.movement(0.4, schedule=schedule, **options)
    tx = sparsity.sparse(optax.sgd(0.1), recipe, jax.random.key(0))
    state, params, update = tx.init(SMALL), SMALL, jax.jit(tx.update)
    total = np.zeros((12, 6))
    for step in range(5):
        gradients = noisy_gradient(params, step)
        if step == 2:  # Says nothing.
            gradients["dense"]["bias"] = gradients["dense"]["bias"] * jnp.nan
            gradients["dense"]["kernel"] = gradients["dense"]["kernel"] * jnp.nan
        else:
            total -= np.asarray(params["dense"]["kernel"] * gradients["dense"]["kernel"])
        before = np.asarray(sparsity.masks_of(state)["dense"]["kernel"])
        updates, state = update(gradients, state, params)
        if step != 2:
            params = optax.apply_updates(params, updates)
    np.testing.assert_allclose(state.movement["dense"]["kernel"], total, rtol=1e-5, atol=1e-6)
    mask = np.asarray(sparsity.masks_of(state)["dense"]["kernel"])
    assert mask.sum() == 29  # round(0.4 * 72)
    among = np.ones_like(before) if straight_through else before
    assert total[mask].min() >= total[among & ~mask].max()
    assert straight_through or (np.asarray(params["dense"]["kernel"])[~mask] == 0).all()


def test_movement_of_bfloat16_is_summed_in_float32() -> None:
    params = {"kernel": jnp.ones((4, 4), jnp.bfloat16)}
    recipe = sparsity.movement(0.5, schedule=sparsity.one_shot(9))
    state = sparsity.sparse(optax.sgd(0.1), recipe, jax.random.key(0)).init(params)
    assert state.movement["kernel"].dtype == jnp.float32 and state.momentum is None


@sparsity.needs("importance")
def by_importance(layer: sparsity.Layer, dropped: jax.Array, key: jax.Array) -> jax.Array:
    return dropped


@bad_calls(
    (grow.switched(grow.random, grow.gradient), "switched(random, gradient) needs search"),
    (sparsity.needs("state")(lambda layer, dropped, key: dropped), "only methods have a train"),
    (lambda layer, dropped, key: layer.weight[0], "grow rule <lambda> returns the shape"),
    (by_importance, "by_importance needs importance of dense/kernel"),
)
def test_rules_that_cannot_work_are_refused_at_the_first_update(bad: tuple) -> None:
    recipe = sparsity.Recipe(density=0.3, drop=drop.magnitude, grow=bad[0], every=100)
    tx = sparsity.sparse(optax.sgd(0.1), recipe, jax.random.key(0))
    refuses(lambda: jax.eval_shape(tx.update, SMALL, tx.init(SMALL), SMALL), bad[1])


def test_a_rule_that_grows_everything_adds_no_connection() -> None:
    def everything(layer: sparsity.Layer, dropped: jax.Array, key: jax.Array) -> jax.Array:
        return jnp.ones(layer.weight.shape, bool)

    recipe = sparsity.Recipe(density=0.3, drop=drop.random, grow=everything, every=1)
    tx = sparsity.sparse(optax.sgd(0.1), recipe, jax.random.key(0))
    state = tx.init(SMALL)
    _, after = jax.jit(tx.update)(noisy_gradient(SMALL, 0), state, SMALL)
    before, mask = (np.asarray(s.masks["dense"]["kernel"]) for s in (state, after))
    assert mask.sum() == before.sum() == 22 and (mask != before).any()


def test_without_a_grow_rule_the_optimizer_prunes() -> None:
    recipe = sparsity.Recipe(density=0.5, drop=drop.magnitude, fraction=0.5, every=1)
    tx = sparsity.sparse(optax.adam(0.1), recipe, jax.random.key(0))
    params, state, counts = SMALL, tx.init(SMALL), []
    params = sparsity.mask_params(params, state)
    update = jax.jit(tx.update)
    for step in range(3):
        updates, state = update(noisy_gradient(params, step), state, params)
        params = optax.apply_updates(params, updates)
        mask = np.asarray(state.masks["dense"]["kernel"])
        counts.append(int(mask.sum()))
        for values in (params, state.inner[0].mu, state.inner[0].nu):
            assert not np.asarray(values["dense"]["kernel"])[~mask].any()
    assert counts == [18, 9, 5]
