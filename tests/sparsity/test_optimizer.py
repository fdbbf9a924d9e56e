"""The Optax wrapper: invariants at every step, equivalences, and a network that learns.

Covers ``fsjax.sparsity.optimizer``, ``fsjax.sparsity.updates``.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import chex
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax.training.train_state import TrainState
from marks import slow_ids
from sparsity_reference import first_of_sort
from sparsity_trees import (
    IMPORTANCE,
    SIMILARITY,
    SMALL,
    START,
    STEPS,
    noisy_gradient,
    only_dense,
)

from fsjax import sparsity
from fsjax.errors import ConfigError
from fsjax.sparsity import SparseState, drop, grow
from fsjax.storage.checkpoints import Checkpoints
from fsjax.storage.identity import Identity


def train(
    tx: optax.GradientTransformationExtraArgs, params: Any, steps: int = STEPS, **extra: Any
) -> tuple[Any, Any]:
    """Parameters and states of every step, stacked."""

    def step(carry: tuple, number: jax.Array) -> tuple:
        params, state = carry
        updates, state = tx.update(noisy_gradient(params, number), state, params, **extra)
        params = optax.apply_updates(params, updates)
        return (params, state), (params, state)

    state = tx.init(params)
    try:
        params = sparsity.mask_params(params, state)
    except ConfigError:  # A plain optimiser.
        pass
    return jax.jit(lambda *c: jax.lax.scan(step, c, jnp.arange(1, steps + 1))[1])(params, state)


NEAR_ONE = jax.nn.initializers.constant(0.75)
RECIPES: dict[str, tuple[sparsity.Recipe, dict[str, Any]]] = {
    "static": (sparsity.static(0.2), {}),
    "rigl": (sparsity.rigl(0.2, every=4, end_step=17), {}),
    "evolutionary": (
        sparsity.evolutionary(epsilon=1, every=3, end_step=15, grow_init=NEAR_ONE),
        {},
    ),
    "ctre_sim": (
        sparsity.ctre_sim(epsilon=1, every=2),
        {"similarity": {"dense": {"kernel": SIMILARITY}}},
    ),
    "important": (
        sparsity.Recipe(
            density=0.4,
            drop=drop.magnitude_times_importance,
            grow=grow.important_inputs,
            grow_init=NEAR_ONE,
            every=1,
            replaces_step=True,
        ),
        {"importance": {"dense": {"kernel": IMPORTANCE}}},
    ),
}


@slow_ids("evolutionary")
@pytest.mark.parametrize("name", RECIPES)
def test_connections_at_every_step(name: str) -> None:
    recipe, extra = RECIPES[name]
    where = only_dense if extra else sparsity.is_kernel
    start = START
    tx = sparsity.sparse(optax.adam(0.05), recipe, jax.random.key(0), where)
    masks = [sparsity.masks_of(tx.init(start))]
    params, states = train(tx, start, **extra)
    adam = states.inner[0]
    kernels = [("dense", "kernel")] if extra else [("conv", "kernel"), ("dense", "kernel")]
    expected = recipe.counts([start[layer][leaf].shape for layer, leaf in kernels])
    for (layer, leaf), count in zip(kernels, expected, strict=True):
        mask, p = (np.asarray(tree[layer][leaf]) for tree in (states.masks, params))
        mask = np.concatenate([np.asarray(masks[0][layer][leaf])[None], mask])
        axes = tuple(range(1, mask.ndim))
        np.testing.assert_array_equal(mask.sum(axes), count)
        after = mask[1:]
        for moments in (adam.mu, adam.nu):
            assert (np.asarray(moments[layer][leaf])[~after] == 0).all()
        assert (p[~after] == 0).all()
        changed = np.flatnonzero((mask[1:] != mask[:-1]).any(axes)) + 1
        new = after & ~mask[:-1]
        for moments in (adam.mu, adam.nu):
            assert (np.asarray(moments[layer][leaf])[new] == 0).all()
        if recipe.drop is None:
            assert changed.size == 0
            continue
        assert new.any()
        end = recipe.end_step or STEPS + 1
        assert set(changed) <= set(range(recipe.every, end, recipe.every))
        if recipe.grow_init is NEAR_ONE:
            assert (p[new] == 0.75).all()  # Exactly.
        elif name == "rigl":
            assert (p[new] == 0).all()
        else:
            assert (np.abs(p[new]) <= np.sqrt(6 / 12)).all()
            assert len(set(p[new])) == new.sum() > new.any(0).sum()  # New ones at every change.
    changes = len(range(recipe.every, recipe.end_step or STEPS + 1, recipe.every))
    assert int(adam.count[-1]) == STEPS - (changes if recipe.replaces_step else 0)
    biases = states.masks["conv"]["bias"], states.masks["dense"]["bias"]
    assert all(np.asarray(mask).all() for mask in biases)


OPTIMIZERS: dict[str, Callable[[], optax.GradientTransformation]] = {
    "momentum": lambda: optax.sgd(0.05, momentum=0.9, nesterov=True),
    "decayed": lambda: optax.adamw(
        0.05, weight_decay=0.1, mask={"dense": {"bias": 0, "kernel": 1}}
    ),
    "chained": lambda: optax.chain(optax.clip_by_global_norm(1.0), optax.rmsprop(0.05)),
    "injected": lambda: optax.inject_hyperparams(optax.adam)(learning_rate=0.05),
    "partitioned": lambda: optax.partition(
        {"a": optax.adam(0.05), "b": optax.sgd(0.1, 0.9)}, {"dense": {"bias": "b", "kernel": "a"}}
    ),
    "accumulated": lambda: optax.MultiSteps(optax.adam(0.05), 2),
    "of several arrays each": lambda: optax.sm3(0.05),
    "factored": lambda: optax.adafactor(0.05, min_dim_size_to_factor=2),
    "not from 0": lambda: optax.adagrad(0.05, initial_accumulator_value=0.1),
    "in one vector": lambda: optax.flatten(optax.adam(0.05)),
    "in half precision": lambda: optax.adam(0.05, mu_dtype=jnp.bfloat16),
}


@slow_ids("chained", "decayed", "not from 0")
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_any_optimizer_keeps_the_rest_at_its_initial_value(name: str) -> None:
    start, inner = SMALL, OPTIMIZERS[name]()
    recipe = sparsity.rigl(0.25, every=4)
    tx = sparsity.sparse(inner, recipe, jax.random.key(0))
    params, states = train(tx, start, steps=14)
    mask = np.asarray(states.masks["dense"]["kernel"])
    kernel = np.asarray(params["dense"]["kernel"])
    assert (mask.sum((1, 2)) == 18).all() and (kernel[~mask] == 0).all()
    assert (mask[0] != mask[-1]).any() and (kernel[2] != kernel[0])[mask[2]].any()
    zeros = jax.tree.leaves(inner.init(jax.tree.map(jnp.zeros_like, start)))
    moments = 0
    for value, fresh in zip(jax.tree.leaves(states.inner), zeros, strict=True):
        if name == "in one vector" and fresh.size > 1:  # The bias, and then the kernel.
            value, fresh = value[:, 6:].reshape(mask.shape), fresh[6:].reshape(mask.shape[1:])
        if fresh.shape == mask.shape[1:]:
            moments += 1
            outside = np.broadcast_to(np.asarray(fresh), mask.shape)[~mask]
            np.testing.assert_array_equal(np.asarray(value)[~mask], outside)
            assert (np.asarray(value)[mask] != np.broadcast_to(fresh, mask.shape)[mask]).any()
    assert moments or name == "factored"


def test_a_rigl_change_is_that_of_numpy() -> None:
    start = SMALL
    recipe = sparsity.rigl(0.25, every=3, end_step=9, fraction=0.4)
    params, states = train(sparsity.sparse(optax.adam(0.05), recipe, jax.random.key(0)), start, 4)
    before, after = (np.asarray(params["dense"]["kernel"][i]) for i in (1, 2))
    old, mask = (np.asarray(states.masks["dense"]["kernel"][i]) for i in (1, 2))
    step_2 = jax.tree.map(lambda leaf: leaf[1], params)
    gradient = np.asarray(noisy_gradient(step_2, jnp.int32(3))["dense"]["kernel"])
    # 0.4 / 2 (1 + cos(pi 3 / 9)) of 18 connections is 5.4.
    dropped = first_of_sort(np.abs(before), 5, old)
    kept = old & ~dropped
    grown = first_of_sort(np.abs(gradient), 5, ~kept, descending=True)
    np.testing.assert_array_equal(mask, kept | grown)
    # The change replaces the gradient step.
    np.testing.assert_array_equal(after, np.where(old & mask, before, 0))
    chex.assert_trees_all_equal(params["dense"]["bias"][1], params["dense"]["bias"][2])
    assert states.inner[0].count.tolist() == [1, 2, 2, 3]


@slow_ids("evolve")
@slow_ids("static")
@pytest.mark.parametrize(
    "recipe", [sparsity.static(1.0), sparsity.evolutionary(1.0, every=2)], ids=["static", "evolve"]
)
def test_a_dense_network_trains_as_without_the_wrapper(recipe: sparsity.Recipe) -> None:
    # If all connections are active, dropped ones are grown again, with their weights and moments.
    plain, wrapped = optax.adam(0.05), sparsity.sparse(optax.adam(0.05), recipe, jax.random.key(0))
    # Not jitted, because other fusions of XLA round differently; the arithmetic is the same.
    expected, params = SMALL, SMALL
    state_plain, state = plain.init(SMALL), wrapped.init(SMALL)
    for step in range(6):
        updates, state_plain = plain.update(noisy_gradient(expected, step), state_plain, expected)
        expected = optax.apply_updates(expected, updates)
        updates, state = wrapped.update(noisy_gradient(params, step), state, params)
        params = optax.apply_updates(params, updates)
        chex.assert_trees_all_equal(params, expected)
        chex.assert_trees_all_equal(state.inner, state_plain)


def test_what_is_dropped_and_grown_again_keeps_weight_and_moments() -> None:
    def same(layer: sparsity.Layer, dropped: jax.Array, key: jax.Array) -> jax.Array:
        del layer, key
        return dropped

    recipe = sparsity.Recipe(density=0.3, drop=drop.random, grow=same, fraction=1.0, every=1)
    params, states = train(sparsity.sparse(optax.adam(0.1), recipe, jax.random.key(0)), SMALL, 6)
    static = dataclasses.replace(recipe, drop=None, grow=None)
    expected, still = train(sparsity.sparse(optax.adam(0.1), static, jax.random.key(0)), SMALL, 6)
    chex.assert_trees_all_equal(params, expected)
    chex.assert_trees_all_equal(states.inner, still.inner)


def test_static_equals_training_with_masks_in_the_forward_pass() -> None:
    x = jax.random.normal(jax.random.key(1), (9, 12))
    start = SMALL
    tx = sparsity.sparse(optax.adamw(0.05), sparsity.static(0.3), jax.random.key(0))
    state = tx.init(start)
    masks = sparsity.masks_of(state)

    def loss(params: Any) -> jax.Array:
        z = jnp.tanh(x @ params["dense"]["kernel"] + params["dense"]["bias"])
        return jnp.sum(jnp.square(z - 0.3))

    def run(tx: Any, loss: Callable, params: Any) -> Any:
        def step(carry: tuple, _: None) -> tuple:
            params, state = carry
            updates, state = tx.update(jax.grad(loss)(params), state, params)
            return (optax.apply_updates(params, updates), state), None

        return jax.jit(
            lambda params: jax.lax.scan(step, (params, tx.init(params)), length=20)[0][0]
        )(params)

    masked = sparsity.mask_params(start, state)
    trained = run(tx, loss, masked)
    expected = run(optax.adamw(0.05), lambda p: loss(sparsity.apply_masks(p, masks)), masked)
    chex.assert_trees_all_close(trained, expected, rtol=1e-5, atol=1e-6)
    assert not np.allclose(trained["dense"]["kernel"], masked["dense"]["kernel"])


def test_unmasked_parameters_are_masked_by_the_first_update() -> None:
    tx = sparsity.sparse(optax.adam(0.05), sparsity.static(0.3), jax.random.key(0))
    params, state = SMALL, tx.init(SMALL)
    updates, state = tx.update(params, state, params)
    kernel = optax.apply_updates(params, updates)["dense"]["kernel"]
    assert (np.asarray(kernel)[~np.asarray(state.masks["dense"]["kernel"])] == 0).all()


@slow_ids("all batched")
@pytest.mark.parametrize("step_axis", [0, None], ids=["all batched", "one step"])
def test_vmapped_seeds_equal_solo_runs_and_differ(step_axis: int | None) -> None:
    start, recipe = SMALL, sparsity.rigl(0.25, every=3)
    axes = SparseState(step_axis, 0, 0, 0)

    def make(key: jax.Array) -> optax.GradientTransformationExtraArgs:
        return sparsity.sparse(optax.sgd(0.05, 0.9), recipe, key)

    def step(params: Any, state: SparseState, number: jax.Array) -> tuple[Any, SparseState]:
        gradient = noisy_gradient(params, number)
        updates, state = make(jax.random.key(99)).update(gradient, state, params)
        return optax.apply_updates(params, updates), state

    def run(keys: jax.Array) -> tuple[Any, SparseState]:
        states = jax.vmap(lambda key: make(key).init(start), out_axes=axes)(keys)
        params = jax.tree.map(lambda p: jnp.broadcast_to(p, (len(keys), *p.shape)), start)
        batched = jax.vmap(step, in_axes=(0, axes, None), out_axes=(0, axes))
        return jax.lax.fori_loop(1, 9, lambda i, c: batched(*c, i), (params, states))

    keys = jax.random.split(jax.random.key(5), 3)
    params, states = jax.jit(run)(keys)
    masks = np.asarray(states.masks["dense"]["kernel"])
    assert (masks.sum((1, 2)) == 18).all()
    assert len({mask.tobytes() for mask in masks}) == 3
    for i in range(2):
        solo, state = jax.jit(run)(keys[i : i + 1])
        np.testing.assert_array_equal(state.masks["dense"]["kernel"][0], masks[i])
        chex.assert_trees_all_close(
            solo["dense"]["kernel"][0], params["dense"]["kernel"][i], rtol=1e-5, atol=1e-6
        )


def test_the_step_of_a_change_trains_the_connections_that_stay() -> None:
    runs = []
    for recipe in (sparsity.evolutionary(0.3, every=3), sparsity.static(0.3)):
        tx = sparsity.sparse(optax.adam(0.05), recipe, jax.random.key(0))
        params, states = train(tx, SMALL, 3)
        adam = states.inner[0]
        trees = (params, adam.mu, adam.nu, states.masks)
        runs.append([np.asarray(tree["dense"]["kernel"]) for tree in trees])
    *changed, masks = runs[0]
    *expected, before = runs[1]
    kept = masks[2] & before[2]
    assert (masks[1] == before[1]).all() and 0 < kept.sum() < before[2].sum() == masks[2].sum()
    for ours, theirs in zip(changed, expected, strict=True):
        np.testing.assert_allclose(ours[2][kept], theirs[2][kept], rtol=1e-5, atol=1e-7)
        assert (ours[2][~kept] == 0).all()


@pytest.mark.slow
@pytest.mark.parametrize("replaces_step", [False, True])
def test_derivatives_through_a_change_of_connections(replaces_step: bool) -> None:
    recipe = sparsity.Recipe(
        density=0.3, drop=drop.magnitude, grow=grow.gradient, every=2, replaces_step=replaces_step
    )

    def loss(rate: jax.Array) -> jax.Array:
        tx = sparsity.sparse(optax.sgd(rate, momentum=0.9), recipe, jax.random.key(0))
        state = tx.init(SMALL)
        params = sparsity.mask_params(SMALL, state)
        for step in range(3):
            updates, state = tx.update(noisy_gradient(params, step), state, params)
            params = optax.apply_updates(params, updates)
        return sum(jnp.sum(jnp.square(leaf)) for leaf in jax.tree.leaves(params))

    slope = jax.jit(jax.grad(loss))(0.05)
    value = jax.jit(loss)
    expected = (value(0.051) - value(0.049)) / 0.002
    assert float(slope) == pytest.approx(float(expected), rel=0.02) and abs(slope) > 1


def test_one_compilation_for_all_steps_and_fractions_and_donation() -> None:
    key = jax.random.key(6)

    def update(fraction: jax.Array, params: Any, state: SparseState) -> tuple[Any, SparseState]:
        recipe = sparsity.Recipe(
            density=0.3, drop=drop.magnitude, grow=grow.gradient, fraction=fraction, every=2
        )
        tx = sparsity.sparse(optax.adam(0.05), recipe, jax.random.key(1))
        updates, state = tx.update(noisy_gradient(params, state.step), state, params)
        return optax.apply_updates(params, updates), state

    tx = sparsity.sparse(optax.adam(0.05), sparsity.static(0.3), key)
    jitted = jax.jit(update, donate_argnums=(1, 2))
    changes = []
    for fraction in (0.0, 0.3, 1.0):
        params, state = (
            jax.tree.map(jnp.copy, SMALL),
            tx.init(SMALL),
        )  # The key is not donated with the state.
        first = np.asarray(state.masks["dense"]["kernel"])
        for _ in range(2):
            params, state = jitted(jnp.float32(fraction), params, state)
        changes.append(int((np.asarray(state.masks["dense"]["kernel"]) & ~first).sum()))
    assert jitted._cache_size() == 1
    assert changes[0] == 0 < changes[1] < changes[2]


@slow_ids("float32")
@pytest.mark.parametrize("precision", [jnp.bfloat16, jnp.float32])
def test_half_precision_parameters(precision: Any) -> None:
    params = jax.tree.map(lambda p: p.astype(jnp.bfloat16), SMALL)
    tx = sparsity.sparse(optax.adam(0.05), sparsity.rigl(0.3, every=2), jax.random.key(0))
    state = tx.init(params)
    update = jax.jit(tx.update)
    for step in range(3):
        gradient = jax.tree.map(lambda g: g.astype(precision), noisy_gradient(params, step))
        updates, state = update(gradient, state, params)
        params = optax.apply_updates(params, updates)
        kernel, mask = (tree["dense"]["kernel"] for tree in (params, state.masks))
        assert kernel.dtype == jnp.bfloat16 and int(mask.sum()) == 22
        assert (np.asarray(kernel, np.float32)[~np.asarray(mask)] == 0).all()


def test_a_checkpoint_goes_on_as_if_there_was_none(tmp_path: Any) -> None:
    tx = sparsity.sparse(optax.adam(0.05), sparsity.rigl(0.3, every=2), jax.random.key(0))
    state = tx.init(SMALL)
    Checkpoints(tmp_path, Identity()).save(1, state, {})
    template = sparsity.sparse(optax.adam(0.05), sparsity.rigl(0.3), jax.random.key(1)).init(SMALL)
    _, restored, _ = Checkpoints(tmp_path, Identity()).restore(template, [])
    chex.assert_trees_all_equal(restored, state)


def test_masks_are_found_anywhere_in_a_state() -> None:
    tx = sparsity.sparse(optax.adam(0.05), sparsity.static(0.3), jax.random.key(0))
    masks = sparsity.masks_of(tx.init(SMALL))
    chain = optax.chain(optax.clip(1.0), tx)
    chex.assert_trees_all_equal(sparsity.masks_of(chain.init(SMALL)), masks)
    state = TrainState.create(apply_fn=lambda: None, params=SMALL, tx=chain)
    chex.assert_trees_all_equal(sparsity.masks_of(state), masks)
    assert float(sparsity.sparsity(masks)) == pytest.approx(0.7, abs=0.01)
    # Utilities of Optax work through the wrapper.
    specs = optax.tree.map_params(tx, lambda _: "spec", state.opt_state[1])
    assert jax.tree.leaves(specs.inner[0].mu) == ["spec", "spec"]
