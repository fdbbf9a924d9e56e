"""What a network is trained for: losses, the metric to watch, and the shape of outputs."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import optax

Array = jax.Array

TASKS = ("classification", "reconstruction", "regression")

#: The metric of each task that progress bars and reports show, and whether larger is better.
MAIN_METRIC = {
    "classification": ("accuracy", True),
    "reconstruction": ("reconstruction_frobenius", False),
    "regression": ("mse", False),
}


def row_losses(task: str, outputs: Array, y: Array) -> Array:
    """Loss of every row.

    Args:
      task: one of :data:`TASKS`.
      outputs: ``(B, C)`` logits, reconstructions or predictions.
      y: ``(B,)`` integer classes, or ``(B, C)`` targets.

    Returns:
      ``(B,)``: cross-entropy in nats, or the squared error averaged over the C outputs.
    """
    if task == "classification":
        return optax.softmax_cross_entropy_with_integer_labels(outputs, y)
    return jnp.mean(jnp.square(outputs - y), axis=-1)


def weighted_mean(values: Array, weight: Array) -> Array:
    """Mean of ``values`` (B,) under non-negative weights (B,), not all zero."""
    return jnp.sum(values * weight) / jnp.sum(weight)


def loss(task: str, outputs: Array, y: Array, weight: Array) -> Array:
    """Weighted mean over the rows of :func:`row_losses`, a scalar."""
    return weighted_mean(row_losses(task, outputs, y), weight)


def row_metrics(task: str, outputs: Array, y: Array) -> dict[str, Array]:
    """Per-row values ``(B,)`` whose means are the task's metrics.

    ``accuracy`` is in percent; ``reconstruction_frobenius`` is the Euclidean norm of a row's
    residual over the number of columns (IP-CAE, section 4, in the form that reproduces its
    tables: the mean over rows of ``||x - x_hat|| / D``); ``mse`` is the mean squared error.
    """
    metrics = {"loss": row_losses(task, outputs, y)}
    if task == "classification":
        metrics["accuracy"] = 100.0 * (jnp.argmax(outputs, axis=-1) == y)
    elif task == "reconstruction":
        metrics["reconstruction_frobenius"] = (
            jnp.sqrt(jnp.sum(jnp.square(outputs - y), axis=-1)) / y.shape[-1]
        )
    else:
        metrics["mse"] = metrics["loss"]
    return metrics
