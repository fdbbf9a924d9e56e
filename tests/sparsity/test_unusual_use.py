"""Optimisers, trees and masks of unusual form around and inside the wrapper."""

from __future__ import annotations

from typing import Any

import chex
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from bad_calls import refuses
from jax import export
from marks import slow_ids
from sparsity_trees import SMALL, noisy_gradient

from fsjax import sparsity
from fsjax.errors import ConfigError

KEY = jax.random.key(0)


def loss(params: Any) -> jax.Array:
    return jnp.sum((params["dense"]["kernel"] - 1.0) ** 2 + params["dense"]["kernel"] ** 4)


@pytest.mark.slow
def test_a_line_search_trains_connections_that_move() -> None:
    recipe = sparsity.evolutionary(0.3, every=2, fraction=0.5)
    tx = sparsity.sparse(optax.lbfgs(memory_size=2), recipe, KEY)
    state = tx.init(SMALL)
    params = sparsity.mask_params(SMALL, state)

    @jax.jit
    def step(params: Any, state: Any) -> Any:
        value, gradient = jax.value_and_grad(loss)(params)
        updates, state = tx.update(
            gradient, state, params, value=value, grad=gradient, value_fn=loss
        )
        return optax.apply_updates(params, updates), state

    first = sparsity.masks_of(state)
    for _ in range(3):
        params, state = step(params, state)
    sparsity.check(params, state, recipe)
    assert any(jax.tree.leaves(jax.tree.map(lambda a, b: (a != b).any(), first, state.masks)))
    search = jax.tree.leaves(state.inner, is_leaf=lambda node: hasattr(node, "grad"))[-1]
    assert (np.asarray(search.grad["dense"]["kernel"]) != 0).any()


@slow_ids("evolutionary")
@pytest.mark.parametrize("name", ["rigl", "evolutionary", "magnitude_ste"])
def test_calls_outside_of_jit_compile_nothing_again(name: str) -> None:
    tx = sparsity.sparse(optax.sgd(0.1), getattr(sparsity, name)(0.3, every=3), KEY)
    states, compiled = [tx.init(SMALL)], []

    def note(event: str, seconds: float, **_: Any) -> None:
        if event.endswith("backend_compile_duration"):
            compiled.append(seconds)

    jax.monitoring.register_event_duration_secs_listener(note)
    try:
        numbers = []
        for step in range(4):
            gradients = noisy_gradient(SMALL, step)
            numbers.append(len(compiled))
            states.append(tx.update(gradients, states[-1], SMALL)[1])
            numbers.append(len(compiled))
    finally:
        jax.monitoring.unregister_event_duration_listener(note)
    assert numbers[2] == numbers[3] and numbers[6] == numbers[7]
    last = jax.jit(tx.update)(noisy_gradient(SMALL, 2), states[2], SMALL)[1]
    chex.assert_trees_all_equal(last.masks, states[3].masks)
    assert (last.masks["dense"]["kernel"] != states[2].masks["dense"]["kernel"]).any()


def test_parameters_under_whole_numbers_are_named_by_strings() -> None:
    params = {0: jnp.ones((4, 6)), 1: jnp.ones((3, 4))}
    masks = sparsity.masks_of(
        sparsity.sparse(optax.sgd(0.1), sparsity.static({"0": 0.5}), KEY).init(params)
    )
    assert [int(count) for count in sparsity.count_active(masks)] == [12, 12]
    for options, recipe in (
        ({}, sparsity.static({0: 0.5})),  # type: ignore[dict-item]
        ({"where": (0,)}, sparsity.static(0.5)),
        ({"axes": {0: ("in", "out")}}, sparsity.static(0.5)),
    ):
        tx = sparsity.sparse(optax.sgd(0.1), recipe, KEY, **options)  # type: ignore[arg-type]
        refuses(lambda tx=tx: tx.init(params), "0 is not a string", "write '0'")


@slow_ids("shape1")
@pytest.mark.parametrize("shape", [(0, 5), (5, 0), (3, 0, 4)])
def test_kernels_without_entries_are_left_out(shape: tuple[int, ...]) -> None:
    params = {"w": jnp.zeros(shape), "v": jnp.ones((4, 6))}
    for recipe in (sparsity.rigl(0.5), sparsity.srigl(0.5), sparsity.static(epsilon=1)):
        state = sparsity.sparse(optax.sgd(0.1), recipe, KEY, ("w", "v")).init(params)
        assert state.masks["w"].shape == shape
        assert int(state.masks["v"].sum()) in (10, 12)
    sparsity.check(sparsity.mask_params(params, state), state)
    table = sparsity.summarize(params, state.masks)
    assert list(table["connections"]) == [24, 0, 24]
    alone = {"w": params["w"]}
    assert list(sparsity.summarize(alone)["density"]) == [1.0, 1.0]
    refuses(lambda: sparsity.sparse(optax.sgd(0.1), recipe, KEY).init(alone), "chooses no")


@pytest.mark.slow
def test_vectors_that_a_filter_chooses_are_masked() -> None:
    params = {"w": jnp.arange(1.0, 11.0), "s": jnp.ones(())}
    recipe = sparsity.rigl(0.5, every=1, distribution="uniform")
    tx = sparsity.sparse(optax.sgd(0.1), recipe, KEY, lambda path, leaf: True)
    state = tx.init(params)
    _, after = jax.jit(tx.update)(params, state, sparsity.mask_params(params, state))
    for masks in (state.masks, after.masks):
        assert [int(count) for count in sparsity.count_active(masks)] == [1, 5]


@pytest.mark.slow
def test_packed_masks_are_taken_wherever_masks_are() -> None:
    masks = {"w": jnp.arange(30).reshape(5, 6) % 4 == 0, "v": jnp.ones((3, 3), bool)}
    params = jax.tree.map(lambda mask: jnp.ones(mask.shape), masks)
    packed = sparsity.pack(masks)
    assert sparsity.pack(packed)["w"] is packed["w"]
    mixed = sparsity.pack({"w": packed["w"], "v": np.ones((3, 3), bool)})
    chex.assert_trees_all_equal(sparsity.unpack(mixed), masks)
    assert sparsity.count_active(packed) == sparsity.count_active(masks)
    assert sparsity.sparsity(packed) == sparsity.sparsity(masks)
    assert sparsity.overlap(packed, masks) == {"v": 1.0, "w": 1.0}
    expected = sparsity.apply_masks(params, masks)
    chex.assert_trees_all_equal(sparsity.apply_masks(params, packed), expected)
    assert sparsity.summarize(params, packed).equals(sparsity.summarize(params, masks))
    state = sparsity.sparse(optax.sgd(0.1), sparsity.static(0.5), KEY).init(params)
    chex.assert_trees_all_equal(sparsity.with_masks(state, packed).masks, masks)
    refuses(lambda: sparsity.pack(params), "is float32", "bool")


def test_dense_networks_and_parts_of_networks_have_a_table() -> None:
    params = {"w": jnp.ones((5, 6)), "v": jnp.ones((3, 4)), "b": jnp.ones(6)}
    table = sparsity.summarize(params)
    assert list(table.index) == ["v", "w", "all"] and (table["density"] == 1).all()
    assert set(table["structure"]) == {"dense", ""}
    assert sparsity.summarize({"b": jnp.ones(3)}).loc["all", "connections"] == 0
    labels = {"w": "sparse", "v": "frozen", "b": "frozen"}
    part = sparsity.sparse(optax.sgd(0.1), sparsity.static(0.5), KEY)
    tx = optax.partition({"sparse": part, "frozen": optax.set_to_zero()}, labels)
    table = sparsity.summarize(params, sparsity.masks_of(tx.init(params)))
    assert dict(table["active"]) == {"v": 12, "w": 15, "all": 27}


def test_a_step_with_packed_masks_is_exported() -> None:
    tx = sparsity.sparse(optax.sgd(0.1), sparsity.static(0.3), KEY, packed_masks=True)
    state = tx.init(SMALL)._replace(key=None)  # Exported programs take no typed keys.

    def step(gradient: Any, state: Any, params: Any) -> Any:
        updates, after = tx.update(gradient, state._replace(key=KEY), params)
        return updates, after._replace(key=None)

    arguments = (noisy_gradient(SMALL, 0), state._replace(inner=None), SMALL)

    def stateless(gradient: Any, state: Any, params: Any) -> Any:
        updates, after = step(gradient, state._replace(inner=tx.init(SMALL).inner), params)
        return updates, after._replace(inner=None)

    blob = export.export(jax.jit(stateless))(*arguments).serialize()
    updates, after = export.deserialize(bytearray(blob)).call(*arguments)
    assert isinstance(after, sparsity.SparseState)
    chex.assert_trees_all_equal(after.masks, state.masks)
    assert after.masks["dense"]["kernel"].shape == (12, 6)
    chex.assert_trees_all_close(updates, stateless(*arguments)[0], rtol=1e-6)


@pytest.mark.slow
def test_averaged_parameters_of_a_schedule_free_optimiser_are_sparse() -> None:
    inner = optax.contrib.schedule_free_sgd(0.1)
    tx = sparsity.sparse(inner, sparsity.rigl(0.3, every=2), KEY)
    state = tx.init(SMALL)
    params, update = sparsity.mask_params(SMALL, state), jax.jit(tx.update)
    for step in range(3):
        updates, state = update(noisy_gradient(params, step), state, params)
        params = optax.apply_updates(params, updates)
    averaged = optax.contrib.schedule_free_eval_params(state.inner, params)
    sparsity.check(averaged, state)
    assert not np.allclose(averaged["dense"]["kernel"], params["dense"]["kernel"])


@pytest.mark.parametrize(
    "inner",
    [optax.contrib.schedule_free_sgd(0.1), optax.contrib.prodigy()],
    ids=["free", "prodigy"],
)
def test_copies_of_the_parameters_have_the_masks_that_are_given(inner: Any) -> None:
    recipe = sparsity.static(0.3)
    drawn = sparsity.sparse(inner, recipe, KEY)
    masks = sparsity.snip_masks(SMALL, SMALL, recipe.counts)
    with pytest.raises(ConfigError, match="copy of dense/kernel under other .* masks=masks"):
        sparsity.with_masks(drawn.init(SMALL), masks)
    sparsity.with_masks(drawn.init(SMALL), sparsity.masks_of(drawn.init(SMALL)))
    tx = sparsity.sparse(inner, recipe, KEY, masks=sparsity.pack(masks))
    state = tx.init(SMALL)
    params = sparsity.mask_params(SMALL, state)
    sparsity.check(params, state, recipe)
    chex.assert_trees_all_equal(sparsity.masks_of(state), masks)
    chex.assert_trees_all_equal(state.inner, inner.init(params))


@pytest.mark.slow
def test_networks_of_one_key_have_equal_masks_and_of_a_key_each_different_ones() -> None:
    batch = jax.tree.map(lambda leaf: jnp.stack([leaf, leaf]), SMALL)
    recipe = sparsity.rigl(0.3)

    def start(key: jax.Array, params: Any) -> Any:
        return sparsity.sparse(optax.sgd(0.1), recipe, key).init(params)

    same_key = jax.vmap(start, in_axes=(None, 0))(KEY, batch).masks["dense"]["kernel"]
    states = jax.vmap(start)(jax.random.split(KEY, 2), batch)
    kernels = states.masks["dense"]["kernel"]
    assert (same_key[0] == same_key[1]).all() and (kernels[0] != kernels[1]).any()
    # The key in the state is that of its network, whoever calls update.
    assert (jax.random.key_data(states.key)[0] != jax.random.key_data(states.key)[1]).any()


def test_masks_that_are_given_outlive_the_state() -> None:
    masks = {"w": jnp.eye(4, dtype=bool)}
    tx = sparsity.sparse(optax.sgd(0.1), sparsity.static(0.5), jax.random.key(0), masks=masks)
    state = tx.init({"w": jnp.ones((4, 4))})
    for given in (state, sparsity.with_masks(state, masks)):
        jax.tree.leaves(sparsity.masks_of(given))[0].delete()
        assert not masks["w"].is_deleted()
