"""Channels are removed from all parameters at once; outputs are those of the masked network.

Covers ``fsjax.sparsity.channel_groups``, ``fsjax.sparsity.program``, ``fsjax.sparsity.shrinking``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import chex
import equinox as eqx
import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import nnx
from hypothesis import given, settings
from hypothesis import strategies as st
from jax import Array

from fsjax import sparsity
from fsjax.errors import ConfigError, FixedLengthWarning
from fsjax.sparsity.channels import channel_groups
from fsjax.typing import PyTree


def random_like(tree: PyTree, seed: int = 0) -> PyTree:
    """Numbers in place of initial ones and zeros, which hide biases, scales and statistics."""
    leaves, structure = jax.tree.flatten(tree)
    rng = np.random.default_rng(seed)
    return jax.tree.unflatten(
        structure,
        [jnp.asarray(0.2 + rng.uniform(0, 0.5, leaf.shape), leaf.dtype) for leaf in leaves],
    )


def assert_exact(
    function: Callable, params: PyTree, x: Array, smaller: Callable, **options: Any
) -> Any:
    """The smaller network has the outputs of the masked one; those before were others."""
    function = jax.jit(function)
    shrunk = sparsity.shrink(function, params, x, **options)
    expected = function(shrunk.masked, x)
    chex.assert_trees_all_close(
        jax.jit(smaller(shrunk))(shrunk.params, x), expected, rtol=2e-4, atol=1e-5
    )
    assert not np.allclose(function(params, x), expected, rtol=1e-3)
    return shrunk


def same(function: Callable) -> Callable:
    """For functions that read all lengths from their parameters."""
    return lambda shrunk: function


def of(array: Any, *shape: int) -> Array:
    return jnp.asarray(np.random.default_rng(array).normal(size=shape), jnp.float32)


class Residual(nn.Module):
    stem: int = 6
    hidden: int = 5

    @nn.compact
    def __call__(self, x: Array) -> Array:
        norm = partial(nn.BatchNorm, use_running_average=True)
        x = nn.relu(norm()(nn.Conv(self.stem, (3, 3))(x)))
        y = nn.relu(norm()(nn.Conv(self.hidden, (3, 3), use_bias=False)(x)))
        x = x + norm()(nn.Conv(self.stem, (3, 3), use_bias=False)(y))
        x = nn.max_pool(x, (2, 2), strides=(2, 2))
        return nn.Dense(3)(x.reshape(x.shape[0], -1))


def test_a_residual_network_with_batch_norm() -> None:
    x = of(1, 2, 6, 6, 2)
    variables = random_like(jax.eval_shape(Residual().init, jax.random.key(0), x))

    def smaller(shrunk: Any) -> Callable:
        widths = [shrunk.widths[f"params/Conv_{i}/kernel"] for i in range(3)]
        assert widths == [3, 3, 3]  # 5 channels lose two
        return Residual(3, 3).apply

    shrunk = assert_exact(Residual().apply, variables, x, smaller, ratio=0.5)
    # 9 positions of the last image read each channel of the stem.
    stem = next(group for group in shrunk.groups if group.size == 6)
    assert stem.entries["params/Dense_0/kernel", 0].shape == (6, 9)
    assert list(shrunk.reasons) == ["params/Dense_0/kernel"]


class Transformer(nn.Module):
    heads: int = 4
    hidden: int = 10

    @nn.compact
    def __call__(self, x: Array) -> Array:
        y = nn.LayerNorm()(x)
        x = x + nn.MultiHeadDotProductAttention(
            self.heads, qkv_features=3 * self.heads, out_features=x.shape[-1]
        )(y, y)
        y = nn.gelu(nn.Dense(self.hidden)(nn.LayerNorm()(x)))
        return x + nn.Dense(x.shape[-1])(y)


def test_a_transformer_loses_heads_and_hidden_units() -> None:
    x = of(2, 2, 5, 6)
    params = random_like(jax.eval_shape(Transformer().init, jax.random.key(0), x))

    def smaller(shrunk: Any) -> Callable:
        heads = shrunk.widths["params/MultiHeadDotProductAttention_0/query/kernel"]
        return Transformer(heads, shrunk.widths["params/Dense_0/kernel"]).apply

    shrunk = assert_exact(Transformer().apply, params, x, smaller, ratio={"*Attention*": 0.25})
    assert sorted(group.size for group in shrunk.groups) == [4, 10]
    assert shrunk.widths["params/Dense_0/kernel"] == 10
    assert "inputs" in shrunk.reasons["params/Dense_1/kernel"]


def attention(params: PyTree, x: Array) -> Array:
    """Fused queries, keys and values, cut in one of two ways, as models of text have them."""
    head = 4
    every = x @ params["qkv"]
    if params.get("halves") is not None:
        parts = [a.reshape(*x.shape[:2], -1, head) for a in jnp.split(every, 3, axis=-1)]
    else:
        stacked = every.reshape(*x.shape[:2], 3, -1, head)
        parts = [stacked[:, :, i] for i in range(3)]
    scores = jnp.einsum("bqhd,bkhd->bhqk", parts[0], parts[1])
    mixed = jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores / head**0.5), parts[2])
    return mixed.reshape(*x.shape[:2], -1) @ params["out"]


@pytest.mark.parametrize("halves", [False, True])
def test_fused_projections_lose_whole_heads(halves: bool) -> None:
    x = of(3, 2, 5, 6)
    params = {"qkv": of(4, 6, 36), "out": of(5, 12, 6)} | ({"halves": of(6, 1)} if halves else {})
    shrunk = assert_exact(attention, params, x, same(attention), ratio=0.3)
    assert sparsity.shrink(attention, params, x[:1, :1], ratio=0.3).widths == shrunk.widths
    assert shrunk.params["qkv"].shape == (6, 24)
    assert [group.entries["qkv", 1].shape for group in shrunk.groups] == [(3, 12)]


def gated(params: PyTree, x: Array) -> Array:
    both = x @ params["gate"]
    first, second = jnp.split(both, 2, axis=-1)
    return (jax.nn.silu(first) * second) @ params["down"]


def dense_net(params: PyTree, x: Array) -> Array:
    for name in ("a", "b"):
        x = jnp.concatenate([x, jax.nn.relu(x @ params[name] + params[f"{name}_bias"])], axis=-1)
    return x @ params["head"]


def low_rank(params: PyTree, x: Array) -> Array:
    return jnp.tanh(x @ (params["left"] @ params["right"])) @ params["head"]


def tied(params: PyTree, x: Array) -> Array:
    return jax.nn.relu(x @ params["w"]) @ params["w"].T


def depthwise(params: PyTree, x: Array) -> Array:
    convolve = partial(
        jax.lax.conv_general_dilated,
        window_strides=(1, 1),
        padding="SAME",
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
    )
    x = jax.nn.relu(convolve(x, params["first"]))
    x = jax.nn.relu(convolve(x, params["depth"], feature_group_count=params["depth"].shape[-1]))
    return convolve(x, params["last"]).mean((1, 2))


def scanned(params: PyTree, x: Array) -> Array:
    def layer(x: Array, weights: PyTree) -> tuple[Array, None]:
        return x + jax.nn.relu(x @ weights["up"]) @ weights["down"], None

    return jax.lax.scan(layer, x, params)[0]


def recurrent(params: PyTree, x: Array) -> Array:
    def step(state: Array, row: Array) -> tuple[Array, None]:
        return jnp.tanh(row @ params["in"] + state @ params["state"] + params["bias"]), None

    start = jnp.zeros((x.shape[0], params["bias"].shape[0]))
    return jax.lax.scan(step, start, x.swapaxes(0, 1))[0] @ params["out"]


def standardized(params: PyTree, x: Array) -> Array:
    centred = params["first"] - params["first"].mean(0)
    weights = centred / jnp.sqrt(jnp.square(centred).mean(0) + 1e-3)
    return jax.nn.relu(x @ weights) @ params["second"]


def stacked(params: PyTree, x: Array) -> Array:
    hidden = x @ params["first"]
    return jnp.stack([hidden, jnp.sin(hidden)], -1).reshape(len(x), -1) @ params["second"]


def experts(params: PyTree, x: Array) -> Array:
    hidden = jax.nn.gelu(jnp.einsum("bi,eih->beh", x, params["up"]))
    return jnp.einsum("beh,eho->bo", hidden, params["down"])


SHAPED: dict[str, tuple[Callable, dict[str, tuple[int, ...]], tuple[int, ...], dict[str, int]]] = {
    "gated": (gated, {"gate": (5, 12), "down": (6, 4)}, (3, 5), {"gate": 6}),
    "concatenated": (
        dense_net,
        {"a": (5, 4), "a_bias": (4,), "b": (9, 6), "b_bias": (6,), "head": (15, 2)},
        (3, 5),
        {"a": 2, "b": 3},
    ),
    "low rank": (
        low_rank,
        {"left": (5, 4), "right": (4, 6), "head": (6, 2)},
        (3, 5),
        {"left": 2, "right": 3},
    ),
    "tied": (tied, {"w": (5, 8)}, (3, 5), {"w": 4}),
    "depthwise": (
        depthwise,
        {"first": (3, 3, 2, 4), "depth": (3, 3, 1, 4), "last": (1, 1, 4, 3)},
        (2, 5, 5, 2),
        {"first": 2},
    ),
    "scan over layers": (scanned, {"up": (3, 5, 8), "down": (3, 8, 5)}, (4, 5), {"up": 4}),
    "recurrent": (
        recurrent,
        {"in": (3, 6), "state": (6, 6), "bias": (6,), "out": (6, 2)},
        (4, 7, 3),
        {"in": 3, "state": 3},
    ),
    "standardized": (standardized, {"first": (4, 6), "second": (6, 2)}, (3, 4), {"first": 3}),
    "stacked": (stacked, {"first": (4, 6), "second": (12, 2)}, (3, 4), {"first": 3}),
    "experts": (experts, {"up": (2, 5, 6), "down": (2, 6, 3)}, (4, 5), {"up": 1}),
}


@pytest.mark.parametrize("kind", SHAPED)
def test_networks_that_read_lengths_from_their_parameters(kind: str) -> None:
    function, shapes, rows, widths = SHAPED[kind]
    params = {name: of(7 + i, *shape) for i, (name, shape) in enumerate(shapes.items())}
    shrunk = assert_exact(function, params, of(6, *rows), same(function), ratio=0.5)
    assert shrunk.widths == widths
    # An axis of one entry says nothing of the others.
    single = jax.ShapeDtypeStruct((1, *rows[1:]), jnp.float32)
    assert sparsity.shrink(function, params, single, ratio=0.5).widths == widths


def test_groups_of_a_convolution_go_as_a_whole() -> None:
    params = {"in": of(1, 5, 8), "grouped": of(2, 12, 2, 3), "out": of(3, 12, 2)}

    def network(params: PyTree, x: Array) -> Array:
        hidden = jax.nn.relu(x @ params["in"])[:, :, None]
        hidden = jax.lax.conv_general_dilated(
            hidden,
            params["grouped"],
            (1,),
            "SAME",
            dimension_numbers=("NCH", "OIH", "NCH"),
            feature_group_count=params["in"].shape[-1] // 2,
        )
        return hidden.mean(2) @ params["out"]

    shrunk = assert_exact(network, params, of(4, 3, 5), same(network), ratio=0.5)
    chex.assert_shape(shrunk.params["in"], (5, 4))
    chex.assert_shape(shrunk.params["grouped"], (6, 2, 3))


@pytest.mark.slow
def test_modules_of_nnx_and_equinox() -> None:
    class Network(nnx.Module):
        def __init__(self, hidden: int) -> None:
            rngs = nnx.Rngs(0)
            self.first, self.norm = (
                nnx.Linear(4, hidden, rngs=rngs),
                nnx.BatchNorm(hidden, rngs=rngs),
            )
            self.second = nnx.Linear(hidden, 2, rngs=rngs)

        def __call__(self, x: Array) -> Array:
            hidden = self.norm(self.first(x), use_running_average=True)
            return self.second(jax.nn.relu(hidden))

    def function(hidden: int) -> Callable:
        graph = nnx.split(Network(hidden))[0]
        return lambda state, x: nnx.merge(graph, state)(x)

    state = random_like(nnx.split(Network(6))[1])
    assert_exact(function(6), state, of(1, 3, 4), lambda _: function(3), ratio=0.5)
    mlp = eqx.nn.MLP(4, 2, 6, 2, key=jax.random.key(0))

    def apply(mlp: eqx.nn.MLP, x: Array) -> Array:
        return jax.vmap(mlp)(x)

    arrays, rest = eqx.partition(random_like_arrays(mlp), eqx.is_array)
    assert_exact(
        lambda arrays, x: apply(eqx.combine(arrays, rest), x),
        arrays,
        of(1, 3, 4),
        same(lambda arrays, x: apply(eqx.combine(arrays, rest), x)),
        ratio=0.5,
    )


def random_like_arrays(module: PyTree) -> PyTree:
    arrays, rest = eqx.partition(module, eqx.is_array)
    return eqx.combine(random_like(arrays), rest)


def mean_norm(params: PyTree, x: Array) -> Array:
    hidden = x @ params["first"]
    return (hidden - hidden.mean(-1, keepdims=True)) @ params["second"]


def scaled_by_constants(params: PyTree, x: Array) -> Array:
    return (x @ params["first"] * jnp.arange(1.0, 7.0)) @ params["second"]


def exponential_weights(params: PyTree, x: Array) -> Array:
    return jax.nn.relu(x @ params["first"]) @ jnp.exp(params["second"])


def product_of_activations(params: PyTree, x: Array) -> Array:
    hidden = x @ params["first"]
    return hidden @ hidden.T @ jnp.ones((len(x), 2)) * params["second"].sum()


def sorted_units(params: PyTree, x: Array) -> Array:
    return jnp.sort(x @ params["first"], axis=-1) @ params["second"]


def fourier(params: PyTree, x: Array) -> Array:
    return jnp.fft.fft(x @ params["first"]).real @ params["second"]


def single_unit(params: PyTree, x: Array) -> Array:
    hidden = x @ params["first"]
    return hidden @ params["second"] + hidden[:, 2:3]


def neighbours(params: PyTree, x: Array) -> Array:
    return jnp.diff(jnp.tanh(x @ params["first"])) @ params["second"][1:]


def equal_readers(params: PyTree, x: Array) -> Array:
    hidden = jax.nn.sigmoid(x @ params["first"])
    return hidden @ params["second"] + hidden @ jnp.broadcast_to(params["equal"], (6, 2))


def readers_side_by_side(params: PyTree, x: Array) -> Array:
    equal = jnp.broadcast_to(params["equal"], (6, 2))
    weights = jnp.concatenate([params["second"], equal], axis=1)
    return jax.nn.sigmoid(x @ params["first"]) @ weights


def readers_in_turn(params: PyTree, x: Array) -> Array:
    equal = jnp.broadcast_to(params["equal"], (6, 2))
    weights = jax.lax.cond(x.sum() > 0, lambda: params["second"], lambda: equal)
    return jax.nn.sigmoid(x @ params["first"]) @ weights


def normalized_weights(params: PyTree, x: Array) -> Array:
    squares = jnp.square(params["first"]).sum(0)
    return jax.nn.relu(x @ (params["first"] * jax.lax.rsqrt(squares))) @ params["second"]


def divided_by_weights(params: PyTree, x: Array) -> Array:
    return x @ params["first"] / params["second"][:, 0] @ params["second"]


@pytest.mark.parametrize(
    ("network", "reason"),
    [
        (equal_readers, "a product with equal numbers"),
        (readers_side_by_side, "a product of two activations"),
        (readers_in_turn, "a product of two activations"),
        (normalized_weights, "it is divided by"),
        (divided_by_weights, "it is divided by"),
        (mean_norm, "mean goes over it"),
        (scaled_by_constants, "an array of a given length"),
        (exponential_weights, "a product of two activations"),
        (product_of_activations, "a product of two activations"),
        (sorted_units, "sort goes along it"),
        (fourier, "the operation fft"),
        (neighbours, "only go all at once"),
        (single_unit, "single entries of it are taken"),
    ],
)
def test_what_cannot_be_removed_is_refused_by_name(network: Callable, reason: str) -> None:
    params = {"equal": of(0, 2), "first": of(1, 4, 6), "second": of(2, 6, 2)}
    with pytest.raises(ConfigError, match=f"first: .*{reason}"):
        sparsity.shrink(network, params, of(3, 5, 4), ratio=0.5)


def mlp(params: PyTree, x: Array) -> Array:
    return jax.nn.relu(x @ params["first"] + params["bias"]) @ params["second"]


def halves(params: PyTree, x: Array) -> Array:
    hidden = jnp.tanh(x @ params["both"])
    middle = params["left"].shape[0]
    return hidden[:, :middle] @ params["left"] + hidden[:, middle:] @ params["right"]


def test_each_part_of_a_layer_loses_its_own_weakest() -> None:
    params = {"both": of(1, 4, 10), "left": of(2, 5, 2), "right": of(3, 5, 2)}
    params["left"] = params["left"].at[1].set(0)
    params["right"] = params["right"].at[3].set(0)
    x = of(4, 6, 4)
    shrunk = sparsity.shrink(halves, params, x, ratio={"both": 0.2})
    assert {name: list(np.flatnonzero(removed)) for name, removed in shrunk.removed.items()} == {
        "both[0]": [1],
        "both[1]": [3],
    }
    chex.assert_trees_all_close(halves(shrunk.params, x), halves(params, x), rtol=1e-5)


@given(st.integers(1, 9), st.floats(0, 0.99))
@settings(max_examples=10, deadline=None)
def test_the_weakest_channels_go_and_one_is_left(hidden: int, ratio: float) -> None:
    params = {"first": of(1, 4, hidden), "bias": of(2, hidden), "second": of(3, hidden, 2)}
    if hidden == 1:
        with pytest.raises(ConfigError):
            sparsity.shrink(mlp, params, of(4, 5, 4), ratio=ratio)
        return
    shrunk = sparsity.shrink(mlp, params, jax.ShapeDtypeStruct((5, 4), jnp.float32), ratio=ratio)
    norms = [np.linalg.norm(params["first"], axis=0), np.linalg.norm(params["second"], axis=1)]
    scores = sum(norm / norm.mean() for norm in norms)
    removed = shrunk.removed["first"]
    assert removed.sum() == min(round(ratio * hidden), hidden - 1)
    assert scores[removed].max(initial=0) <= scores[~removed].min()
    np.testing.assert_array_equal(shrunk.params["second"], params["second"][~removed])


@pytest.mark.slow
def test_the_taylor_terms_find_units_without_influence() -> None:
    x, y = of(1, 64, 4), of(2, 64, 2)
    params = {"first": of(3, 4, 6), "bias": jnp.zeros(6).at[1].set(-50.0), "second": of(4, 6, 2)}
    # The second unit never fires: large weights, and no influence.
    params["second"] = params["second"].at[1].set(9.0)
    gradients = jax.grad(lambda params: jnp.mean((mlp(params, x) - y) ** 2))(params)
    by_taylor = sparsity.shrink(mlp, params, x, ratio=0.17, importance=gradients)
    by_size = sparsity.shrink(mlp, params, x, ratio=0.17)
    assert by_taylor.removed["first"][1]
    assert not by_size.removed["first"][1]
    chex.assert_trees_all_close(mlp(by_taylor.params, x), mlp(params, x), rtol=1e-5)


def test_channels_that_a_recipe_pruned_are_removed() -> None:
    params = {"first": of(1, 6, 8), "bias": jnp.zeros(8), "second": of(2, 8, 2)}
    recipe = sparsity.magnitude(
        {"first": 0.5}, schedule=sparsity.one_shot(1), structure=sparsity.channel()
    )
    tx = sparsity.sparse(optax.sgd(0.1), recipe, jax.random.key(0))
    state = jax.jit(tx.init)(params)
    update = jax.jit(tx.update)
    for _ in range(2):
        updates, state = update(jax.tree.map(jnp.zeros_like, params), state, params)
        params = optax.apply_updates(params, updates)
    x = of(3, 5, 6)
    shrunk = sparsity.shrink(mlp, params, x, masks=sparsity.masks_of(state))
    assert shrunk.widths == {"first": 4}
    chex.assert_trees_all_close(mlp(shrunk.params, x), mlp(params, x), rtol=1e-5)


def test_other_trees_of_the_network_shrink_with_it() -> None:
    params = {"first": of(1, 6, 8), "bias": of(2, 8), "second": of(3, 8, 2)}
    shrunk = sparsity.shrink(mlp, params, of(4, 5, 6), ratio=0.5)
    chex.assert_trees_all_equal(shrunk.shrink(params), shrunk.params)
    with pytest.raises(ConfigError, match="bias"):
        shrunk.shrink({**params, "bias": jnp.ones(3)})


def test_wrong_arguments_are_named() -> None:
    params = {"first": of(1, 6, 8), "bias": of(2, 8), "second": of(3, 8, 2)}
    shrink = partial(sparsity.shrink, mlp, params, of(4, 5, 6))
    with pytest.raises(ConfigError, match="exactly one"):
        shrink()
    with pytest.raises(ConfigError, match="ratio"):
        shrink(ratio=1.0)
    with pytest.raises(ConfigError, match="matches none of first"):
        shrink(ratio={"third": 0.5})
    with pytest.raises(ConfigError, match="size"):
        shrink(ratio=0.5, importance="size")
    with pytest.raises(ConfigError, match="the gradients"):
        shrink(ratio=0.5, importance={"first": params["first"]})


def shuffled(params: PyTree, x: Array, groups: int = 2) -> Array:
    hidden = x @ params["first"] + params["bias"]
    mixed = hidden.reshape(len(x), groups, -1).swapaxes(1, 2).reshape(hidden.shape)
    return jnp.tanh(mixed) @ params["second"]


def test_functions_that_hold_a_number_of_groups_are_told_of() -> None:
    params = {"first": of(1, 6, 8), "bias": of(2, 8), "second": of(3, 8, 2)}
    x = of(4, 5, 6)
    with pytest.warns(FixedLengthWarning, match="1 in first"):
        shrunk = sparsity.shrink(shuffled, params, x, ratio=0.5)
    assert shrunk.num_channels == {"first": 1}
    chex.assert_trees_all_close(
        shuffled(shrunk.params, x, groups=1), shuffled(shrunk.masked, x), rtol=1e-5
    )


def test_the_report_has_groups_and_reasons() -> None:
    params = {"first": of(1, 6, 8), "bias": of(2, 8), "second": of(3, 8, 2)}
    text = str(sparsity.shrink(mlp, params, of(4, 5, 6), ratio=0.5))
    assert "first: 8 -> 4 channels in 3 axes" in text
    assert "second: kept" in text
    assert "72 -> 36 parameters" in text


def test_heads_that_are_shared_or_merged_stay_whole() -> None:
    def multi_query(params: PyTree, x: Array) -> Array:
        queries = jnp.einsum("bti,ihd->bthd", x, params["query"])
        keys, values = x @ params["key"], x @ params["value"]
        weights = jax.nn.softmax(jnp.einsum("bqhd,bkd->bhqk", queries, keys))
        mixed = jnp.einsum("bhqk,bkd->bqhd", weights, values)
        return mixed.reshape(*x.shape[:2], -1) @ params["out"]

    params = {
        "query": of(1, 6, 4, 3),
        "key": of(2, 6, 3),
        "value": of(3, 6, 3),
        "out": of(4, 12, 6),
    }
    shrunk = assert_exact(multi_query, params, of(5, 2, 5, 6), same(multi_query), ratio=0.5)
    assert shrunk.widths == {"query": 2}
    assert len(channel_groups(multi_query, params, of(5, 2, 5, 6)).groups) == 1


class Tokens(nn.Module):
    """A class token, exact GELU and a norm over groups of channels, as modules of Flax."""

    width: int = 8
    groups: int = 4
    hidden: int = 6

    @nn.compact
    def __call__(self, x: Array) -> Array:
        x = nn.silu(nn.GroupNorm(self.groups)(nn.Dense(self.width)(x)))
        token = self.param("token", nn.initializers.ones, (1, 1, self.width))
        x = jnp.concatenate([jnp.tile(token, (x.shape[0], 1, 1)), x], axis=1)
        hidden = nn.Dense(self.hidden)(x)
        x = x + nn.Dense(self.width)(nn.gelu(hidden, approximate=False))
        return nn.Dense(2)(x[:, 0])


def test_tokens_and_groups_of_norms() -> None:
    x = of(1, 3, 5, 4)
    params = random_like(jax.eval_shape(Tokens().init, jax.random.key(0), x))

    def smaller(shrunk: Any) -> Callable:
        widths = [shrunk.widths[f"params/Dense_{i}/kernel"] for i in range(2)]
        assert widths == [4, 3]
        return Tokens(widths[0], shrunk.num_channels["params/Dense_0/kernel"], widths[1]).apply

    assert_exact(Tokens().apply, params, x, smaller, ratio=0.5)


def test_steps_of_a_loop_stay_also_where_weights_meet_them() -> None:
    def network(params: PyTree, x: Array) -> Array:
        def step(state: Array, row: Array) -> tuple[Array, Array]:
            return jnp.cumsum(state + row, axis=-1), state

        steps = jax.lax.scan(step, x[:, 0], x.swapaxes(0, 1))[1] + params["position"]
        hidden = jax.nn.relu(steps @ params["up"]) @ params["down"]
        return hidden.swapaxes(0, 1).reshape(len(x), -1) @ params["out"]

    params = {
        "position": of(1, 5, 1, 4),
        "up": of(2, 4, 6),
        "down": of(3, 6, 3),
        "out": of(4, 15, 2),
    }
    shrunk = assert_exact(network, params, of(5, 2, 5, 4), same(network), ratio=0.5)
    assert shrunk.widths == {"up": 3, "down": 1}


def test_complex_weights_and_outputs_that_are_no_numbers() -> None:
    def network(params: PyTree, x: Array) -> tuple[Array, Array, Array]:
        outputs = (jax.lax.complex(x, x) @ params["first"]).real @ params["second"]
        return outputs, outputs.argmax(-1), jax.random.key(0)

    x = of(1, 3, 4)
    params = {"first": jax.lax.complex(of(2, 4, 6), of(3, 4, 6)), "second": of(4, 6, 2)}
    # The imaginary part counts as the real one does.
    params["first"] = params["first"].at[:, 2].set(9j)
    shrunk = sparsity.shrink(network, params, x, ratio=0.5)
    assert not shrunk.removed["first"][2]
    chex.assert_trees_all_close(
        network(shrunk.params, x)[0], network(shrunk.masked, x)[0], rtol=1e-5
    )


@pytest.mark.parametrize("hidden", [-jnp.inf, -1e9])
def test_fixed_lengths_are_told_of_beside_outputs_that_are_masked(hidden: float) -> None:
    def function(params: PyTree, x: Array) -> Array:
        y = jax.nn.relu(x @ params["a"])
        return jnp.where(jnp.arange(4) < 3, y @ params["b"] / y.shape[1], hidden)

    rng = np.random.default_rng(0)
    params = {"a": rng.normal(size=(6, 8)), "b": rng.normal(size=(8, 4))}
    with pytest.warns(FixedLengthWarning):
        sparsity.shrink(function, params, rng.normal(size=(3, 6)), ratio=0.5)
