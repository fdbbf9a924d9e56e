"""The decoder: shapes, PyTorch's default start, and a NumPy version of its forward pass."""

from __future__ import annotations

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fsjax.nets import MLP


@pytest.mark.parametrize("hidden", [(), (20,), (20, 10)])
def test_shapes(key: jax.Array, hidden: tuple[int, ...]) -> None:
    net = MLP(7, hidden)
    x = jnp.ones((3, 5))
    params = net.init(key, x)
    chex.assert_shape(net.apply(params, x), (3, 7))
    kernels = [leaf for leaf in jax.tree.leaves(params) if leaf.ndim == 2]
    assert len(kernels) == len(hidden) + 1
    for kernel in kernels:
        bound = 1 / np.sqrt(kernel.shape[0])
        assert 0.8 * bound < np.abs(kernel).max() <= bound


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


def test_dropout_acts_in_training_only(key: jax.Array) -> None:
    net = MLP(2, (50,), dropout=0.5)
    x = jnp.ones((4, 5))
    params = net.init(key, x)
    chex.assert_trees_all_equal(net.apply(params, x), net.apply(params, x))
    rngs = {"dropout": jax.random.key(2)}
    assert not np.allclose(net.apply(params, x, train=True, rngs=rngs), net.apply(params, x))
