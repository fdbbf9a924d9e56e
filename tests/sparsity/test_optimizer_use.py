"""The Optax wrapper with masks of SNIP and of users, and the errors that it raises.

Covers ``fsjax.sparsity.named_recipes``, ``fsjax.sparsity.recipes``.
"""

from __future__ import annotations

import functools
from typing import Any

import chex
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
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
    with pytest.raises(ConfigError, match="structure"):
        sparsity.with_masks(state, {"dense": jnp.ones((12, 6), bool)})
    with pytest.raises(ConfigError, match=r"dense/kernel has shape \(6, 12\).*\(12, 6\)"):
        masks = {"dense": {"bias": jnp.ones(6, bool), "kernel": jnp.ones((6, 12), bool)}}
        sparsity.with_masks(state, masks)
    with pytest.raises(ConfigError, match="0 sparse optimisers.*wrap"):
        sparsity.masks_of(optax.adam(0.1).init(SMALL))
    with pytest.raises(ConfigError, match="2 sparse optimisers"):
        sparsity.masks_of((state, state))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"density": 1.5}, "density=1.5.*above 0 to 1"),
        ({"density": 0.0}, "density=0.0.*above 0"),
        ({"epsilon": -1}, "epsilon=-1.*above 0"),
        ({}, "one of the two"),
        ({"density": 0.1, "epsilon": 1}, "one of the two"),
        ({"density": 0.1, "distribution": "erkk"}, "did you mean 'erk'"),
        ({"density": 0.1, "fraction": 1.2}, "fraction=1.2.*0 to 1"),
        ({"density": 0.1, "every": 0}, "every=0.*at least 1"),
        ({"density": 0.1, "end_step": 2.5}, "end_step=2.5.*whole"),
        ({"density": 0.1, "grow": grow.random}, "a grow rule replaces .* give drop= too"),
        ({"density": 0.1, "drop": "random"}, "drop='random' is not a rule; pass a function"),
    ],
)
def test_bad_recipes_are_refused(values: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        sparsity.Recipe(**values)


def test_recipes_have_the_settings_that_were_asked_for() -> None:
    rigl = sparsity.rigl(0.2, fraction=0.4, end_step=12, every=3)
    assert (rigl.density, rigl.end_step, rigl.every, rigl.replaces_step) == (0.2, 12, 3, True)
    fractions = [float(rigl.fraction_at(step)) for step in (0, 6, 12)]
    np.testing.assert_allclose(fractions, [0.4, 0.2, 0.0], atol=1e-6)
    assert sparsity.rigl(0.2).fraction_at(99) == 0.3
    ctre = sparsity.ctre_sim(epsilon=1, fraction=0.1, distribution="er")
    assert (ctre.epsilon, ctre.fraction, ctre.distribution) == (1, 0.1, "er")
    cht = sparsity.cht(0.2, grow=grow.sampled_short_paths, end_step=500)
    assert (cht.drop, cht.grow, cht.end_step) == (drop.magnitude, grow.sampled_short_paths, 500)


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
    def tx(recipe: sparsity.Recipe, **more: Any) -> optax.GradientTransformationExtraArgs:
        return sparsity.sparse(optax.sgd(0.1), recipe, jax.random.key(0), **more)

    params = START
    static = tx(sparsity.static(0.3))
    with pytest.raises(ConfigError, match="chooses no parameter; there are bias"):
        static.init({"bias": jnp.ones(3)})
    with pytest.raises(ConfigError, match=r"tx.update\(grads, opt_state, params\)"):
        static.update(params, static.init(params))
    ctre = tx(sparsity.ctre_sim(0.3))
    state = ctre.init(params)
    with pytest.raises(ConfigError, match="similar_or_random needs similarity of conv/kernel"):
        ctre.update(params, state, params)
    with pytest.raises(ConfigError, match=r"similarity of conv/kernel has shape \(2, 2\)"):
        similarity = {"conv": {"kernel": jnp.ones((2, 2))}}
        ctre.update(params, state, params, similarity=similarity)
    inputs = sparsity.Recipe(density=0.3, drop=drop.random, grow=grow.important_inputs)
    with pytest.raises(ConfigError, match="important_inputs is for matrices, and conv/kernel"):
        importance = {"conv": {"kernel": jnp.ones((3, 3, 1, 1))}}
        tx(inputs).update(params, state, params, importance=importance)
    with pytest.raises(ConfigError, match="importance of dense/kernel.*broadcast"):
        importance = {"dense": {"kernel": jnp.ones(12)}}
        matrices = tx(inputs, where=only_dense)
        matrices.update(params, matrices.init(params), params, importance=importance)


def test_rules_declare_what_they_need() -> None:
    weight = jnp.ones((2, 2))
    optional = ("gradient", "similarity", "importance", "search", "hessian_gradient", "momentum")
    full = sparsity.Layer(
        weight, weight > 0, 0, weight, weight, weight, jnp.array(False), None, weight, weight
    )
    rules = [(rule, choose_dropped, 0.5) for rule in rules_of(drop, "fraction").values()]
    rules += [(rule, choose_grown, weight > 0) for rule in rules_of(grow, "dropped").values()]
    rules.append((grow.switched(grow.similar, grow.gradient), choose_grown, weight > 0))
    assert len(rules) == 18
    for rule, choose, second in rules:
        missed = set()
        for field in optional:
            layer, choice = full._replace(**{field: None}), functools.partial(choose, rule)
            try:
                jax.eval_shape(choice, layer, second, jax.random.key(0))
            except (TypeError, AttributeError, ConfigError):
                missed.add(field)
        assert rule.needs == missed, rule


def test_growth_by_momentum_sees_the_mean_of_all_gradients() -> None:
    recipe = sparsity.Recipe(
        density=0.3, drop=drop.magnitude, grow=grow.momentum, every=3, momentum_decay=0.5
    )
    tx = sparsity.sparse(optax.sgd(0.1), recipe, jax.random.key(0))
    state = tx.init(SMALL)
    params, update = sparsity.mask_params(SMALL, state), jax.jit(tx.update)
    mean = jax.tree.map(np.zeros_like, SMALL)
    for step in range(3):
        before = sparsity.masks_of(state)
        gradients = noisy_gradient(params, step)
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


def test_a_custom_rule_declares_what_it_needs() -> None:
    @sparsity.needs("importance")
    def by_importance(layer: sparsity.Layer, dropped: jax.Array, key: jax.Array) -> jax.Array:
        return grow.random(layer, dropped, key)

    recipe = sparsity.Recipe(density=0.3, drop=drop.magnitude, grow=by_importance)
    tx = sparsity.sparse(optax.sgd(0.1), recipe, jax.random.key(0))
    with pytest.raises(ConfigError, match="by_importance needs importance of dense/kernel"):
        tx.update(SMALL, tx.init(SMALL), SMALL)


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (
            grow.switched(grow.random, grow.gradient),
            r"switched\(random, gradient\) needs search.*search=\.\.\.",
        ),
        (sparsity.needs("state")(lambda layer, dropped, key: dropped), "only methods have a train"),
        (lambda layer, dropped, key: layer.weight[0], r"grow rule <lambda> returns the shape"),
    ],
)
def test_rules_that_cannot_work_are_refused_at_the_first_update(rule: Any, message: str) -> None:
    recipe = sparsity.Recipe(density=0.3, drop=drop.magnitude, grow=rule, every=100)
    tx = sparsity.sparse(optax.sgd(0.1), recipe, jax.random.key(0))
    with pytest.raises(ConfigError, match=message):
        jax.eval_shape(tx.update, SMALL, tx.init(SMALL), SMALL)


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
