"""A plain Flax training loop, made sparse by the lines marked ``# sparse``.

    python examples/sparse_cnn.py

A small CNN learns scikit-learn's digits (1797 images of 8 x 8 pixels) once densely, and once with
RigL, which keeps one connection in five and moves connections to where gradients are largest. On
two CPU cores this takes about ten seconds.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import linen as nn
from sklearn.datasets import load_digits

from fsjax import sparsity  # sparse

Array = jax.Array

BATCH = 64
TRAIN_ROWS = 1400


class CNN(nn.Module):
    """Two convolutions and a linear layer."""

    @nn.compact
    def __call__(self, x: Array) -> Array:
        """``(B, 8, 8, 1) -> (B, 10)`` logits."""
        for channels in (8, 16):
            x = nn.max_pool(nn.relu(nn.Conv(channels, (3, 3))(x)), (2, 2), strides=(2, 2))
        return nn.Dense(10)(x.reshape(len(x), -1))


def digits() -> tuple[Array, Array]:
    """Images ``(1797, 8, 8, 1)`` in [0, 1] and labels 0 to 9, shuffled."""
    images, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(images))
    return jnp.asarray(images[order].reshape(-1, 8, 8, 1) / 16, jnp.float32), labels[order]


def train(params: Any, recipe: sparsity.Recipe | None, epochs: int) -> tuple[float, float]:
    """Trains once.

    Args:
      params: initial parameters of the CNN.
      recipe: how to make the network sparse; ``None`` trains it dense.
      epochs: passes over the training rows, at least 1.

    Returns:
      Accuracy on the test rows, and the share of weights that are exactly 0, both in [0, 1].
    """
    x, y = digits()
    model = CNN()
    tx: optax.GradientTransformation = optax.adam(5e-3)
    if recipe is not None:
        tx = sparsity.sparse(tx, recipe, jax.random.key(1))  # sparse
    opt_state = tx.init(params)
    if recipe is not None:
        params = sparsity.mask_params(params, opt_state)  # sparse

    @jax.jit
    def step(params: Any, opt_state: Any, x: Array, y: Array) -> tuple[Any, Any]:
        def loss(params: Any) -> Array:
            logits = model.apply(params, x)
            return optax.softmax_cross_entropy_with_integer_labels(logits, y).mean()

        updates, opt_state = tx.update(jax.grad(loss)(params), opt_state, params)
        return optax.apply_updates(params, updates), opt_state

    rng = np.random.default_rng(1)
    for _ in range(epochs):
        order = rng.permutation(TRAIN_ROWS)
        for start in range(0, TRAIN_ROWS - BATCH + 1, BATCH):
            rows = order[start : start + BATCH]
            params, opt_state = step(params, opt_state, x[rows], y[rows])

    predicted = jax.jit(model.apply)(params, x[TRAIN_ROWS:]).argmax(axis=-1)
    kernels = [np.asarray(leaf) for leaf in jax.tree.leaves(params) if leaf.ndim > 1]
    zeros = sum((kernel == 0).sum() for kernel in kernels) / sum(kernel.size for kernel in kernels)
    return float((predicted == y[TRAIN_ROWS:]).mean()), float(zeros)


def main(epochs: int = 30) -> dict[str, tuple[float, float]]:
    """Prints accuracy and sparsity of the dense and the sparse network, and returns them."""
    steps = epochs * (TRAIN_ROWS // BATCH)
    recipes = {
        "dense": None,
        "RigL": sparsity.rigl(density=0.2, every=50, end_step=max(1, 3 * steps // 4)),
    }
    params = jax.jit(CNN().init)(jax.random.key(0), jnp.zeros((1, 8, 8, 1)))
    results = {name: train(params, recipe, epochs) for name, recipe in recipes.items()}
    for name, (accuracy, zeros) in results.items():
        print(f"{name:6} accuracy {accuracy:.3f}, {zeros:.0%} of the weights are 0")
    return results


if __name__ == "__main__":
    main()
