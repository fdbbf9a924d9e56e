"""The losses and recorded metrics of the tasks, in JAX; the table of tasks assigns them.

All functions take ``outputs (B, C)``, targets ``y`` and ``weight (B,)``, non-negative weights of
the rows that are not all 0, and return a scalar, or scalars by name. Rows of weight 0 are ignored.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import optax
from jax.scipy.special import xlogy

from fsjax.tasks.concordance import comparable, concordant_at

Array = jax.Array

#: Stands for the logarithm of a weight of 0.
NOTHING = -1e30


def weighted_mean(values: Array, weight: Array) -> Array:
    """Mean of ``values`` (B,) under non-negative weights (B,), not all zero."""
    return jnp.sum(values * weight) / jnp.sum(weight)


def cross_entropy(outputs: Array, y: Array, weight: Array) -> Array:
    """Softmax cross-entropy of logits, in nats, for classes ``y (B,)``."""
    return weighted_mean(optax.softmax_cross_entropy_with_integer_labels(outputs, y), weight)


def squared_error(outputs: Array, y: Array, weight: Array) -> Array:
    """Squared error, averaged over the C outputs."""
    return weighted_mean(jnp.mean(jnp.square(outputs - y), axis=-1), weight)


def sigmoid_cross_entropy(outputs: Array, y: Array, weight: Array) -> Array:
    """Sigmoid cross-entropy of one logit per label, in nats, averaged over the L labels."""
    return weighted_mean(jnp.mean(optax.sigmoid_binary_cross_entropy(outputs, y), axis=-1), weight)


def poisson_deviance(outputs: Array, y: Array, weight: Array) -> Array:
    """Poisson deviance ``2 (y log(y / mu) - y + mu)``, averaged over the C counts.

    The outputs are the logarithms of the expected counts mu.
    """
    rows = 2.0 * (xlogy(y, y) - y * outputs - y + jnp.exp(outputs))
    return weighted_mean(jnp.mean(rows, axis=-1), weight)


def cox_partial_likelihood(outputs: Array, y: Array, weight: Array) -> Array:
    """Cox's negative partial log-likelihood per event, with Breslow's treatment of ties.

    ``-sum_i w_i d_i (f_i - log sum_{j: t_j >= t_i} w_j exp f_j) / sum_i w_i d_i`` for times and
    events ``y = (t, d)``. Risk sets consist of the given rows only, for example those of a
    minibatch. The loss is 0 if no row has an event.
    """
    order = jnp.argsort(-y[:, 0])
    time, event, weight = y[order, 0], y[order, 1], weight[order]
    risk = outputs[order, 0]
    counts = weight > 0
    in_sum = jnp.where(counts, risk + jnp.log(jnp.where(counts, weight, 1.0)), NOTHING)
    # All rows of the same time are at risk together.
    last = jnp.searchsorted(-time, -time, side="right") - 1
    log_sums = jax.lax.cumlogsumexp(in_sum)[last]
    events = jnp.where(counts, weight * event, 0.0)
    total = jnp.sum(events)
    terms = jnp.where(events > 0, events * (log_sums - risk), 0.0)
    return jnp.sum(terms) / jnp.where(total > 0, total, 1.0)


def concordance(outputs: Array, y: Array, weight: Array) -> Array:
    """Harrell's concordance index in [0, 1]; 0.5 if no pair is comparable.

    :func:`fsjax.tasks.concordance.concordance_index` is the same in NumPy.
    """
    outputs, y, weight = map(jnp.asarray, (outputs, y, weight))
    counts = weight > 0
    # Ranks of the times from 0 to B - 1, because the algorithm uses their binary digits.
    places = jnp.lexsort((1.0 - y[:, 1], y[:, 0]))
    time, event = y[places, 0], (y[places, 1] > 0) & counts[places]
    differs = (time[1:] != time[:-1]) | (y[places, 1][1:] != y[places, 1][:-1])
    order = jnp.concatenate([jnp.zeros((1,), int), jnp.cumsum(differs)])
    args = (order, outputs[places, 0], event, weight[places])
    levels = max((len(y) - 1).bit_length(), 1)

    def add(bit: Array, total: Array) -> Array:
        return total + concordant_at(jnp, *args, bit)

    concordant = jax.lax.fori_loop(0, levels, add, jnp.zeros((), weight.dtype))
    pairs = comparable(jnp, order, event, weight[places])
    index = jnp.clip(concordant / jnp.where(pairs > 0, pairs, 1.0), 0.0, 1.0)
    return jnp.where(pairs > 0, index, 0.5)


def roc_auc(scores: Array, y: Array, weight: Array | None = None) -> Array:
    """Area under the ROC curve: the share of pairs in which class 1 scores above class 0.

    Args:
      scores: ``(N,)``, larger for class 1; NaN counts as the lowest score.
      y: ``(N,)`` classes 0 and 1.
      weight: ``(N,)`` non-negative weights of the rows; ``None`` means equal weights.

    Returns:
      Scalar in [0, 1]; pairs with equal scores count half. 0.5 if only one class occurs.
    """
    weight = jnp.ones(scores.shape) if weight is None else jnp.asarray(weight, jnp.float32)
    scores = jnp.where(jnp.isnan(scores), -jnp.inf, scores)
    order = jnp.argsort(scores)
    scores, positive, weight = scores[order], y[order] == 1, weight[order]
    ones, zeros = jnp.where(positive, weight, 0.0), jnp.where(positive, 0.0, weight)
    # The weight of class 0 up to each row, and up to the start and the end of its run of ties.
    seen = jnp.cumsum(zeros)
    edge = jnp.ones((1,), bool)
    differs = scores[1:] != scores[:-1]
    before = jnp.concatenate([jnp.zeros((1,)), seen[:-1]])
    below = jax.lax.cummax(jnp.where(jnp.concatenate([edge, differs]), before, 0.0))
    end_of_tie = jax.lax.cummin(
        jnp.where(jnp.concatenate([differs, edge]), seen, jnp.inf), reverse=True
    )
    of_zeros, of_ones = jnp.sum(zeros), jnp.sum(ones)
    # Shares before the sum over rows, because counts of pairs are too large for float32.
    share = (below + end_of_tie) / (2 * jnp.where(of_zeros > 0, of_zeros, 1.0))
    area = jnp.sum(ones * share) / jnp.where(of_ones > 0, of_ones, 1.0)
    return jnp.where((of_zeros > 0) & (of_ones > 0), jnp.clip(area, 0.0, 1.0), 0.5)


def classification_values(outputs: Array, y: Array, weight: Array) -> dict[str, Array]:
    """``accuracy`` in percent."""
    return {"accuracy": weighted_mean(100.0 * (jnp.argmax(outputs, axis=-1) == y), weight)}


def reconstruction_values(outputs: Array, y: Array, weight: Array) -> dict[str, Array]:
    """``reconstruction_frobenius``, the mean over rows of ``||x - x_hat|| / D``.

    The metric of IP-CAE, section 4, in the form that reproduces the tables of the paper.
    """
    norms = jnp.sqrt(jnp.sum(jnp.square(outputs - y), axis=-1)) / y.shape[-1]
    return {"reconstruction_frobenius": weighted_mean(norms, weight)}


def regression_values(outputs: Array, y: Array, weight: Array) -> dict[str, Array]:
    """``mse``, the mean squared error."""
    return {"mse": squared_error(outputs, y, weight)}


def label_values(outputs: Array, y: Array, weight: Array) -> dict[str, Array]:
    """``label_accuracy`` and ``subset_accuracy`` in percent, and ``auc``, the mean over labels.

    The first is the share of correct labels, the second that of rows with all labels correct.
    Constant labels have an area of 0.5.
    """
    right = (outputs > 0) == (y > 0.5)
    areas = jax.vmap(roc_auc, in_axes=(1, 1, None))(outputs, y, weight)
    return {
        "label_accuracy": weighted_mean(100.0 * jnp.mean(right, axis=-1), weight),
        "subset_accuracy": weighted_mean(100.0 * jnp.all(right, axis=-1), weight),
        "auc": jnp.mean(areas),
    }


def count_values(outputs: Array, y: Array, weight: Array) -> dict[str, Array]:
    """``poisson_deviance``, the mean Poisson deviance."""
    return {"poisson_deviance": poisson_deviance(outputs, y, weight)}


def survival_values(outputs: Array, y: Array, weight: Array) -> dict[str, Array]:
    """``concordance_index`` in [0, 1]."""
    return {"concordance_index": concordance(outputs, y, weight)}
