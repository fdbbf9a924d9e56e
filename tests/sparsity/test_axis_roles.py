"""The roles of axes, as read from the programs of small networks of every kind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen as nn
from flax import nnx

from fsjax.sparsity import axes
from fsjax.sparsity.axis_roles import ParameterAxes

ROWS = jnp.ones((2, 7, 32))


def uses_of(function: Callable, params: Any, *inputs: Any) -> dict[str, Any]:
    """The roles of kernels and the uses of other parameters, by path."""
    by_path = axes(function, params, *inputs)
    return {path: of.roles if of.use == "kernel" else of.use for path, of in by_path.items()}


def linen(module: nn.Module, *inputs: Any) -> dict[str, Any]:
    """The same of a module of Flax, without the collection in the paths."""
    variables = jax.eval_shape(lambda *arrays: module.init(jax.random.key(0), *arrays), *inputs)
    mutable = [name for name in variables if name != "params"]

    def apply(variables: Any, *arrays: Any) -> Any:
        return module.apply(variables, *arrays, mutable=mutable)

    uses = uses_of(apply, variables, *inputs)
    return {path.partition("/")[2]: use for path, use in uses.items() if path[:6] == "params"}


class Block(nn.Module):
    @nn.compact
    def __call__(self, x, _=None):
        y = nn.LayerNorm(name="norm")(x)
        x = x + nn.MultiHeadDotProductAttention(4, name="attention")(y, y)
        return x + nn.Dense(32, name="dense")(nn.gelu(nn.RMSNorm(name="rms")(x))), None


BLOCK = {
    "norm/scale": "elementwise",
    "rms/scale": "elementwise",
    "attention/query/kernel": ("in", "out", "out"),
    "attention/key/kernel": ("in", "out", "out"),
    "attention/value/kernel": ("in", "out", "out"),
    "attention/out/kernel": ("in", "in", "out"),
    "dense/kernel": ("in", "out"),
}


class Transformer(nn.Module):
    """Blocks in a scan, below embeddings, positions and a class token."""

    checkpoint: bool = False

    @nn.compact
    def __call__(self, words):
        normal = nn.initializers.normal()
        x = nn.Embed(20, 32, name="embed")(words) + self.param("pos", normal, (1, 6, 32))
        token = jnp.tile(self.param("token", normal, (1, 1, 32)), (x.shape[0], 1, 1))
        block = nn.remat(Block) if self.checkpoint else Block
        scanned = nn.scan(
            block, variable_axes={"params": 0}, split_rngs={"params": True}, length=3
        )(name="blocks")
        x, _ = scanned(jnp.concatenate([token, x], axis=1), None)
        return nn.Dense(10, name="head")(x[:, 0])


class Convolutions(nn.Module):
    @nn.compact
    def __call__(self, x):
        x = nn.BatchNorm(use_running_average=False, name="norm")(nn.Conv(8, (3, 3), name="a")(x))
        x = nn.Conv(8, (3, 3), feature_group_count=8, name="depthwise")(nn.relu(x))
        x = nn.GroupNorm(4, name="groups")(nn.Conv(16, (1, 1), name="pointwise")(x))
        x = nn.ConvTranspose(4, (2, 2), strides=(2, 2), name="up")(x)
        x = nn.avg_pool(x, (2, 2), (2, 2)).reshape(x.shape[0], -1)
        return nn.Dense(1, name="head")(nn.PReLU(name="prelu")(x))


class Recurrent(nn.Module):
    @nn.compact
    def __call__(self, x):
        x = nn.RNN(nn.LSTMCell(16, name="lstm"))(x)
        return nn.Conv(5, (3,), name="conv")(nn.RNN(nn.GRUCell(8, name="gru"))(x))


class Mixer(nn.Module):
    @nn.compact
    def __call__(self, x):
        y = nn.Dense(7, name="tokens")(jnp.swapaxes(x, 1, 2))
        return nn.DenseGeneral((3, 5), name="general")(x + jnp.swapaxes(y, 1, 2))


class Normalised(nn.Module):
    @nn.compact
    def __call__(self, x):
        x = nn.SpectralNorm(nn.Dense(9, name="spectral"))(x, update_stats=False)
        return nn.WeightNorm(nn.Dense(5, name="weight"))(x)


class Tied(nn.Module):
    @nn.compact
    def __call__(self, words):
        embed = nn.Embed(20, 32, name="embed")
        return embed.attend(nn.Dense(32, name="dense")(embed(words)))


WORDS = jnp.ones((2, 6), int)

LINEN: dict[str, tuple[nn.Module, Any, dict[str, Any]]] = {
    "attention": (Block(), ROWS, BLOCK),
    "scan": (
        Transformer(),
        WORDS,
        {
            "embed/embedding": "lookup",
            "pos": "elementwise",
            "token": "elementwise",
            "head/kernel": ("in", "out"),
            **{
                f"blocks/{path}": use if use == "elementwise" else ("stack", *use)
                for path, use in BLOCK.items()
            },
        },
    ),
    "scan with checkpoints": (
        Transformer(checkpoint=True),
        WORDS,
        {"blocks/attention/out/kernel": ("stack", "in", "in", "out")},
    ),
    "convolutions": (
        Convolutions(),
        jnp.ones((2, 8, 8, 1)),
        {
            "a/kernel": ("spatial", "spatial", "in", "out"),
            "depthwise/kernel": ("spatial", "spatial", "in", "out"),
            "pointwise/kernel": ("one", "one", "in", "out"),
            "up/kernel": ("spatial", "spatial", "in", "out"),
            "head/kernel": ("in", "out"),
            "head/bias": "elementwise",
            "norm/scale": "elementwise",
            "groups/scale": "elementwise",
            "prelu/negative_slope": "elementwise",
        },
    ),
    "recurrent": (
        Recurrent(),
        ROWS,
        {
            "lstm/hf/kernel": ("in", "out"),
            "lstm/ii/kernel": ("in", "out"),
            "gru/hn/kernel": ("in", "out"),
            "conv/kernel": ("spatial", "in", "out"),
        },
    ),
    "mixer": (
        Mixer(),
        ROWS,
        {"tokens/kernel": ("in", "out"), "general/kernel": ("in", "out", "out")},
    ),
    "normalised weights": (
        Normalised(),
        ROWS,
        {"spectral/kernel": ("in", "out"), "weight/kernel": ("in", "out")},
    ),
    "tied embedding": (
        Tied(),
        WORDS,
        {"embed/embedding": "other", "dense/kernel": ("in", "out")},
    ),
}


@pytest.mark.parametrize("name", LINEN)
def test_modules_of_flax(name: str) -> None:
    module, inputs, expected = LINEN[name]
    uses = linen(module, inputs)
    assert {path: uses[path] for path in expected} == expected
    assert all(use == "elementwise" for path, use in uses.items() if path.endswith("bias"))


def low_rank(params, x):
    return x @ (params["w"] + 0.5 * params["a"] @ params["b"])


def unrolled(params, x):
    for number in range(3):
        x = jnp.tanh(x @ params["w"][number]) * params["scale"][number]
    return x


def listed(params, x):
    first, second, third = jnp.unstack(params["w"])
    return jnp.einsum("btd,kde->kbte", x @ first, jnp.stack([second, third])) * params["scale"][1]


def counted(params, x):
    def layer(number, x):
        return jnp.tanh(x @ params["w"][number]) * params["scale"][number]

    return jax.lax.fori_loop(0, 3, layer, x)


def fused(params, x):
    query, key, value = jnp.split(x @ params["joint"], 3, axis=-1)
    first, second = jnp.split(params["cut"], [32], axis=1)
    return query + key + value + x @ first + (x @ second)[..., :32]


def experts(params, x):
    gates = jax.nn.softmax(x @ params["gate"])
    return jnp.einsum("bte,btd,edo->bto", gates, x, params["experts"])


def standardised(params, x):
    kernel = params["w"]
    kernel = (kernel - kernel.mean((0, 1, 2))) / kernel.std((0, 1, 2))
    numbers = ("NHWC", "HWIO", "NHWC")
    return jax.lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=numbers)


def gated(params, x):
    return jnp.where(params["open"] > 0, params["w"], 0).T @ x


STACK = {"w": (3, 32, 32), "scale": (3, 32)}
STACKED = {"w": ("stack", "in", "out"), "scale": "elementwise"}

FUNCTIONS: dict[str, tuple[Callable, dict[str, tuple[int, ...]], Any, dict[str, Any]]] = {
    "low rank": (
        low_rank,
        {"w": (32, 10), "a": (32, 4), "b": (4, 10)},
        ROWS,
        dict.fromkeys("wab", ("in", "out")),
    ),
    "unrolled layers": (unrolled, STACK, ROWS, STACKED),
    "layers of a list": (listed, STACK, ROWS, STACKED),
    "layers of a loop": (counted, STACK, ROWS, STACKED),
    "fused and cut kernels": (
        fused,
        {"joint": (32, 96), "cut": (32, 96)},
        ROWS,
        dict.fromkeys(("joint", "cut"), ("in", "out")),
    ),
    "experts": (
        experts,
        {"gate": (32, 4), "experts": (4, 32, 6)},
        ROWS,
        {"gate": ("in", "out"), "experts": ("out", "in", "out")},
    ),
    "standardised": (
        standardised,
        {"w": (3, 3, 4, 8)},
        jnp.ones((2, 5, 5, 4)),
        {"w": ("spatial", "spatial", "in", "out")},
    ),
    "gates among the parameters": (
        gated,
        {"w": (32, 5), "open": (32, 5)},
        ROWS[0].T,
        {"w": ("in", "out"), "open": "elementwise"},
    ),
    "reshaped": (
        lambda params, x: x @ params["w"].reshape(32, 12),
        {"w": (32, 3, 4)},
        ROWS,
        {"w": ("in", "out", "out")},
    ),
    "a mean product of one input": (
        lambda params, x: x[..., :1] @ params["w"] * params["v"],
        {"w": (1, 32), "v": (1, 32)},
        ROWS,
        {"w": ("in", "out"), "v": "elementwise"},
    ),
    "bfloat16": (
        lambda params, x: x.astype(jnp.bfloat16) @ params["w"].astype(jnp.bfloat16),
        {"w": (32, 5)},
        ROWS,
        {"w": ("in", "out")},
    ),
    "a sorted kernel": (
        lambda params, x: x @ jnp.sort(params["w"]),
        {"w": (32, 5)},
        ROWS,
        {"w": "other"},
    ),
    "no use": (lambda params, x: x, {"w": (32, 5)}, ROWS, {"w": "unused"}),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name: str) -> None:
    function, shapes, inputs, expected = FUNCTIONS[name]
    params = {path: jnp.ones(shape) for path, shape in shapes.items()}
    assert uses_of(function, params, inputs) == expected


def test_rows_looked_up_by_an_input() -> None:
    uses = uses_of(lambda params, row: params["w"][row], {"w": jnp.ones((8, 3))}, jnp.array(1))
    assert uses == {"w": "lookup"}


class Equinox(eqx.Module):
    conv: eqx.nn.Conv2d
    norm: eqx.nn.LayerNorm
    attention: eqx.nn.MultiheadAttention
    linear: eqx.nn.Linear

    def __init__(self) -> None:
        keys = jax.random.split(jax.random.key(0), 3)
        self.conv = eqx.nn.Conv2d(3, 8, 3, padding=1, key=keys[0])
        self.norm = eqx.nn.LayerNorm((16, 8))
        self.attention = eqx.nn.MultiheadAttention(2, 8, key=keys[1])
        self.linear = eqx.nn.Linear(8, 5, key=keys[2])

    def __call__(self, x):
        y = self.norm(self.conv(x).reshape(8, -1).T)
        return jax.vmap(self.linear)(self.attention(y, y, y))


def test_modules_of_equinox() -> None:
    params, static = eqx.partition(Equinox(), eqx.is_array)

    def apply(params, x):
        return jax.vmap(eqx.combine(params, static))(x)

    uses = uses_of(apply, params, jnp.ones((2, 3, 4, 4)))
    assert uses["conv/weight"] == ("out", "in", "spatial", "spatial")
    assert uses["norm/weight"] == "elementwise"  # of two axes
    assert uses["attention/query_proj/weight"] == uses["linear/weight"] == ("out", "in")


class Layer(nnx.Module):
    def __init__(self, rngs: nnx.Rngs) -> None:
        self.linear = nnx.Linear(32, 32, rngs=rngs)
        self.norm = nnx.LayerNorm(32, rngs=rngs)

    def __call__(self, x):
        return self.linear(self.norm(x))


class Stacked(nnx.Module):
    def __init__(self, rngs: nnx.Rngs) -> None:
        @nnx.split_rngs(splits=3)
        @nnx.vmap(in_axes=0, out_axes=0)
        def create(rngs: nnx.Rngs) -> Layer:
            return Layer(rngs)

        self.layers = create(rngs)

    def __call__(self, x):
        @nnx.scan(in_axes=(0, nnx.Carry), out_axes=nnx.Carry)
        def run(layer, x):
            return layer(x)

        return run(self.layers, x)


def test_a_scan_of_nnx() -> None:
    graph, state = nnx.split(Stacked(nnx.Rngs(0)))
    uses = uses_of(lambda state, x: nnx.merge(graph, state)(x), state, ROWS)
    assert uses["layers/linear/kernel/value"] == ("stack", "in", "out")
    assert uses["layers/norm/scale/value"] == "elementwise"


def test_the_reason_names_what_is_not_read() -> None:
    uses = axes(lambda params, x: x @ jnp.sort(params["w"]), {"w": jnp.ones((32, 5))}, ROWS)
    assert uses == {"w": ParameterAxes("other", reason="the operation sort uses it")}


def test_a_projection_of_a_parameter_that_meets_activations_is_not_turned_around() -> None:
    """As the query of attention pooling, whose products with the keys are along its outputs."""

    def pooled(params: Any, x: jax.Array) -> jax.Array:
        query = jnp.einsum("i,ihd->hd", params["probe"], params["query"]) + params["bias"]
        return jnp.einsum("bthd,hd->bth", x, query)

    params = {"probe": jnp.ones(6), "query": jnp.ones((6, 2, 4)), "bias": jnp.ones((2, 4))}
    found = axes(pooled, params, jnp.ones((3, 5, 2, 4)))
    assert found["query"].use == found["bias"].use == "other"
    assert "no axis of outputs" in found["query"].reason


def test_kernels_are_followed_as_the_products_use_them() -> None:
    """A product along the axes that are called inputs, written out, gives the same outputs."""
    params = {"w": jax.random.normal(jax.random.key(0), (4, 8, 5, 3))}
    x = jax.random.normal(jax.random.key(1), (2, 8, 3))
    function = jax.jit(lambda params, x: jnp.einsum("bio,hiko->bhk", x, params["w"]))
    roles = axes(function, params, x)["w"].roles
    assert roles == ("out", "in", "out", "in")
    inputs = [axis for axis, role in enumerate(roles) if role == "in"]
    outputs = [axis for axis, role in enumerate(roles) if role == "out"]
    matrix = np.transpose(params["w"], (*inputs, *outputs)).reshape(24, 20)
    expected = (np.asarray(x).reshape(2, 24) @ matrix).reshape(2, 4, 5)
    np.testing.assert_allclose(expected, function(params, x), rtol=1e-4)
