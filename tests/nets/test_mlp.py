"""Perceptrons: shapes, PyTorch's default start, and NumPy versions of the forward pass.

Covers ``fsjax.nets.mlp``.
"""

from __future__ import annotations

import chex
import jax
import numpy as np
import pytest

from fsjax.errors import ConfigError
from fsjax.nets import MLP


def test_forward_pass(key: jax.Array) -> None:
    net = MLP(2, (4,))
    x = jax.random.normal(jax.random.key(1), (3, 5))
    params = net.init(key, x)["params"]
    p = jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), params)
    hidden = np.asarray(x) @ p["FanInDense_0"]["Dense_0"]["kernel"]
    hidden = hidden + p["FanInDense_0"]["Dense_0"]["bias"]
    centred = hidden - hidden.mean(-1, keepdims=True)
    normed = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5)
    active = np.where(normed > 0, normed, 0.2 * normed)
    last = p["FanInDense_1"]["Dense_0"]
    expected = active @ last["kernel"] + last["bias"]
    chex.assert_trees_all_close(
        np.asarray(net.apply({"params": params}, x), np.float64), expected, rtol=1e-4, atol=1e-5
    )


@pytest.mark.parametrize(
    ("activation", "function"),
    [
        ("leaky_relu", lambda x: np.where(x > 0, x, 0.2 * x)),
        ("relu", lambda x: np.maximum(x, 0)),
        ("tanh", np.tanh),
        ("sigmoid", lambda x: 1 / (1 + np.exp(-x))),
    ],
)
def test_activation_then_batch_statistics(key: jax.Array, activation: str, function) -> None:
    net = MLP(2, (4,), layer_norm=False, activation=activation, batch_norm=True)
    x = np.random.default_rng(0).normal(size=(6, 5)).astype(np.float32)
    weight = np.float32([1, 0.5, 0, 2, 0, 1])
    variables = jax.jit(net.init)(key, x)

    @jax.jit
    def train_then_predict(variables, x):
        outputs, moved = net.apply(variables, x, train=True, weight=weight, mutable=["batch_stats"])
        return outputs, moved, net.apply({**variables, **moved}, x[:1])

    outputs, moved, after = train_then_predict(variables, x)
    p = jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), variables["params"])
    first, last = (p[f"FanInDense_{number}"]["Dense_0"] for number in (0, 1))
    active = function(np.asarray(x, np.float64) @ first["kernel"] + first["bias"])
    real = active[[0, 1, 3, 5]]
    mean, var = real.mean(axis=0), real.var(axis=0)
    expected = (active - mean) / np.sqrt(var + 1e-5) @ last["kernel"] + last["bias"]
    chex.assert_trees_all_close(np.asarray(outputs, np.float64), expected, rtol=1e-4, atol=1e-5)
    # From means of 0 and variances of 1, a tenth of the way.
    chex.assert_trees_all_close(
        moved["batch_stats"]["BatchNorm_0"],
        {"mean": np.float32(0.1 * mean), "var": np.float32(0.9 + 0.1 * var)},
        rtol=1e-5,
        atol=1e-6,
    )

    # Afterwards rows are normalised by these, each by itself.
    scaled = (active - 0.1 * mean) / np.sqrt(0.9 + 0.1 * var + 1e-5)
    expected = scaled @ last["kernel"] + last["bias"]
    chex.assert_trees_all_close(np.float64(after), expected[:1], rtol=1e-4, atol=1e-5)


def test_dropout_comes_after_batch_norm() -> None:
    net = MLP(1, (50,), layer_norm=False, dropout=0.5, activation="relu", batch_norm=True)
    x = np.random.default_rng(0).normal(size=(8, 5)).astype(np.float32)

    draws = np.random.default_rng(1)
    variables = jax.tree.map(
        lambda leaf: draws.uniform(size=leaf.shape).astype(np.float32),
        jax.eval_shape(net.init, jax.random.key(0), x),
    )

    @jax.jit
    def train(variables, x):
        rngs = {"dropout": jax.random.key(2)}
        return [
            layers.apply(variables, x, train=True, rngs=rngs, mutable=["batch_stats"])
            for layers in (net, net.clone(dropout=0.0))
        ]

    (outputs, moved), (plain, plain_moved) = train(variables, x)
    chex.assert_trees_all_close(moved, plain_moved)
    assert not np.allclose(outputs, plain)


def test_unknown_activation() -> None:
    with pytest.raises(ConfigError, match="activation='rellu': did you mean 'relu'"):
        MLP(2, activation="rellu")
