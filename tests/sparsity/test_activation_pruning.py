"""Wanda and RIA compared with their definitions in NumPy, on all kinds of linear maps.

Covers ``fsjax.sparsity.calibration``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fsjax import sparsity
from fsjax.errors import ConfigError

METHODS = (sparsity.wanda, sparsity.ria)


def drawn(*shape: int, seed: int = 0) -> np.ndarray:
    """Rows whose columns differ much in size."""
    rng = np.random.default_rng(seed)
    return (rng.normal(size=shape) * np.exp(rng.normal(size=shape[-1]))).astype(np.float32)


def product(params: Any, x: jax.Array) -> jax.Array:
    return x @ params["w"]


def scores_of(method: Callable, weight: np.ndarray, rows: np.ndarray) -> np.ndarray:
    size, norms = np.abs(weight.astype(np.float64)), np.sqrt((rows.astype(np.float64) ** 2).sum(0))
    if method is sparsity.wanda:
        return size * norms[:, None]
    return (size / size.sum(0) + size / size.sum(1)[:, None]) * norms[:, None] ** 0.5


@pytest.mark.parametrize("method", METHODS)
def test_the_highest_scores_stay_within_their_group(method: Callable) -> None:
    weight, rows = drawn(12, 7, seed=1), drawn(50, 12)
    pruned = method(product, {"w": weight}, rows, density=0.3)
    mask, scores = np.asarray(pruned.masks["w"]), scores_of(method, weight, rows)
    if method is sparsity.wanda:  # round(0.3 * 12) inputs of each output
        expected = scores >= np.sort(scores, axis=0)[-4]
    else:  # round(0.3 * 84) connections of the layer
        expected = scores >= np.sort(scores, axis=None)[-25]
    np.testing.assert_array_equal(mask, expected)
    np.testing.assert_array_equal(pruned.params["w"], np.where(mask, weight, 0))  # no update
    change = rows @ (np.where(mask, weight, 0) - weight)
    expected_error = np.square(change).sum() / np.square(rows @ weight).sum()
    np.testing.assert_allclose(pruned.errors["w"], expected_error, rtol=1e-4)


@pytest.mark.parametrize("method", METHODS)
def test_n_of_m_keeps_the_highest_of_each_group_of_inputs(method: Callable) -> None:
    weight, rows = drawn(16, 5, seed=1), drawn(50, 16)
    pruned = method(product, {"w": weight}, rows, structure=sparsity.n_of_m(1, 4))
    scores = scores_of(method, weight, rows).reshape(4, 4, 5)
    expected = (scores == scores.max(1, keepdims=True)).reshape(16, 5)
    np.testing.assert_array_equal(pruned.masks["w"], expected)


@pytest.mark.parametrize("method", METHODS)
def test_counts_are_exact_where_all_scores_are_equal(method: Callable) -> None:
    weight, rows = np.ones((10, 4), np.float32), np.ones((3, 10), np.float32)
    masks = method(product, {"w": weight}, rows, density=0.5).masks
    assert int(masks["w"].sum()) == 20
    dead = method(product, {"w": weight}, 0 * rows, density=0.5)
    assert int(dead.masks["w"].sum()) == 20 and dead.errors["w"] == 0
    zero = method(product, {"w": 0 * weight}, rows, structure=sparsity.n_of_m(1, 2))
    assert (np.asarray(zero.masks["w"]).reshape(5, 2, 4).sum(1) == 1).all()


class Attention(nn.Module):
    """Attention after a convolution."""

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        x = nn.relu(nn.Conv(8, (3, 3), strides=2, name="conv")(x)).reshape(x.shape[0], -1, 8)
        return nn.MultiHeadDotProductAttention(2, name="attention")(x, x)


def test_a_later_layer_sees_the_outputs_of_pruned_ones() -> None:
    rows, first, second = drawn(40, 8), drawn(8, 24, seed=1), drawn(24, 6, seed=2)

    def apply(params: Any, x: jax.Array) -> jax.Array:
        return nn.relu(x @ params["a"]) @ params["b"]

    both = sparsity.wanda(apply, {"b": second, "a": first}, rows, density={"a": 0.25, "b": 0.5})
    hidden = np.maximum(rows @ np.asarray(both.params["a"]), 0)
    alone = sparsity.wanda(product, {"w": second}, hidden, density=0.5)
    np.testing.assert_array_equal(both.masks["b"], alone.masks["w"])
    dense = sparsity.wanda(product, {"w": second}, np.maximum(rows @ first, 0), density=0.5)
    assert (dense.masks["w"] != alone.masks["w"]).any()  # the control


@pytest.mark.slow
def test_convolutions_and_attention_are_pruned_along_their_inputs() -> None:
    model, x = Attention(), jnp.asarray(drawn(6, 6, 6, 4))
    params = jax.jit(model.init)(jax.random.key(0), x)
    masks = sparsity.wanda(model.apply, params, x, structure=sparsity.n_of_m(1, 2)).masks["params"]
    conv, attention = np.asarray(masks["conv"]["kernel"]), masks["attention"]
    assert (conv.reshape(3, 3, 2, 2, 8).sum(3) == 1).all()  # pairs of input channels
    query, out = (np.asarray(attention[name]["kernel"]) for name in ("query", "out"))
    assert (query.reshape(4, 2, 2, 4).sum(1) == 1).all()  # (in, heads, width)
    assert (out.reshape(2, 2, 2, 8).sum(2) == 1).all()  # (heads, width, out)
    assert np.asarray(masks["conv"]["bias"]).all()


@pytest.mark.parametrize("method", METHODS)
def test_bfloat16_parameters_keep_their_type_and_values(method: Callable) -> None:
    weight = jnp.asarray(drawn(8, 4), jnp.bfloat16)
    pruned = method(product, {"w": weight}, drawn(20, 8), density=0.5)
    assert pruned.params["w"].dtype == jnp.bfloat16
    assert (pruned.params["w"] == jnp.where(pruned.masks["w"], weight, 0)).all()


@pytest.mark.parametrize("method", (*METHODS, sparsity.brain_surgeon))
def test_mistakes_are_named(method: Callable) -> None:
    params, x = {"w": jnp.ones((6, 4))}, jnp.ones((5, 6))
    for options, message in (
        ({}, "density=None and structure=None; give exactly one"),
        ({"density": 1.5}, "density=1.5"),
        ({"structure": sparsity.n_of_m(2, 4)}, "w: n_of_m.2, 4. does not fit 6 inputs"),
        ({"structure": sparsity.channel()}, "channel.* cannot be pruned input by input"),
    ):
        with pytest.raises(ConfigError, match=message):
            method(product, params, x, **options)
    with pytest.raises(ConfigError, match="the inputs of w hold numbers that are not finite"):
        method(product, params, x.at[2, 3].set(jnp.nan), density=0.5)
    with pytest.raises(ConfigError, match="w: not used exactly once"):
        method(lambda p, x: x @ p["w"] @ p["w"].T, params, x, density=0.5)
