"""Kernels of attention, of stacked layers and of other frameworks, cut into layers."""

from __future__ import annotations

from typing import Any

import chex
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import linen as nn
from hypothesis import given, settings
from hypothesis import strategies as st
from marks import slow_ids

from fsjax import sparsity
from fsjax.errors import ConfigError
from fsjax.sparsity.axis_roles import ROLES
from fsjax.sparsity.kernel_axes import KernelAxes, from_layers, kernel_axes, to_layers

ATTENTION = {
    "query": {"kernel": jnp.ones((32, 4, 8)), "bias": jnp.zeros((4, 8))},
    "out": {"kernel": jnp.ones((4, 8, 32)), "bias": jnp.zeros(32)},
}
#: Three stacked layers as a scan of Flax has them, an embedding and positions.
STACKED = {
    "norm": {"scale": jnp.ones((3, 32)), "bias": jnp.zeros((3, 32))},
    "dense": {"kernel": jnp.ones((3, 32, 64)), "bias": jnp.zeros((3, 64))},
    "embed": {"embedding": jnp.ones((20, 32))},
    "pos": jnp.ones((1, 6, 32)),
}


def masks_of(recipe: sparsity.Recipe, params: Any, **options: Any) -> Any:
    tx = sparsity.sparse(optax.sgd(0.1), recipe, jax.random.key(0), **options)
    state = jax.jit(tx.init)(params)
    return jax.tree.map(np.asarray, sparsity.masks_of(state))


@given(st.permutations(["stack", "spatial", "in", "in", "out"]), st.integers(1, 3))
@settings(max_examples=6, deadline=None)
def test_layers_put_together_give_the_kernel(roles: list[str], size: int) -> None:
    shape = tuple(size + axis for axis in range(5))
    kernel = np.arange(np.prod(shape)).reshape(shape)
    axes = KernelAxes(tuple(roles))
    layers = axes.layers(kernel)
    assert len(layers) == len(axes.names("w", shape)) == shape[roles.index("stack")]
    assert all(layer.shape == axes.layer_shape(shape) for layer in layers)
    np.testing.assert_array_equal(axes.kernel(layers, shape), kernel)


def test_trees_put_together_are_as_before() -> None:
    kernels = kernel_axes(STACKED | ATTENTION)
    layers = to_layers(STACKED | ATTENTION, kernels)
    assert list(layers) == ["dense/kernel[0]", "dense/kernel[1]", "dense/kernel[2]"] + [
        "out/kernel",
        "query/kernel",
    ]
    chex.assert_trees_all_equal(
        from_layers(layers, kernels, STACKED | ATTENTION), STACKED | ATTENTION
    )


@pytest.mark.slow
def test_n_of_m_of_attention_is_along_true_inputs() -> None:
    tx = sparsity.sparse(
        optax.sgd(0.1), sparsity.rigl(structure=sparsity.n_of_m(2, 4), every=1), jax.random.key(0)
    )
    state = jax.jit(tx.init)(ATTENTION)
    params = sparsity.mask_params(ATTENTION, state)
    for step in range(4):
        masks = jax.tree.map(np.asarray, sparsity.masks_of(state))
        query, out = masks["query"]["kernel"], masks["out"]["kernel"]
        assert (query.reshape(8, 4, 4, 8).sum(1) == 2).all()
        assert (out.reshape(32, 32).reshape(8, 4, 32).sum(1) == 2).all()
        random = np.random.default_rng(step)
        gradients = jax.tree.map(lambda leaf, random=random: random.normal(size=leaf.shape), params)
        updates, state = jax.jit(tx.update)(gradients, state, params)
        params = optax.apply_updates(params, updates)
        assert (np.asarray(sparsity.masks_of(state)["query"]["kernel"]) != query).any()


def test_fan_in_and_channels_of_attention_are_of_neurons() -> None:
    fan_in = masks_of(sparsity.srigl(0.25, distribution="uniform"), ATTENTION)
    assert (fan_in["query"]["kernel"].sum(0) == 8).all()
    assert (fan_in["out"]["kernel"].sum((0, 1)) == 8).all()
    recipe = sparsity.rigl(0.5, structure=sparsity.channel(), distribution="uniform")
    query = masks_of(recipe, ATTENTION)["query"]["kernel"]
    assert query.any(0).sum() == 16 and set(query.sum(0).ravel()) == {0, 32}


def test_attention_counts_as_a_matrix() -> None:
    matrices = {
        "query": {"kernel": jnp.ones((32, 32))},
        "out": {"kernel": jnp.ones((32, 32))},
        "wide": {"kernel": jnp.ones((32, 256))},
    }
    wide = {"wide": matrices["wide"]}
    for recipe in (sparsity.static(0.2), sparsity.static(epsilon=2.0)):
        masks = masks_of(recipe, {**ATTENTION, **wide})
        counts = [masks[name]["kernel"].sum() for name in matrices]
        assert counts == recipe.counts([leaf["kernel"].shape for leaf in matrices.values()])


def test_each_stacked_layer_has_its_own_count() -> None:
    scales = jnp.asarray([1.0, 0.1, 0.01])[:, None, None]
    kernel = jax.random.normal(jax.random.key(0), (3, 32, 64)) * scales
    params = {**STACKED, "dense": {**STACKED["dense"], "kernel": kernel}}
    pruning = sparsity.magnitude(0.2, schedule=sparsity.one_shot(1), distribution="uniform")
    tx = sparsity.sparse(optax.sgd(0.1), pruning, jax.random.key(0))
    zeros = jax.tree.map(jnp.zeros_like, params)
    _, state = jax.jit(lambda params: tx.update(zeros, tx.init(params), params))(params)
    masks = jax.tree.map(np.asarray, sparsity.masks_of(state))
    np.testing.assert_array_equal(masks["dense"]["kernel"].sum((1, 2)), [410, 410, 410])
    others = (masks["norm"]["scale"], masks["embed"]["embedding"], masks["pos"])
    assert all(mask.all() for mask in others)


def test_a_layer_of_a_stack_changes_as_alone_but_for_its_key() -> None:
    """Growth by gradient has no randomness: a stack grows what its layers grow."""
    weights = jax.random.normal(jax.random.key(0), (2, 12, 10))
    gradients = jax.random.normal(jax.random.key(1), (2, 12, 10))
    recipe = sparsity.rigl(0.3, every=1, distribution="uniform")
    tx = sparsity.sparse(
        optax.sgd(0.1), recipe, jax.random.key(0), axes={"w": ("stack", "in", "out")}
    )
    state = jax.jit(tx.init)({"w": weights})
    masks = np.asarray(sparsity.masks_of(state)["w"])
    after = np.asarray(
        sparsity.masks_of(jax.jit(tx.update)({"w": gradients}, state, {"w": weights * masks})[1])[
            "w"
        ]
    )
    alone = sparsity.sparse(optax.sgd(0.1), recipe, jax.random.key(0))

    @jax.jit
    def changed(weight: jax.Array, mask: jax.Array, gradient: jax.Array) -> jax.Array:
        before = sparsity.with_masks(alone.init({"w": weight}), {"w": mask})
        return sparsity.masks_of(alone.update({"w": gradient}, before, {"w": weight})[1])["w"]

    for weight, mask, gradient, expected in zip(weights, masks, gradients, after, strict=True):
        np.testing.assert_array_equal(changed(weight * mask, mask, gradient), expected)
        assert (expected != mask).any()


def test_axes_of_the_program_choose_the_kernels() -> None:
    params = {"w": jnp.ones((32, 8)), "gain": jnp.ones((6, 32))}

    def apply(params: Any, x: jax.Array) -> jax.Array:
        return (x * params["gain"]) @ params["w"]

    axes = sparsity.axes(apply, params, jnp.ones((2, 6, 32)))
    by_name = masks_of(sparsity.static(0.5), params)
    by_program = masks_of(sparsity.static(0.5), params, axes=axes)
    assert not by_name["gain"].all() and by_program["gain"].all() and not by_program["w"].all()
    with pytest.raises(ConfigError, match="gain is not a kernel"):
        masks_of(sparsity.static(0.5), params, axes=axes, where=["gain", "w"])


def test_masks_by_gradients_have_the_counts_of_attention_and_of_stacks() -> None:
    shapes = {"query/kernel": (8, 2, 4), "stack": (3, 8, 8)}
    params = {path: jax.random.normal(jax.random.key(0), shape) for path, shape in shapes.items()}
    options = {"axes": {"query/*": ("in", "out", "out"), "stack": ("stack", "in", "out")}}
    recipe = sparsity.rigl({"query/*": 0.25, "*": 0.1})
    masks = sparsity.snip_masks(params, params, recipe.counts, **options)
    tx = sparsity.sparse(optax.sgd(0.1), recipe, jax.random.key(0), masks=masks, **options)
    state = tx.init(params)
    sparsity.check(sparsity.mask_params(params, state), state, recipe, **options)
    assert masks["query/kernel"].sum() == 16 and masks["stack"].sum((1, 2)).tolist() == [6, 6, 6]


def test_axes_of_the_program_count_before_names() -> None:
    """Kernels that are named like tables and scales."""
    params = {"embedding": jnp.ones((4, 8)), "scale": jnp.ones((8, 2))}

    def apply(params: Any, x: jax.Array) -> jax.Array:
        return jnp.tanh(x @ params["embedding"]) @ params["scale"]

    axes = sparsity.axes(apply, params, jnp.ones((5, 4)))
    masks = masks_of(sparsity.static(0.5, distribution="uniform"), params, axes=axes)
    assert [int(masks[name].sum()) for name in params] == [16, 8]
    pruned = sparsity.wanda(apply, params, jnp.ones((5, 4)), density=0.5, axes=axes)
    assert set(pruned.errors) == set(params)
    table = sparsity.summarize(params, masks, axes=axes)
    assert table.loc["all", "active"] == 24 and (table["structure"][:2] != "").all()


@pytest.mark.slow
def test_structures_of_unknown_axes_are_refused() -> None:
    params = {"w": jnp.ones((3, 32, 64))}
    for structure in (sparsity.n_of_m(2, 4), sparsity.channel(), sparsity.fan_in()):
        density = None if structure.fixed_density else 0.5
        recipe = sparsity.rigl(density, structure=structure)
        with pytest.raises(ConfigError, match=r"w has 3 axes.*axes=sparsity\.axes"):
            masks_of(recipe, params)
        assert not masks_of(recipe, params, axes={"w": ("stack", "in", "out")})["w"].all()
    convolution = {"conv": {"kernel": jnp.ones((3, 32, 64)), "bias": jnp.ones(64)}}
    halves = masks_of(sparsity.rigl(structure=sparsity.n_of_m(2, 4)), convolution)
    assert (halves["conv"]["kernel"].reshape(3, 8, 4, 64).sum(2) == 2).all()


def test_the_bias_beside_a_kernel_contradicts_a_guess() -> None:
    shapes = {
        "turned": ((3, 3, 8, 4), (8,), ("spatial", "spatial", "out", "in")),
        "of several axes": ((5, 6, 4, 8), (4, 8), ("in", "in", "out", "out")),
        "convolution": ((3, 3, 8, 8), (8,), ("spatial", "spatial", "in", "out")),
    }
    for kernel, bias, roles in shapes.values():
        params = {"kernel": jnp.ones(kernel), "bias": jnp.ones(bias)}
        assert kernel_axes(params)["kernel"] == KernelAxes(roles)
        of_haiku = {"conv": {"w": jnp.ones(kernel), "b": jnp.ones(bias)}}
        assert kernel_axes(of_haiku, "*/w")["conv/w"] == KernelAxes(roles)
    params = {"kernel": jnp.ones((3, 4, 5, 8)), "bias": jnp.ones(7)}
    with pytest.raises(ConfigError, match=r"kernel has 4 axes.*axes=sparsity\.axes"):
        masks_of(sparsity.rigl(structure=sparsity.n_of_m(2, 4)), params)
    assert not masks_of(sparsity.rigl(0.5), params)["kernel"].all()


BAD_AXES = {
    "a role per axis": ({"w": ("in", "out")}, "one per axis"),
    "a known role": ({"w": ("in", "out", "heads")}, ", ".join(ROLES)),
    "inputs and outputs": ({"w": ("in", "in", "in")}, "at least one 'in' and one 'out'"),
}


@pytest.mark.parametrize("case", BAD_AXES)
def test_bad_axes(case: str) -> None:
    axes, remedy = BAD_AXES[case]
    with pytest.raises(ConfigError, match=f"axes of w.*{remedy}"):
        masks_of(sparsity.static(0.5), {"w": jnp.ones((4, 6, 8))}, axes=axes)


def test_integers_and_keys_are_no_kernels() -> None:
    params = {
        "w": jnp.ones((8, 8)),
        "table": jnp.ones((4, 4), jnp.int32),
        "keys": jax.random.split(jax.random.PRNGKey(0), 4),
    }
    masks = masks_of(sparsity.static(0.5), params)
    assert masks["table"].all() and masks["keys"].all() and masks["w"].sum() == 32


def test_gradients_of_lower_precision_leave_exact_zeros() -> None:
    params = {"w": jax.random.normal(jax.random.key(0), (20, 20))}
    gradients = {"w": jax.random.normal(jax.random.key(2), (20, 20)).astype(jnp.bfloat16)}
    recipes = (sparsity.magnitude(0.1, schedule=sparsity.one_shot(1)), sparsity.rigl(0.1, every=1))
    for recipe in recipes:
        tx = sparsity.sparse(optax.sgd(0.1), recipe, jax.random.key(0))
        updates, state = jax.jit(lambda p, tx=tx: tx.update(gradients, tx.init(p), p))(params)
        moved = np.asarray(params["w"] + updates["w"])
        inactive = ~np.asarray(sparsity.masks_of(state)["w"])
        assert inactive.sum() == 360 and (moved[inactive] == 0).all()


@slow_ids("recipe1")
@pytest.mark.parametrize(
    "recipe", [sparsity.rigl(0.2, every=1), sparsity.evolutionary(0.2, every=1)]
)
def test_a_gradient_that_is_not_finite_moves_no_connection(recipe: sparsity.Recipe) -> None:
    tx = sparsity.sparse(optax.apply_if_finite(optax.sgd(0.1), 3), recipe, jax.random.key(0))
    state = tx.init({"w": jnp.ones((20, 30))})
    params = sparsity.mask_params({"w": jnp.ones((20, 30))}, state)
    before = sparsity.masks_of(state)["w"]
    gradient = jax.random.normal(jax.random.key(0), (20, 30))
    moved = []
    for bad in (gradient.at[3, 4].set(jnp.nan), gradient.at[0, 0].set(jnp.inf), gradient):
        _, after = jax.jit(tx.update)({"w": bad}, state, params)
        moved.append(bool((sparsity.masks_of(after)["w"] != before).any()))
    assert moved == [False, False, True]


def test_a_score_that_is_not_finite_prunes_nothing() -> None:
    params = {"w": jax.random.normal(jax.random.key(0), (6, 5))}
    tx = sparsity.sparse(optax.sgd(0.1), sparsity.grasp(0.2), jax.random.key(0))
    state = tx.init(params)
    for value, left in ((jnp.nan, 30), (jnp.inf, 30), (1.0, 6)):
        score = {"w": jnp.ones((6, 5)).at[2, 3].set(value)}
        _, after = tx.update(params, state, params, hessian_gradient=score)
        assert sparsity.masks_of(after)["w"].sum() == left


@pytest.mark.slow
def test_counts_above_the_precision_of_float32_are_exact() -> None:
    size, kept = 2**24 + 4097, 1680
    recipe = sparsity.magnitude({"*": kept / size}, schedule=sparsity.one_shot(1))
    layer = sparsity.Layer(jnp.zeros((1, size)), jnp.ones((1, size), bool))
    tree = {"w": layer.weight}, {"w": layer.mask}
    masks = jax.eval_shape(lambda: recipe.change(*tree, {"w": layer}, jax.random.key(0), 1).masks)
    assert masks["w"].shape == (1, size)
    counts = jax.jit(
        lambda: recipe.change(*tree, {"w": layer}, jax.random.key(0), 1).masks["w"].sum()
    )()
    assert counts == recipe.counts([(1, size)], ["w"])[0] == kept


def test_names_that_coincide_are_refused() -> None:
    params = {"a/b": jnp.ones((4, 6)), "a": {"b": jnp.ones((4, 6))}}
    with pytest.raises(ConfigError, match="two parameters have the path a/b"):
        masks_of(sparsity.static(0.5), params)


class Attention(nn.Module):
    """One block whose kernels are in a scan."""

    @nn.compact
    def __call__(self, x: jax.Array, _: None = None) -> tuple[jax.Array, None]:
        return x + nn.MultiHeadDotProductAttention(4)(nn.LayerNorm()(x)), None


@pytest.mark.slow
def test_a_scan_of_attention_trains_with_exact_counts() -> None:
    blocks = nn.scan(
        Attention, variable_axes={"params": 0}, split_rngs={"params": True}, length=3
    )()
    x = jax.random.normal(jax.random.key(0), (4, 5, 16))
    params = blocks.init(jax.random.key(1), x, None)
    axes = sparsity.axes(lambda params, x: blocks.apply(params, x, None), params, x)
    recipe = sparsity.srigl(0.25, every=2, distribution="uniform")
    tx = sparsity.sparse(optax.adam(1e-2), recipe, jax.random.key(0), axes=axes)
    state = tx.init(params)
    params = sparsity.mask_params(params, state)
    first = sparsity.masks_of(state)

    @jax.jit
    def step(params: Any, state: Any) -> tuple[Any, Any]:
        gradients = jax.grad(lambda p: jnp.mean((blocks.apply(p, x, None)[0] - 1) ** 2))(params)
        updates, state = tx.update(gradients, state, params)
        return optax.apply_updates(params, updates), state

    for _ in range(5):
        params, state = step(params, state)
    masks = sparsity.masks_of(state)
    module = masks["params"]["MultiHeadDotProductAttention_0"]
    assert (module["value"]["kernel"].sum(1) == 4).all()
    assert (module["out"]["kernel"].sum((1, 2)) == 4).all()
    assert any((a != b).any() for a, b in zip(*map(jax.tree.leaves, (first, masks)), strict=True))
    for weight, mask in zip(jax.tree.leaves(params), jax.tree.leaves(masks), strict=True):
        assert (weight[~mask] == 0).all()


NAMES = {
    "a head": ("cls", (64, 10), True),
    "a class token": ("cls", (1, 1, 32), False),
    "positions": ("pos_embedding", (1, 6, 32), False),
    "a name that begins alike": ("positive", (8, 6), True),
    "a scale of stacked layers": ("scale", (3, 32), False),
    "one output": ("kernel", (64, 1), True),
    "a convolution of one channel": ("kernel", (3, 3, 1, 8), True),
}


@pytest.mark.parametrize("case", NAMES)
def test_names_and_shapes_of_kernels(case: str) -> None:
    name, shape, expected = NAMES[case]
    for path in ((name,), ("Dense_0", name), ("Dense_0", name, "value")):
        assert sparsity.is_kernel(path, jnp.ones(shape)) is expected


def test_norms_and_tables_of_equinox_are_no_kernels() -> None:
    modules = {
        "norm": eqx.nn.LayerNorm((4, 16)),
        "table": eqx.nn.Embedding(weight=jnp.ones((50, 16))),
        "map": eqx.nn.Linear(8, 16, key=jax.random.key(0)),
    }
    params = eqx.filter(modules, eqx.is_array)
    masks = sparsity.masks_of(
        sparsity.sparse(optax.sgd(0.1), sparsity.static(0.2), jax.random.key(0)).init(params)
    )
    assert masks["norm"].weight.all() and masks["table"].weight.all()
    assert masks["map"].weight.sum() == 26  # a fifth of 128
    assert sparsity.sparsity(masks) == pytest.approx(1 - 26 / 128)


def test_a_loop_that_turns_its_parameter_is_followed_to_the_end() -> None:
    def apply(params: Any, x: jax.Array) -> jax.Array:
        turned = jax.lax.fori_loop(0, 3, lambda _, w: w.T, params["w"])
        return x @ turned

    roles = sparsity.axes(apply, {"w": jnp.ones((8, 8))}, jnp.ones((2, 8)))["w"]
    assert roles.use == "other" and "`in` and `out`" in roles.reason
