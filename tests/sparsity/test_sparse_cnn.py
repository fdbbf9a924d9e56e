"""A convolutional network that learns with the Optax wrapper around its optimiser."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import linen as nn
from sklearn.datasets import load_digits

from fsjax import sparsity


class CNN(nn.Module):
    """Two convolutions and a linear layer for 8 x 8 images."""

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        for channels in (8, 16):
            x = nn.max_pool(nn.relu(nn.Conv(channels, (3, 3))(x)), (2, 2), strides=(2, 2))
        return nn.Dense(10)(x.reshape(len(x), -1))


def digits() -> tuple[jax.Array, ...]:
    images, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(images))
    x = jnp.asarray(images[order].reshape(-1, 8, 8, 1) / 16, jnp.float32)
    y = jnp.asarray(labels[order])
    return x[:1400], y[:1400], x[1400:], y[1400:]


@pytest.mark.slow
def test_a_sparse_cnn_learns_digits_and_nothing_from_shuffled_labels() -> None:
    x, y, x_test, y_test = digits()
    model = CNN()
    tx = sparsity.sparse(
        optax.adam(5e-3), sparsity.rigl(0.2, every=30, end_step=225), jax.random.key(0)
    )

    # Drawn by NumPy, which needs no compilation.
    rng = np.random.default_rng(0)
    rows = jnp.asarray(rng.integers(0, len(x), (300, 64)))
    shapes = jax.eval_shape(model.init, jax.random.key(1), x[:1])

    def draw(leaf: jax.ShapeDtypeStruct) -> jax.Array:
        if len(leaf.shape) == 1:
            return jnp.zeros(leaf.shape)
        scale = np.sqrt(2 / np.prod(leaf.shape[:-1]))
        return jnp.asarray(scale * rng.normal(size=leaf.shape), jnp.float32)

    start = jax.tree.map(draw, shapes)

    # Convolutions that LLVM does not optimise take far longer than it does.
    @partial(jax.jit, compiler_options={"xla_backend_optimization_level": 1})
    def accuracy(labels: jax.Array) -> tuple[jax.Array, Any, Any]:
        state = tx.init(start)
        params = sparsity.mask_params(start, state)

        def step(carry: tuple, rows: jax.Array) -> tuple:
            params, state = carry

            def loss(params: Any) -> jax.Array:
                logits = model.apply(params, x[rows])
                return optax.softmax_cross_entropy_with_integer_labels(logits, labels[rows]).mean()

            updates, state = tx.update(jax.grad(loss)(params), state, params)
            return (optax.apply_updates(params, updates), state), None

        first = state.masks
        (params, state), _ = jax.lax.scan(step, (params, state), rows)
        moved = jax.tree.map(lambda a, b: jnp.sum(a & ~b), state.masks, first)
        hits = model.apply(params, x_test).argmax(-1) == y_test
        return hits.mean(), sparsity.sparsity(state.masks), moved

    learned, share, moved = accuracy(y)
    assert float(share) == pytest.approx(0.8, abs=0.002)
    assert all(int(layer["kernel"]) > 0 for layer in moved["params"].values())
    shuffled, _, _ = accuracy(jnp.asarray(rng.permutation(y)))
    assert float(learned) > 0.85
    assert float(shuffled) < 0.25
