"""The roles of axes in a table of networks: each parameter's are right, or it is named as not read.

``tests/sparsity/test_axis_roles.py`` has the operations one by one, and the scans of Flax.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import pytest
from flax import linen as nn

from fsjax.sparsity import axes

IO = ("in", "out")
CONVOLUTION = ("spatial", "spatial", "in", "out")
ROWS = jax.ShapeDtypeStruct((2, 7, 32), jnp.float32)
IMAGES = jax.ShapeDtypeStruct((2, 8, 8, 3), jnp.float32)
WORDS = jax.ShapeDtypeStruct((2, 6), jnp.int32)


def uses_of(function: Callable, params: Any, *inputs: Any) -> dict[str, Any]:
    """The roles of kernels and the uses of other parameters, by path; "other" has its reason."""
    by_path = axes(function, params, *inputs)
    assert all(bool(of.reason) == (of.use == "other") for of in by_path.values())
    return {path: of.roles if of.use == "kernel" else of.use for path, of in by_path.items()}


class LeNet(nn.Module):
    @nn.compact
    def __call__(self, x):
        x = nn.max_pool(nn.relu(nn.Conv(6, (5, 5))(x)), (2, 2), (2, 2))
        x = nn.relu(nn.Dense(12)(x.reshape(x.shape[0], -1)))
        return nn.log_softmax(nn.Dense(10)(x))


class Residual(nn.Module):
    @nn.compact
    def __call__(self, x):
        x = nn.relu(nn.BatchNorm(use_running_average=False)(nn.Conv(8, (3, 3))(x)))
        y = nn.Conv(8, (3, 3), feature_group_count=4, use_bias=False)(x)
        x = nn.relu(x + nn.BatchNorm(use_running_average=False)(y))
        x = nn.ConvTranspose(4, (3, 3), strides=(2, 2), transpose_kernel=True)(x)
        return nn.Dense(5)(x.mean((1, 2)))


class ViT(nn.Module):
    @nn.compact
    def __call__(self, x):
        x = nn.Conv(16, (4, 4), strides=(4, 4), name="patches")(x)
        x = x.reshape(x.shape[0], -1, 16)
        token = self.param("cls", nn.initializers.zeros, (1, 1, 16))
        x = jnp.concatenate([jnp.tile(token, (x.shape[0], 1, 1)), x], axis=1)
        x = x + self.param("pos_embedding", nn.initializers.normal(), (1, 5, 16))
        y = nn.LayerNorm()(x)
        x = x + nn.MultiHeadDotProductAttention(2, name="attention")(y, y)
        x = x + nn.Dense(16)(nn.gelu(nn.Dense(64)(nn.LayerNorm()(x))))
        return nn.Dense(10, name="head")(x[:, 0])


class MixerBlock(nn.Module):
    @nn.compact
    def __call__(self, x):
        y = jnp.swapaxes(nn.LayerNorm()(x), 1, 2)
        y = nn.Dense(7, name="tokens2")(nn.gelu(nn.Dense(9, name="tokens1")(y)))
        x = x + jnp.swapaxes(y, 1, 2)
        return x + nn.Dense(32, name="channels")(nn.LayerNorm()(x))


LINEN: dict[str, tuple[nn.Module, Any, dict[str, Any]]] = {
    "LeNet": (LeNet(), IMAGES, {"Conv": CONVOLUTION, "Dense": IO}),
    # A kernel of ConvTranspose with transpose_kernel has its outputs before its inputs.
    "ResNet with grouped and transposed convolutions": (
        Residual(),
        IMAGES,
        {
            "Conv_": CONVOLUTION,
            "ConvTranspose": ("spatial", "spatial", "out", "in"),
            "Dense": IO,
        },
    ),
    "ViT": (
        ViT(),
        IMAGES,
        {
            "patches": CONVOLUTION,
            "attention/out": ("in", "in", "out"),
            "attention": ("in", "out", "out"),
            "Dense": IO,
            "head": IO,
        },
    ),
    "MLP-mixer": (MixerBlock(), ROWS, {"tokens": IO, "channels": IO}),
}


@pytest.mark.parametrize("name", LINEN)
def test_networks_of_flax(name: str) -> None:
    module, inputs, kernels = LINEN[name]
    variables = jax.eval_shape(lambda x: module.init(jax.random.key(0), x), inputs)
    mutable = [collection for collection in variables if collection != "params"]
    uses = uses_of(lambda v, x: module.apply(v, x, mutable=mutable), variables, inputs)
    for path, use in uses.items():
        collection, _, rest = path.partition("/")
        if collection == "params":
            prefix = next((p for p in kernels if rest.startswith(p)), None)
            is_kernel = rest.endswith("kernel")
            assert use == (kernels[prefix] if is_kernel and prefix else "elementwise"), path


def mlp(p, x):
    return jax.nn.softmax(jax.nn.relu(x @ p["a"] + p["b"]) @ p["c"])


def gpt(p, x):
    """A causal block by einsum, with rotary positions."""
    q, k, v = (jnp.einsum("btd,dhk->bthk", x, p[name]) for name in "qkv")
    angle = jnp.arange(7)[:, None] / 10.0 ** jnp.arange(4)
    cos, sin = jnp.cos(angle)[:, None], jnp.sin(angle)[:, None]
    q, k = (
        jnp.concatenate([a * cos - b * sin, a * sin + b * cos], -1)
        for a, b in (jnp.split(y, 2, -1) for y in (q, k))
    )
    scores = jnp.where(jnp.tri(7, dtype=bool), jnp.einsum("bthk,bshk->bhts", q, k), -1e9)
    y = jnp.einsum("bhts,bshk->bthk", jax.nn.softmax(scores), v)
    return x + jnp.einsum("bthk,hkd->btd", y, p["o"])


def reshaped(p, x):
    q, k, v = ((x @ p[name]).reshape(2, 7, 4, 8).swapaxes(1, 2) for name in "qkv")
    y = jax.nn.softmax(q @ k.swapaxes(2, 3)) @ v
    return y.swapaxes(1, 2).reshape(2, 7, 32) @ p["o"]


def fused(p, x):
    q, k, v = jnp.moveaxis((x @ p["qkv"]).reshape(2, 7, 3, 4, 8), 2, 0)
    return jax.nn.dot_product_attention(q, k, v).reshape(2, 7, 32) @ p["o"]


def multi_query(p, x):
    q = jnp.einsum("btd,dhk->bthk", x, p["q"])
    k, v = jnp.split(x @ p["kv"], 2, axis=-1)
    y = jnp.einsum("bhts,bsk->bthk", jax.nn.softmax(jnp.einsum("bthk,bsk->bhts", q, k)), v)
    return jnp.einsum("bthk,hkd->btd", y, p["o"])


def glu(p, x):
    gate, value = jnp.split(x @ p["up"], 2, axis=-1)
    return (jax.nn.silu(gate) * value) @ p["down"] * p["scale"]


def lora(p, x):
    return x @ (jax.lax.stop_gradient(p["w"]) + p["a"] @ p["b"]) + (x @ p["a2"]) @ p["b2"]


def tied(p, words):
    return (p["table"][words] @ p["w"]) @ p["table"].T


def lstm(p, x):
    def cell(carry, x):
        h, c = carry
        i, f, g, o = jnp.split(x @ p["x"] + h @ p["h"] + p["b"], 4, axis=-1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), h

    start = jnp.zeros((2, 8)), jnp.zeros((2, 8))
    return jax.lax.scan(cell, start, x.swapaxes(0, 1))[1]


def gru(p, x):
    def cell(h, x):
        r, z = jnp.split(jax.nn.sigmoid(x @ p["x"] + h @ p["h"]), 2, axis=-1)
        return (1 - z) * h + z * jnp.tanh(x @ p["n"] + (r * h) @ p["m"]), None

    return jax.lax.scan(cell, jnp.zeros((2, 8)), x.swapaxes(0, 1))[0]


def low_rank(p, x):
    return x @ (p["a"] @ p["b"])


def chained(p, x):
    """Three factors, the middle one diagonal, as in a singular value decomposition."""
    return x @ ((p["a"] * p["s"]) @ p["b"])


def experts(p, x):
    gates = jax.nn.softmax(x @ p["gate"])
    hidden = jax.nn.relu(jnp.einsum("btd,edh->bteh", x, p["up"]))
    return jnp.einsum("bte,bteh,ehd->btd", gates, hidden, p["down"])


def fourier(p, x):
    y = jnp.fft.rfft(x, axis=1)
    return jnp.fft.irfft(jnp.einsum("bfi,fio->bfo", y, p["w"]), n=7, axis=1)


def fourier_of_kernel(p, x):
    return jnp.fft.irfft(jnp.fft.rfft(x, axis=1) * jnp.fft.rfft(p["w"], axis=0), n=7, axis=1)


def hypernetwork(p, x):
    kernel = (jnp.tanh(x.mean((0, 1)) @ p["w"])).reshape(32, 3)
    return x @ kernel


def hypernetwork_of_codes(p, x):
    return x @ jnp.tanh(p["code"] @ p["w"]).reshape(32, 3)


def embedding_bag(p, words):
    return p["table"][words].mean(axis=1) @ p["w"]


def weight_norm(p, x):
    return x @ (p["g"] * p["v"] / jnp.linalg.norm(p["v"], axis=0))


def fixed_point(p, x):
    def step(state):
        z, number = state
        return jnp.tanh(z @ p["w"] + x @ p["u"]), number + 1

    start = jnp.zeros((2, 7, 5)), 0
    return jax.lax.while_loop(lambda state: state[1] < 4, step, start)[0]


@jax.custom_vjp
def straight(x):
    return jnp.sign(x)


straight.defvjp(lambda x: (jnp.sign(x), None), lambda _, g: (g,))


def binarised(p, x):
    return straight(x) @ straight(p["w"])


@jax.custom_vjp
def dense(w, x):
    return x @ w


dense.defvjp(lambda w, x: (x @ w, (w, x)), lambda kept, g: (kept[1].T @ g, g @ kept[0].T))


def checkpointed(p, x):
    return jax.checkpoint(lambda x: jnp.tanh(x @ p["a"]) @ p["c"])(x)


def mapped(p, x):
    """An ensemble: vmap over stacked networks."""
    return jax.vmap(lambda a, c: jnp.tanh(x @ a) @ c)(p["a"], p["c"])


def grouped_product(p, x):
    """A block-diagonal layer."""
    return jnp.einsum("btgi,gio->btgo", x.reshape(2, 7, 4, 8), p["w"]).reshape(2, 7, 32)


def bilinear(p, x):
    return jnp.einsum("bti,ijo,btj->bto", x, p["w"], x)


def convolution_in_time(p, x):
    numbers = ("NHC", "HIO", "NHC")
    return jax.lax.conv_general_dilated(x, p["w"], (1,), [(2, 0)], dimension_numbers=numbers)


def depthwise_by_hand(p, x):
    return sum(jnp.roll(x, shift, axis=1) * p["w"][shift] for shift in range(3))


def sampled_branch(p, x):
    return jax.lax.cond(x.sum() > 0, lambda: x @ p["a"], lambda: x @ p["c"].T)


def normalised_by_row(p, x):
    return x @ (p["w"] / jnp.sqrt((p["w"] ** 2).sum(0, keepdims=True) + 1e-6))


HEADS = {name: (32, 4, 8) for name in "qkv"} | {"o": (4, 8, 32)}
HEAD_ROLES = {name: ("in", "out", "out") for name in "qkv"} | {"o": ("in", "in", "out")}
SQUARES = dict.fromkeys("qkvo", (32, 32))

Shapes = dict[str, tuple[int, ...]]

FUNCTIONS: dict[str, tuple[Callable, Shapes, Any, dict[str, Any]]] = {
    "MLP": (
        mlp,
        {"a": (32, 6), "b": (6,), "c": (6, 3)},
        ROWS,
        {"a": IO, "b": "elementwise", "c": IO},
    ),
    "GPT block by einsum": (gpt, HEADS, ROWS, HEAD_ROLES),
    "attention by reshape": (reshaped, SQUARES, ROWS, dict.fromkeys("qkvo", IO)),
    "fused qkv": (fused, {"qkv": (32, 96), "o": (32, 32)}, ROWS, {"qkv": IO, "o": IO}),
    "multi-query attention": (
        multi_query,
        {"q": (32, 4, 8), "kv": (32, 16), "o": (4, 8, 32)},
        ROWS,
        {"q": ("in", "out", "out"), "kv": IO, "o": ("in", "in", "out")},
    ),
    "GLU": (
        glu,
        {"up": (32, 96), "down": (48, 32), "scale": (32,)},
        ROWS,
        {"up": IO, "down": IO, "scale": "elementwise"},
    ),
    "LoRA": (
        lora,
        {"w": (32, 6), "a": (32, 2), "b": (2, 6), "a2": (32, 2), "b2": (2, 6)},
        ROWS,
        dict.fromkeys(("w", "a", "b", "a2", "b2"), IO),
    ),
    "tied embedding": (tied, {"table": (20, 8), "w": (8, 8)}, WORDS, {"table": "other", "w": IO}),
    "LSTM in a scan": (
        lstm,
        {"x": (32, 32), "h": (8, 32), "b": (32,)},
        ROWS,
        {"x": IO, "h": IO, "b": "elementwise"},
    ),
    "GRU in a scan": (
        gru,
        {"x": (32, 16), "h": (8, 16), "n": (32, 8), "m": (8, 8)},
        ROWS,
        dict.fromkeys("xhnm", IO),
    ),
    "low rank": (low_rank, {"a": (32, 2), "b": (2, 6)}, ROWS, dict.fromkeys("ab", IO)),
    "three factors": (
        chained,
        {"a": (32, 2), "s": (2,), "b": (2, 6)},
        ROWS,
        {"a": IO, "s": "elementwise", "b": IO},
    ),
    "experts": (
        experts,
        {"gate": (32, 4), "up": (4, 32, 6), "down": (4, 6, 32)},
        ROWS,
        {"gate": IO, "up": ("out", "in", "out"), "down": ("in", "in", "out")},
    ),
    "FFT layer": (fourier, {"w": (4, 32, 5)}, ROWS, {"w": ("stack", "in", "out")}),
    "FFT of a kernel": (fourier_of_kernel, {"w": (7, 32)}, ROWS, {"w": "other"}),
    "hypernetwork": (hypernetwork, {"w": (32, 96)}, ROWS, {"w": IO}),
    "hypernetwork of codes": (
        hypernetwork_of_codes,
        {"code": (4,), "w": (4, 96)},
        ROWS,
        {"code": "elementwise", "w": "other"},
    ),
    "embedding bag": (
        embedding_bag,
        {"table": (20, 8), "w": (8, 3)},
        WORDS,
        {"table": "lookup", "w": IO},
    ),
    "weight norm": (
        weight_norm,
        {"g": (6,), "v": (32, 6)},
        ROWS,
        {"g": "elementwise", "v": IO},
    ),
    "while loop": (fixed_point, {"w": (5, 5), "u": (32, 5)}, ROWS, {"w": IO, "u": IO}),
    "custom_vjp of weights": (binarised, {"w": (32, 6)}, ROWS, {"w": IO}),
    "custom_vjp of a product": (
        lambda p, x: dense(p["w"], x),
        {"w": (32, 6)},
        ROWS,
        {"w": IO},
    ),
    "remat": (checkpointed, {"a": (32, 6), "c": (6, 3)}, ROWS, {"a": IO, "c": IO}),
    "ensemble by vmap": (
        mapped,
        {"a": (5, 32, 6), "c": (5, 6, 3)},
        ROWS,
        {"a": ("out", "in", "out"), "c": ("stack", "in", "out")},
    ),
    "block-diagonal": (grouped_product, {"w": (4, 8, 8)}, ROWS, {"w": ("stack", "in", "out")}),
    # The product with the first input is the one that has weights.
    "bilinear": (bilinear, {"w": (32, 32, 5)}, ROWS, {"w": ("in", "out", "out")}),
    "causal convolution": (
        convolution_in_time,
        {"w": (3, 32, 5)},
        ROWS,
        {"w": ("spatial", "in", "out")},
    ),
    "depthwise by hand": (depthwise_by_hand, {"w": (3, 32)}, ROWS, {"w": "elementwise"}),
    "branches": (
        sampled_branch,
        {"a": (32, 6), "c": (6, 32)},
        ROWS,
        {"a": IO, "c": ("out", "in")},
    ),
    "norm by row": (normalised_by_row, {"w": (32, 6)}, ROWS, {"w": IO}),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_networks_as_functions(name: str) -> None:
    function, shapes, inputs, expected = FUNCTIONS[name]
    params = {path: jax.ShapeDtypeStruct(shape, jnp.float32) for path, shape in shapes.items()}
    assert uses_of(function, params, inputs) == expected


def test_networks_of_equinox() -> None:
    def network(key: jax.Array) -> Any:
        keys = jax.random.split(key, 4)
        return (
            eqx.nn.MLP(8, 3, width_size=5, depth=1, key=keys[0]),
            eqx.nn.ConvTranspose2d(3, 8, 2, key=keys[1]),
            eqx.nn.GRUCell(8, 8, key=keys[2]),
            eqx.nn.Embedding(9, 8, key=keys[3]),
        )

    whole = eqx.filter_eval_shape(network, jax.random.key(0))
    params, static = eqx.partition(whole, lambda leaf: isinstance(leaf, jax.ShapeDtypeStruct))

    def apply(params: Any, image: jax.Array, word: jax.Array) -> jax.Array:
        mlp, convolution, cell, table = eqx.combine(params, static)
        return mlp(cell(convolution(image).mean((1, 2)), table(word)))

    image = jax.ShapeDtypeStruct((3, 4, 4), jnp.float32)
    uses = uses_of(apply, params, image, jax.ShapeDtypeStruct((), jnp.int32))
    kernels = {
        "0/layers/0/weight",
        "0/layers/1/weight",
        "2/weight_ih",
        "2/weight_hh",
    }
    assert {path: uses[path] for path in kernels} == dict.fromkeys(kernels, ("out", "in"))
    assert uses["1/weight"] == ("out", "in", "spatial", "spatial")
    assert uses["3/weight"] == "lookup"
    others = set(uses) - kernels - {"1/weight", "3/weight"}
    assert {uses[path] for path in others} == {"elementwise"}
