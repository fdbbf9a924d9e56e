"""What a network is trained for: losses, the metric to watch, and the shape of outputs."""

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


def roc_auc(scores: Array, y: Array, weight: Array | None = None) -> Array:
    """Area under the ROC curve: how often a row of class 1 scores above one of class 0.

    Args:
      scores: ``(N,)``, larger for class 1; NaN counts as the lowest.
      y: ``(N,)`` classes 0 and 1.
      weight: ``(N,)`` non-negative weights of the rows; ``None`` weighs all alike.

    Returns:
      Scalar in [0, 1]; pairs with equal scores count half. 0.5 where only one class occurs.
    """
    weight = jnp.ones(scores.shape) if weight is None else jnp.asarray(weight, jnp.float32)
    scores = jnp.where(jnp.isnan(scores), -jnp.inf, scores)
    order = jnp.argsort(scores)
    scores, positive, weight = scores[order], y[order] == 1, weight[order]
    ones, zeros = jnp.where(positive, weight, 0.0), jnp.where(positive, 0.0, weight)
    # Weight of class 0 up to each row, then below and up to the end of its run of equal scores.
    seen = jnp.cumsum(zeros)
    edge = jnp.ones((1,), bool)
    differs = scores[1:] != scores[:-1]
    before = jnp.concatenate([jnp.zeros((1,)), seen[:-1]])
    below = jax.lax.cummax(jnp.where(jnp.concatenate([edge, differs]), before, 0.0))
    upto = jax.lax.cummin(jnp.where(jnp.concatenate([differs, edge]), seen, jnp.inf), reverse=True)
    of_zeros, of_ones = jnp.sum(zeros), jnp.sum(ones)
    # Shares before the sum over rows, which float32 could not hold as counts of pairs.
    share = (below + upto) / (2 * jnp.where(of_zeros > 0, of_zeros, 1.0))
    area = jnp.sum(ones * share) / jnp.where(of_ones > 0, of_ones, 1.0)
    return jnp.where((of_zeros > 0) & (of_ones > 0), jnp.clip(area, 0.0, 1.0), 0.5)
