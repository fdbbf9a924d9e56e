"""BinMask on a network of your own: the lines marked ``# binmask`` make a plain loop sparse.

    python examples/binmask_cnn.py

The CNN itself contains no masks. The parameters to mask are chosen by path, here the kernels of all
layers but the last, and multiplied by binary masks before the CNN is applied. Weights and masks are
trained together, each with an optimiser of its own. On two CPU cores this takes about ten seconds.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import linen as nn
from sklearn.datasets import load_digits

from fsjax import sparsity  # binmask

Array = jax.Array

BATCH, TRAIN_ROWS, EPOCHS = 64, 1400, 30


class CNN(nn.Module):
    """Two convolutions, a dense layer and a linear output."""

    @nn.compact
    def __call__(self, x: Array) -> Array:
        """``(B, 8, 8, 1) -> (B, 10)`` logits."""
        for channels in (8, 16):
            x = nn.max_pool(nn.relu(nn.Conv(channels, (3, 3))(x)), (2, 2), strides=(2, 2))
        x = nn.relu(nn.Dense(64)(x.reshape(len(x), -1)))
        return nn.Dense(10, name="output")(x)


def is_masked(path: tuple[str, ...], leaf: Array) -> bool:
    """Whether a parameter is masked: all kernels but that of the output."""
    return path[-1] == "kernel" and path[0] != "output"


def digits() -> tuple[Array, Array]:
    """Images ``(1797, 8, 8, 1)`` in [0, 1] and labels 0 to 9, shuffled."""
    images, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(images))
    return jnp.asarray(images[order].reshape(-1, 8, 8, 1) / 16, jnp.float32), jnp.asarray(
        labels[order]
    )


def train(strength: float, epochs: int = EPOCHS) -> tuple[float, dict[str, float]]:
    """Trains once.

    Args:
      strength: lambda, the penalty on an open mask in the loss, at least 0.
      epochs: passes over the training rows, at least 2.

    Returns:
      Accuracy on the test rows, in [0, 1], and the share of closed masks by parameter.
    """
    x, y = digits()
    model = CNN()
    steps = TRAIN_ROWS // BATCH
    params: Any = model.init(jax.random.key(0), x[:1])["params"]
    params = sparsity.init_binmask(params, is_masked, initial=0.05)  # binmask
    tx = sparsity.binmask_optimizer(  # binmask
        optax.adam(3e-3), num_epochs=epochs, steps_per_epoch=steps
    )
    opt_state = tx.init(params)

    def loss_fn(params: Any, rows: Array) -> Array:
        weights = sparsity.masked_weights(params)  # binmask
        logits = model.apply({"params": weights}, x[rows])
        loss = optax.softmax_cross_entropy_with_integer_labels(logits, y[rows]).mean()
        return loss + strength * sparsity.mask_penalty(params.latents)  # binmask

    @jax.jit
    def step(params: Any, opt_state: Any, rows: Array) -> tuple[Any, Any]:
        grads = jax.grad(loss_fn)(params, rows)
        updates, opt_state = tx.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state

    rng = np.random.default_rng(0)
    for _ in range(epochs):
        order = rng.permutation(TRAIN_ROWS)[: steps * BATCH].reshape(steps, BATCH)
        for rows in order:
            params, opt_state = step(params, opt_state, jnp.asarray(rows))
    logits = model.apply({"params": sparsity.masked_weights(params)}, x[TRAIN_ROWS:])
    accuracy = float(jnp.mean(logits.argmax(-1) == y[TRAIN_ROWS:]))
    return accuracy, sparsity.layer_sparsity(params.latents)


def main() -> dict[float, tuple[float, dict[str, float]]]:
    """Prints accuracy and sparsity without and with a penalty on open masks, and returns them."""
    results = {strength: train(strength) for strength in (0.0, 1e-4)}
    for strength, (accuracy, closed) in results.items():
        layers = ", ".join(f"{path} {100 * share:.0f} %" for path, share in closed.items())
        print(f"lambda {strength:g}: test accuracy {100 * accuracy:.1f} %; closed: {layers}")
    return results


if __name__ == "__main__":
    main()
