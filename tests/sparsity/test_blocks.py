"""Whole blocks are removed; the shallower network has the outputs of the masked one.

Covers ``fsjax.sparsity.blocks``, ``fsjax.sparsity.depth``, ``fsjax.sparsity.zeroed``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from functools import partial
from typing import Any

import chex
import equinox as eqx
import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from jax import Array
from marks import slow_ids

from fsjax import sparsity
from fsjax.errors import ConfigError, FixedLengthWarning
from fsjax.typing import PyTree

X = np.random.default_rng(0).normal(size=(4, 6)).astype(np.float32)


def random_like(tree: PyTree) -> PyTree:
    """Numbers in place of initial ones and zeros, which hide biases, scales and statistics."""
    rng = np.random.default_rng(0)
    return jax.tree.map(lambda x: (0.2 + rng.uniform(0, 0.5, x.shape)).astype(x.dtype), tree)


def new(module: nn.Module, x: Any) -> PyTree:
    return random_like(jax.eval_shape(module.init, jax.random.key(0), x))


def assert_exact(
    function: Callable, params: PyTree, x: Any, smaller: Callable, ratio: float = 0.5
) -> Any:
    """The shallower network has the outputs of the masked one; those before were others."""
    function = jax.jit(function)
    shallower = sparsity.remove_blocks(function, params, x, ratio=ratio)
    expected = function(shallower.masked, x)
    outputs = jax.jit(smaller(shallower))(shallower.params, x)
    chex.assert_trees_all_close(outputs, expected, rtol=2e-4, atol=1e-5)
    before = jax.tree.leaves(function(params, x))[0]
    assert not np.allclose(before, jax.tree.leaves(expected)[0], rtol=1e-3)
    return shallower


class Block(nn.Module):
    @nn.compact
    def __call__(self, x: Array) -> Array:
        y = nn.LayerNorm()(x)
        mask = nn.make_causal_mask(x[..., 0])
        x = x + nn.MultiHeadDotProductAttention(2)(y, y, mask=mask)
        y = nn.gelu(nn.Dense(8)(nn.LayerNorm()(x)))
        return x + nn.Dense(x.shape[-1])(y)


class Transformer(nn.Module):
    depth: int = 4
    loop: bool = False

    @nn.compact
    def __call__(self, tokens: Array) -> Array:
        x = nn.Embed(7, 4)(tokens)
        if self.loop:
            layers = nn.scan(
                lambda block, x, _: (block(x), None),
                variable_axes={"params": 0},
                split_rngs={"params": True},
                length=self.depth,
            )
            x, _ = layers(nn.remat(Block)(name="layers"), x, None)
        else:
            for _ in range(self.depth):
                x = Block()(x)
        return nn.Dense(7)(nn.LayerNorm()(x))


@slow_ids("False-params/Block")
@slow_ids("True-*")
@pytest.mark.parametrize(("loop", "family"), [(False, "params/Block"), (True, "params/layers")])
def test_a_transformer_loses_blocks_or_layers_of_its_loop(loop: bool, family: str) -> None:
    model, tokens = Transformer(loop=loop), np.arange(10).reshape(2, 5) % 7
    variables = new(model, tokens)
    shallower = assert_exact(
        model.apply, variables, tokens, lambda s: Transformer(s.depths[family], loop).apply
    )
    assert dict(shallower.depths) == {family: 2}
    assert len(shallower.removed) == 2
    twice = shallower.shrink(jax.tree.map(lambda leaf: 2 * leaf, variables))
    chex.assert_trees_all_close(twice, jax.tree.map(lambda leaf: 2 * leaf, shallower.params))
    assert "importance" in str(shallower)


class ResidualBlock(nn.Module):
    channels: int
    strides: int = 1

    @nn.compact
    def __call__(self, x: Array) -> Array:
        norm = partial(nn.BatchNorm, use_running_average=True)
        y = nn.relu(norm()(nn.Conv(self.channels, (3, 3), self.strides, use_bias=False)(x)))
        y = norm()(nn.Conv(self.channels, (3, 3), use_bias=False)(y))
        if self.strides > 1:
            x = norm()(nn.Conv(self.channels, (1, 1), self.strides, use_bias=False)(x))
        return nn.relu(x + y)


class ResNet(nn.Module):
    stages: tuple[int, ...] = (2, 2)

    @nn.compact
    def __call__(self, x: Array) -> Array:
        x = nn.relu(nn.Conv(2, (3, 3))(x))
        for stage, blocks in enumerate(self.stages):
            for block in range(blocks):
                x = ResidualBlock(2 << stage, 2 if stage and not block else 1)(x)
        return nn.Dense(3)(x.mean((1, 2)))


@pytest.mark.slow
def test_of_a_residual_network_the_blocks_that_change_its_width_stay() -> None:
    x = np.random.default_rng(1).normal(size=(2, 6, 6, 2)).astype(np.float32)

    def smaller(s: Any) -> Callable:
        numbers = [int(name[-1]) for name in s.removed]
        return ResNet((2 - sum(n < 2 for n in numbers), 2 - sum(n > 2 for n in numbers))).apply

    shallower = assert_exact(ResNet().apply, new(ResNet(), x), x, smaller)
    assert set(shallower.reasons) == {"params/ResidualBlock_2"}
    assert set(shallower.importances) >= {"params/ResidualBlock_0", "params/ResidualBlock_1"}


class Mlp(nnx.Module):
    def __init__(self, rngs: nnx.Rngs) -> None:
        self.norm = nnx.LayerNorm(6, rngs=rngs)
        self.first, self.second = (nnx.Linear(6, 6, rngs=rngs) for _ in range(2))

    def __call__(self, x: Array) -> Array:
        return x + self.second(nnx.relu(self.first(self.norm(x))))


class Chain(nnx.Module):
    def __init__(self, depth: int) -> None:
        rngs = nnx.Rngs(0)
        self.stem, self.head = (nnx.Linear(6, 6, rngs=rngs) for _ in range(2))
        self.blocks = nnx.List([Mlp(rngs) for _ in range(depth)])

    def __call__(self, x: Array) -> Array:
        x = self.stem(x)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


class Layer(eqx.Module):
    linear: eqx.nn.Linear

    def __call__(self, x: Array, key: Array | None = None) -> Array:
        return x + jax.nn.relu(self.linear(x))


@pytest.mark.slow
def test_lists_of_modules_of_nnx_and_equinox() -> None:
    graph, state = nnx.split(Chain(3))
    state = random_like(state)
    shallower = assert_exact(
        lambda p, x: nnx.merge(graph, p)(x),
        state,
        X,
        lambda s: lambda p, x: nnx.merge(nnx.split(Chain(s.depths["blocks"]))[0], p)(x),
        ratio=0.7,
    )
    assert list(shallower.params["blocks"]) == [0]
    keys = jax.random.split(jax.random.key(0), 3)
    layers = [Layer(eqx.nn.Linear(6, 6, key=key)) for key in keys]
    module = eqx.nn.Sequential([*layers, eqx.nn.Linear(6, 2, key=keys[0])])
    params, static = eqx.partition(module, eqx.is_array)

    def smaller(s: Any) -> Callable:
        left = [i for i in range(4) if f"layers/{i}" not in s.removed]
        rest = eqx.nn.Sequential([static.layers[i] for i in left])
        return lambda p, x: jax.vmap(eqx.combine(p, rest))(x)

    assert_exact(lambda p, x: jax.vmap(eqx.combine(p, static))(x), params, X, smaller)


EYE = 0.3 * np.eye(6, dtype=np.float32)
LAYERS = [{name: EYE + np.float32(0.05 * (i + 1)) for name in "wv"} for i in range(4)]
LIST = {"layers": LAYERS}
STACK = {"layers": jax.tree.map(lambda *leaves: np.stack(leaves), *LAYERS), "head": X.T}
NESTED = {"layers": jax.tree.map(lambda x: x.reshape(2, 2, 6, 6), STACK["layers"])}


def change(layer: PyTree, x: Array) -> Array:
    return jax.nn.relu(x @ layer["w"]) @ layer["v"]


def through(step: Callable) -> Callable:
    def function(params: PyTree, x: Array) -> Array:
        for layer in params["layers"]:
            x = step(layer, x)
        return x

    return function


def looped(step: Callable) -> Callable:
    def function(params: PyTree, x: Array) -> Array:
        return (
            jax.lax.scan(lambda x, p: (step(p, x), None), x, params["layers"])[0] @ params["head"]
        )

    return function


def rectified(params: PyTree, x: Array) -> Array:
    return through(lambda p, x: jax.nn.relu(x + change(p, x)))(params, jax.nn.relu(x))


def recurrent(layer: PyTree, x: Array) -> Array:
    def step(h: Array, row: Array) -> tuple[Array, Array]:
        h = jnp.tanh(row @ layer["w"] + h)
        return h, h

    return x + jax.lax.scan(step, jnp.zeros(6), x)[1] @ layer["v"]


def twice(params: PyTree, x: Array) -> Array:
    run = jax.jit(looped(lambda p, x: x + change(p, x)))
    return run(params, run(params, x) @ params["head"].T)


def loop_of_loops(params: PyTree, x: Array) -> Array:
    def outer(x: Array, stack: PyTree) -> tuple[Array, None]:
        return jax.lax.scan(lambda x, p: (x + change(p, x), None), x, stack)[0], None

    return jax.lax.scan(outer, x, params["layers"])[0]


@pytest.mark.parametrize(
    ("function", "params", "left"),
    [
        (through(lambda p, x: x + change(p, x)), LIST, 2),
        (through(lambda p, x: change(p, x) + x), LIST, 2),
        (through(lambda p, x: x - change(p, x)), LIST, 2),
        (through(lambda p, x: x + jax.nn.softmax(x @ p["w"]) @ p["v"]), LIST, 2),
        (through(recurrent), LIST, 2),
        (through(lambda p, x: x + change(p, x / (1 + x.var(1, keepdims=True)))), LIST, 2),
        (rectified, LIST, 2),
        (looped(lambda p, x: x + change(p, x)), STACK, 2),
        (twice, STACK, 2),
        (loop_of_loops, NESTED, 1),
    ],
)
def test_blocks_of_functions_that_read_their_number(
    function: Callable, params: PyTree, left: int
) -> None:
    shallower = assert_exact(function, params, X, lambda _: function)
    assert list(shallower.depths.values()) == [left]


def all_layers(params: PyTree, x: Array) -> Array:
    outputs = []
    for layer in params["layers"]:
        x = x + change(layer, x)
        outputs.append(x)
    return sum(outputs, jnp.zeros(()))


def standardized(layer: PyTree, x: Array) -> Array:
    x = x + change(layer, x)
    return (x - x.mean(-1, keepdims=True)) / (1 + x.std(-1, keepdims=True))


def numbered(params: PyTree, x: Array) -> Array:
    def step(x: Array, layer: PyTree) -> tuple[Array, None]:
        return x + layer[0] * change(layer[1], x), None

    return jax.lax.scan(step, x, (jnp.arange(4.0), params["layers"]))[0]


def collected(params: PyTree, x: Array) -> Array:
    def step(x: Array, layer: PyTree) -> tuple[Array, Array]:
        x = x + change(layer, x)
        return x, x

    return jax.lax.scan(step, x, params["layers"])[1]


def penalized(params: PyTree, x: Array) -> Array:
    return looped(lambda p, x: x + change(p, x))(params, x) + (params["layers"]["w"] ** 2).sum()


def turned(params: PyTree, x: Array) -> Array:
    layers = {**params["layers"], "w": jnp.swapaxes(params["layers"]["w"], 1, 2)[::-1]}
    return looped(lambda p, x: x + change(p, x))({**params, "layers": layers}, x)


def unit(layer: PyTree, x: Array) -> Array:
    y = change(layer, x)
    return x + y * jax.lax.rsqrt((y**2).sum())


def unit_ratio(layer: PyTree, x: Array) -> Array:
    y = change(layer, x)
    return x + y / jnp.sqrt((y**2).sum())


CHANGES = "with its parameters at 0, the network is not the one without it"
BEGINS = "no part like it is seen to go on with what it was given"
ELSEWHERE = "is also read elsewhere"


@pytest.mark.parametrize(
    ("function", "params", "reason"),
    [
        (through(change), LIST, CHANGES),
        (through(lambda p, x: x * jax.nn.sigmoid(x @ p["w"]) + x @ p["v"]), LIST, CHANGES),
        (through(lambda p, x: change(p, x) - x), LIST, CHANGES),
        (through(lambda p, x: x / 2 + change(p, x)), LIST, BEGINS),
        (through(lambda p, x: jnp.tanh(x + change(p, x))), LIST, BEGINS),
        (through(standardized), LIST, BEGINS),
        (through(unit), LIST, CHANGES),
        (through(unit_ratio), LIST, CHANGES),
        (all_layers, LIST, ELSEWHERE),
        (looped(change), STACK, CHANGES),
        (looped(lambda p, x: jnp.tanh(x + change(p, x))), STACK, CHANGES),
        (numbered, STACK, "read more than their parameters"),
        (collected, STACK, "the loop collects what its passes return"),
        (penalized, STACK, "also read outside of the loop"),
        (turned, STACK, "read more than their parameters"),
        (lambda p, x: x @ p["head"], STACK, "no numbered subtrees"),
    ],
)
def test_what_is_no_block_is_refused_by_name(
    function: Callable, params: PyTree, reason: str
) -> None:
    with pytest.raises(ConfigError, match=reason):
        sparsity.remove_blocks(function, params, X, ratio=0.5)


def test_the_least_important_blocks_go_and_one_is_left() -> None:
    function = through(lambda p, x: x + change(p, x))
    scales = [1.0, 0.01, 2.0, 0.1]
    layers = [jax.tree.map(lambda w, s=s: s * w, LAYERS[0]) for s in scales]  # type: ignore[misc]
    params = {"layers": layers}
    by_outputs = sparsity.remove_blocks(function, params, X, ratio=0.5)
    gradients = jax.grad(lambda p: function(p, X).sum())(params)
    by_terms = sparsity.remove_blocks(function, params, X, ratio=0.99, importance=gradients)
    assert by_outputs.removed == ("layers/1", "layers/3")
    assert by_terms.removed == ("layers/0", "layers/1", "layers/3")
    chex.assert_trees_all_equal(by_outputs.params, {"layers": [layers[0], layers[2]]})


def test_blocks_in_a_dict_with_a_default() -> None:
    params = defaultdict(dict, {f"layer_{number}": layer for number, layer in enumerate(LAYERS)})
    function = through(lambda p, x: x + change(p, x))
    shallower = sparsity.remove_blocks(
        lambda p, x: function({"layers": list(p.values())}, x), params, X, ratio=0.5
    )
    assert isinstance(shallower.params, defaultdict) and len(shallower.params) < len(LAYERS)


def test_statistics_that_some_blocks_lack_stay_with_their_blocks() -> None:
    """Blocks 0 and 2 have statistics, and block 0 is removed."""

    def function(v: PyTree, x: Array) -> Array:
        for name, w in v["params"].items():
            shift = v["batch_stats"].get(name, jnp.zeros(6))
            x = x + jax.nn.relu(x @ w - shift) @ w
        return x

    weights = (
        jax.random.normal(jax.random.key(0), (3, 6, 6)) * jnp.array([0.01, 1, 1])[:, None, None]
    )
    params = {f"Block_{n}": w for n, w in enumerate(weights)}
    stats = {"Block_0": jnp.zeros(6), "Block_2": jnp.arange(6.0)}
    variables = {"params": params, "batch_stats": stats}
    shallower = sparsity.remove_blocks(function, variables, X, ratio=0.34)
    assert shallower.removed == ("params/Block_0",)
    expected = {"batch_stats": {"Block_1": stats["Block_2"]}}
    expected["params"] = {"Block_0": weights[1], "Block_1": weights[2]}
    chex.assert_trees_all_equal(shallower.params, expected)
    chex.assert_trees_all_equal(shallower.shrink(variables), expected)


def test_loops_over_stacks_without_a_common_path_have_names_of_their_own() -> None:
    def step(x: Array, layer: tuple) -> tuple[Array, None]:
        return x + jax.nn.relu(x @ layer[0] + layer[1]) @ layer[0], None

    def function(p: PyTree, x: Array) -> Array:
        x = jax.lax.scan(step, x, (p["w"], p["b"]))[0]
        return jax.lax.scan(step, x, (p["v"], p["c"]))[0]

    w = jax.random.normal(jax.random.key(0), (4, 6, 6))
    params = {"w": w / 99, "b": jnp.ones((4, 6)), "v": w, "c": jnp.ones((4, 6))}
    shallower = sparsity.remove_blocks(function, params, X, ratio=0.5)
    assert sorted(shallower.depths.values()) == [1, 3] and len(shallower.importances) == 8
    assert {path: len(leaf) for path, leaf in shallower.params.items()} == dict(w=1, b=1, v=3, c=3)


def test_a_jitted_loop_may_run_twice_with_stacks_of_its_own() -> None:
    @jax.jit
    def run(stack: Array, x: Array) -> Array:
        return jax.lax.scan(lambda c, w: (c + jnp.tanh(c) @ w, None), x, stack)[0]

    a, b = jax.random.normal(jax.random.key(0), (2, 4, 6, 6))
    params = {"a": a / 99, "b": b}
    shallower = sparsity.remove_blocks(
        lambda p, x: run(p["b"], run(p["a"], x)), params, X, ratio=0.5
    )
    assert shallower.depths == {"a": 1, "b": 3}


def test_functions_that_hold_the_number_of_blocks_are_told_of() -> None:
    def function(params: PyTree, x: Array) -> Array:
        return through(lambda p, x: x + change(p, x) / len(params["layers"]))(params, x)

    with pytest.warns(FixedLengthWarning, match="2 of layers"):
        sparsity.remove_blocks(function, LIST, X, ratio=0.5)


def test_wrong_arguments_are_named() -> None:
    function = through(lambda p, x: x + change(p, x))
    remove = partial(sparsity.remove_blocks, function, LIST)
    with pytest.raises(ConfigError, match="ratio"):
        remove(X, ratio=1.5)
    with pytest.raises(ConfigError, match="'outputs', or gradients"):
        remove(X, ratio=0.5, importance="size")
    with pytest.raises(ConfigError, match="rows of data"):
        remove(jax.ShapeDtypeStruct(X.shape, X.dtype), ratio=0.5)
    with pytest.raises(ConfigError, match="all outputs are integers"):
        sparsity.remove_blocks(lambda p, x: function(p, x).argmax(-1), LIST, X, ratio=0.5)
    with pytest.raises(ConfigError, match="the gradients"):
        remove(X, ratio=0.5, importance={"layers": LAYERS[:2]})
    with pytest.raises(ConfigError, match="the tree"):
        remove(X, ratio=0.5).shrink({"layers": LAYERS[:2]})
