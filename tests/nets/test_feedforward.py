"""The plain network: shapes, both ways to start, and a NumPy version of its forward pass."""

from __future__ import annotations

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fsjax.nets import Feedforward
from fsjax.nets.mlp import ACTIVATIONS, INITIALISATIONS

NUMPY = {
    "relu": lambda x: np.maximum(x, 0),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "tanh": np.tanh,
}


def layers_of(net: Feedforward, key: jax.Array, columns: int) -> dict:
    return jax.jit(net.init)(key, jnp.ones((1, columns)))["params"]


@pytest.mark.parametrize("initialisation", INITIALISATIONS)
def test_starting_weights(key: jax.Array, initialisation: str) -> None:
    net = Feedforward(30, (300, 200), "relu", initialisation)
    for layer in layers_of(net, key, 400).values():
        kernel, bias = np.asarray(layer["kernel"]), np.asarray(layer["bias"])
        fan_in, fan_out = kernel.shape
        if initialisation == "fan_in":
            bound = 1 / np.sqrt(fan_in)
            # Biases are drawn from the same range, as in PyTorch.
            assert 0.7 * bound < np.abs(bias).max() <= bound
        else:
            bound = np.sqrt(6 / (fan_in + fan_out))
            assert not bias.any()
        assert 0.99 * bound < np.abs(kernel).max() <= bound
        # Uniform: the mean and the variance within five standard errors.
        assert abs(kernel.mean()) < 5 * bound / np.sqrt(3 * kernel.size)
        error = 5 * bound**2 * np.sqrt(4 / 45 / kernel.size)
        assert abs(kernel.var() - bound**2 / 3) < error


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_forward_pass(key: jax.Array, activation: str) -> None:
    net = Feedforward(3, (6, 4), activation, "fan_in")
    params = layers_of(net, key, 5)
    x = np.random.default_rng(0).normal(size=(8, 5))
    expected = [x]
    for i, layer in enumerate(params.values()):
        y = expected[-1] @ np.asarray(layer["kernel"], np.float64) + np.asarray(layer["bias"])
        expected.append(y if i == 2 else NUMPY[activation](y))
    values = net.apply({"params": params}, jnp.asarray(x, jnp.float32), method="activations")
    chex.assert_trees_all_close(values, [e.astype(np.float32) for e in expected], atol=1e-6)
