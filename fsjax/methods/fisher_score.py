"""Fisher score: the classical filter (Gu et al. 2011), column by column and without training."""

from __future__ import annotations

from typing import Literal

import jax
import jax.numpy as jnp
from jax import Array

from fsjax.arguments import Count, Optimizer, Positive, Schedule, Widths
from fsjax.errors import ConfigError
from fsjax.method import Method, Spec, TrainingRows
from fsjax.methods.shared.fixed_columns import filter_method, network_on_columns
from fsjax.registry import register
from fsjax.tables.sparse_rows import SparseRows, dense, is_sparse

#: The highest score: of columns that do not vary within the classes, but between them.
HIGHEST = 1e12


def fisher_scores(x: Array, y: Array, num_classes: int, weight: Array | None = None) -> Array:
    """Variance between the classes over the variance within them, for each column.

    ``sum_c n_c (mu_c - mu)^2 / sum_c n_c var_c`` (Gu et al. 2011). It is the F statistic times
    ``(C - 1) / (N - C)``, and what scikit-feature computes, whose score of perfect and of
    constant columns is undefined.

    Args:
      x: ``(N, D)``.
      y: ``(N,)`` integer classes; some of them may not occur.
      num_classes: C.
      weight: ``(N,)`` non-negative weights of the rows; ``None`` weighs all alike.

    Returns:
      ``(D,)`` from 0 to :data:`HIGHEST`; 0 for constant columns.
    """
    x = jnp.asarray(x, jnp.float32)
    belongs = jax.nn.one_hot(y, num_classes)
    if weight is not None:
        belongs = belongs * weight[:, None]
    count = jnp.sum(belongs, axis=0)
    share = (count / jnp.sum(count))[:, None]

    def class_means(values: Array) -> Array:
        # Accelerators would round the factors of this product.
        sums = jnp.matmul(belongs.T, values, precision=jax.lax.Precision.HIGHEST)
        return sums / jnp.maximum(count, jnp.finfo(x.dtype).tiny)[:, None]

    # Differences from one row of each class are exactly 0 in columns that do not vary there.
    example = x[jnp.argmax(belongs > 0, axis=0)]
    offset = x - example[y]
    offset_mean = class_means(offset)
    within = jnp.sum(share * class_means(jnp.square(offset - offset_mean[y])), axis=0)
    return _ratio(example + offset_mean, within, count)


def sparse_fisher_scores(x: SparseRows, y: Array, num_classes: int, weight: Array) -> Array:
    """:func:`fisher_scores` of sparse rows, from sums over their non-zeros: ``(C, D)`` at most.

    Arguments and result are the same.
    """
    of_class = jax.nn.one_hot(y, num_classes) * weight[:, None]
    count = jnp.sum(of_class, axis=0)
    share = (count / jnp.sum(count))[:, None]
    tiny = jnp.finfo(x.dtype).tiny
    rows = jnp.repeat(jnp.arange(len(x)), x.counts, total_repeat_length=x.values.size)
    at, real = (y[rows], x.columns), (weight > 0).astype(jnp.int32)

    def by_class(values: Array) -> Array:
        """Sums ``(C, D)`` over the non-zeros."""
        return jnp.zeros((num_classes, x.shape[1]), values.dtype).at[at].add(values, mode="drop")

    # Weight of the zeros, exactly 0 where a class has none.
    in_class = jnp.zeros(num_classes, jnp.int32).at[y].add(real)
    none = by_class(real[rows]) == in_class[:, None]
    zeros = jnp.where(none, 0.0, jnp.maximum(count[:, None] - by_class(weight[rows]), 0.0))
    # As there, differences from one row of each class.
    example = x[jnp.argmax(of_class > 0, axis=0)]
    of_zero = x.base - example
    column = jnp.minimum(x.columns, x.shape[1] - 1)
    offset, weights = x.values - example[at[0], column], weight[rows]
    offset_mean = (by_class(weights * offset) + zeros * of_zero) / jnp.maximum(count, tiny)[:, None]
    squares = by_class(weights * jnp.square(offset - offset_mean[at[0], column]))
    squares = squares + zeros * jnp.square(of_zero - offset_mean)
    within = jnp.sum(share * squares / jnp.maximum(count, tiny)[:, None], axis=0)
    return _ratio(example + offset_mean, within, count)


def _ratio(mean: Array, within: Array, count: Array) -> Array:
    """The scores, from the means ``(C, D)`` and the weights ``(C,)`` of the classes."""
    share = (count / jnp.sum(count))[:, None]
    # Differences of the classes' means from one of them, that of a class that occurs.
    mean = mean - mean[jnp.argmax(count)]
    between = jnp.sum(share * jnp.square(mean - jnp.sum(share * mean, axis=0)), axis=0)
    ratio = between / jnp.where(within > 0, within, 1.0)
    perfect = (within == 0) & (between > 0)
    return jnp.where(perfect, HIGHEST, jnp.minimum(ratio, HIGHEST))


@register(
    estimator="FisherScore",
    paper="Gu et al., UAI 2011",
    optimises="nothing: variance between classes over variance within them, column by column",
    small={},
)
def fisher_score(
    num_features: Count | None = None,
    *,
    hidden: Widths | None = None,
    layer_norm: bool = True,
    optimizer: Literal["adam"] | Optimizer = "adam",
    learning_rate: Positive | Schedule = 1e-3,
) -> Method:
    """The Fisher score of every column, a filter that trains nothing.

    With ``hidden`` the decoder of the concrete selectors is trained on the K best columns, so that
    the method predicts as they do.

    Args:
      num_features: K; ``None`` leaves it to ``fit``, where there is no network. Constant columns
        are not used while there are others.
      hidden: widths of the network's hidden layers, as a tuple; ``None`` for no network.
      layer_norm: LayerNorm before each activation of the network.
      optimizer: of the network: ``adam``; or an Optax transformation, or a function of the Spec
        that gives one.
      learning_rate: of the network's Adam; or an Optax schedule.

    Returns:
      The method, for classification; its scores are those of all training rows.
    """

    def scores(key: Array, spec: Spec, data: TrainingRows) -> Array:
        y = dense(data.y)
        if is_sparse(data.x):
            return sparse_fisher_scores(data.x, y, spec.num_outputs, data.weight)
        return fisher_scores(data.x, y, spec.num_outputs, data.weight)

    only = ("classification",)
    if hidden is None:
        method = filter_method(scores, only)
        about = method.about._replace(num_features=num_features, sparse=True)
        return method._replace(about=about)
    if num_features is None:
        raise ConfigError("a network needs num_features; give how many columns it sees")
    return network_on_columns(
        scores,
        num_features,
        hidden=hidden,
        layer_norm=layer_norm,
        optimizer=optimizer,
        learning_rate=learning_rate,
        only=only,
    )
