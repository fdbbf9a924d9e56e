"""The two forms of a layer are equivalent: the same values, gradients and changes.

Covers ``fsjax.methods.shared.layers.base``, ``fsjax.methods.shared.layers.masked``.
"""

from __future__ import annotations

from dataclasses import replace

import chex
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from marks import slow_ids

from fsjax.method import Spec, create_state
from fsjax.methods.shared.layers import (
    ConnectedLayer,
    LayerChange,
    MaskedLayer,
    MatrixScores,
    PairScores,
    RuleInputs,
    SparseLayer,
)
from fsjax.methods.shared.layers.connections import GROW_INITS
from fsjax.methods.shared.layers.forms import plan_layers
from fsjax.methods.shared.layers.network import activations, expand_layers, layers_in, with_changes
from fsjax.sparsity import Recipe, drop, grow, random_mask
from fsjax.sparsity.connections import connected, indexed
from fsjax.sparsity.similarity import SIMILARITIES

SHAPE, COUNT = (11, 7), 15

#: Examples differ only in their numbers, so there is nothing to shrink.
PHASES = [Phase.explicit, Phase.generate]

RULES = {
    "magnitude": (drop.magnitude, grow.similar),
    "per_sign": (drop.per_sign, grow.similar),
}


def forms_of(mask: jax.Array, weight: jax.Array, bias: jax.Array) -> list[SparseLayer]:
    """The same layer in every form; the connections have an index."""
    masked = MaskedLayer(jnp.where(mask, weight, 0), bias, mask)
    positions = jnp.flatnonzero(mask, size=COUNT)
    where = connected(*jnp.divmod(positions, mask.shape[1]), mask.shape)
    return [masked, ConnectedLayer(masked.kernel.ravel()[positions], bias, indexed(where))]


@jax.jit
def evaluate(mask: jax.Array, weight: jax.Array, bias: jax.Array, x: jax.Array) -> list:
    """Values, gradients, squares and strengths of every form, as matrices."""
    results = []
    for layer in forms_of(mask, weight, bias):

        def loss(kernel: jax.Array, x: jax.Array, layer: SparseLayer = layer) -> jax.Array:
            return jnp.sum(jnp.sin(replace(layer, kernel=kernel).active().apply(x)))

        to_kernel, to_x = jax.grad(loss, argnums=(0, 1))(layer.kernel, x)
        matrix = replace(layer, kernel=to_kernel).to_matrix()
        active = layer.active()
        others = (active.l2(), layer.input_strength(), layer.to_matrix().kernel)
        results.append((active.apply(x), to_x, matrix.kernel, *others))
    return results


@settings(max_examples=15, deadline=None, phases=PHASES)
@given(seed=st.integers(0, 2**32 - 1))
def test_forms_have_the_same_values_and_gradients(seed: int) -> None:
    rng = np.random.default_rng(seed)
    mask = random_mask(jax.random.key(seed), SHAPE, COUNT)
    weight, bias, x = (rng.normal(size=size).astype("f") for size in (SHAPE, 7, (11, 9)))
    masked, *others = evaluate(mask, weight, bias, x)
    for other in others:
        chex.assert_trees_all_close(other, masked, rtol=1e-4, atol=1e-5)


@slow_ids("per_sign")
@pytest.mark.parametrize("name", RULES)
def test_forms_change_alike(name: str) -> None:
    drop_rule, grow_rule = RULES[name]
    recipe = Recipe(epsilon=1.0, drop=drop_rule, grow=grow_rule, fraction=0.4)

    @jax.jit
    def changes(mask, weight, bias, before, after, momentum, key):
        pairs = PairScores(before, after, SIMILARITIES["cosine"])
        results = []
        for layer, scores in zip(
            forms_of(mask, weight, bias),
            (MatrixScores(pairs.matrix()), pairs),
            strict=True,
        ):
            key_copy = jax.random.clone(key)
            change = layer.rewire(recipe, RuleInputs(2, {"similarity": scores}), key_copy)
            held = jnp.where(mask, momentum, 0)
            if layer.kernel.ndim == 1:
                held = held[jnp.nonzero(mask, size=COUNT)]
            moved = jnp.where(change.kept, change.move(held), 0)
            new = change.layer
            matrix = replace(new, kernel=moved).to_matrix().kernel
            results.append((new.to_matrix().where, new.to_matrix().kernel, matrix))
        return results

    @settings(max_examples=15, deadline=None, phases=PHASES)
    @given(seed=st.integers(0, 2**32 - 1))
    def holds(seed: int) -> None:
        rng = np.random.default_rng(seed)
        mask = random_mask(jax.random.key(seed), SHAPE, COUNT)
        sizes = (SHAPE, 7, (20, 11), (20, 7), SHAPE)
        arrays = [rng.normal(size=size).astype("f") for size in sizes]
        masked, *others = changes(mask, *arrays, jax.random.key(seed))
        assert masked[0].sum() == COUNT
        for where, kernel, moved in others:
            chex.assert_trees_all_equal((where, moved), (masked[0], masked[2]))
            chex.assert_trees_all_close(kernel, masked[1], rtol=1e-6)

    holds()


@pytest.mark.slow
def test_new_connections_of_a_list_start_within_the_bound() -> None:
    init = GROW_INITS["uniform"]
    recipe = Recipe(epsilon=1.0, drop=drop.magnitude, grow=grow.random, grow_init=init)
    mask = random_mask(jax.random.key(0), SHAPE, COUNT)
    layer = forms_of(mask, 100 + jnp.ones(SHAPE), jnp.zeros(SHAPE[1]))[1]

    @jax.jit
    def rewired(key: jax.Array) -> tuple[jax.Array, jax.Array]:
        change = layer.rewire(recipe, RuleInputs(0, {}), key)
        return change.layer.kernel, change.kept

    kernel, kept = map(np.asarray, rewired(jax.random.key(1)))
    new = kernel[~kept]
    assert len(new) > 1 and len(set(new)) == len(new) and np.abs(new).max() <= (6 / 11) ** 0.5


@pytest.mark.slow
@slow_ids("0")
@pytest.mark.parametrize("seed", [0, 1])
def test_networks_of_mixed_forms(seed: int) -> None:
    """Eleven layers, because layer_10 precedes layer_2 in alphabetical order."""
    rng = np.random.default_rng(seed)
    widths = (11, *([7, 11] * 5), 7)
    spec = Spec(11, 7, "classification", 9, 9, 1, 1)
    params, masks, layers = {}, {}, {}
    for number, shape in enumerate(zip(widths[:-1], widths[1:], strict=True)):
        name = f"layer_{number}"
        mask = random_mask(jax.random.key(number), shape, COUNT)
        weight, bias = (
            jnp.asarray(rng.normal(size=size), jnp.float32) for size in (shape, shape[1])
        )
        layers[name] = forms_of(mask, weight, bias)
        params[name] = {"kernel": layers[name][0].kernel, "bias": bias}
        masks[name] = {"kernel": mask, "bias": jnp.ones(shape[1], bool)}
    mixed = {name: forms[number % 2] for number, (name, forms) in enumerate(layers.items())}
    state = create_state(spec, params, masks=masks, extra={"of a method": jnp.ones(3)})
    optimizer = optax.adam(0.1)
    x = jnp.asarray(rng.normal(size=(9, 11)), jnp.float32)
    expected = activations(layers_in(state), x, jnp.tanh)
    chex.assert_trees_all_close(activations(mixed, x, jnp.tanh), expected, atol=1e-5)

    held = with_changes(
        state, {name: LayerChange(layer) for name, layer in mixed.items()}, optimizer
    )
    held = held.replace(opt_state=optimizer.init(held.params))
    back = expand_layers(held, optimizer, 11 * 11)
    chex.assert_trees_all_equal((back.params, back.masks, back.extra), (params, masks, state.extra))
    chex.assert_trees_all_equal_shapes(back.opt_state, optimizer.init(params))


def test_forms_by_density_and_size() -> None:
    still = Recipe(density=0.01, distribution="uniform")
    hidden = (1000, 1000, 1000, 5)

    def forms(form: str, recipe: Recipe = still, prune: bool = False) -> list[str]:
        return [plan.form for plan in plan_layers(form, recipe, prune, hidden).values()]

    assert forms("dense") == ["dense"] * 3
    assert forms("auto", prune=True) == ["dense"] * 3
    assert forms("topology") == ["topology"] * 3
    assert forms("auto", replace(still, density=0.5)) == ["dense"] * 3
    if jax.default_backend() == "cpu":
        assert forms("auto") == ["topology"] * 3
        assert forms("auto", replace(still, density=0.05)) == ["topology"] * 3
        assert forms("auto", replace(still, density=0.06)) == ["dense"] * 3
        hidden = (250, 250)
        assert forms("auto") == ["dense"]
