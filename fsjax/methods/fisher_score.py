"""Fisher score (Gu et al. 2011): a filter that scores each column by itself, without training."""

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

#: The highest score, of columns that vary between the classes but not within them.
HIGHEST = 1e12


def fisher_scores(x: Array, y: Array, num_classes: int, weight: Array | None = None) -> Array:
    """Variance between the classes divided by the variance within them, for each column.

    ``sum_c n_c (mu_c - mu)^2 / sum_c n_c var_c`` (Gu et al. 2011), which is the F statistic times
    ``(C - 1) / (N - C)``. scikit-feature computes the same, but its score is undefined for constant
    columns and for those that separate the classes perfectly.

    Args:
      x: ``(N, D)``.
      y: ``(N,)`` integer classes; some of them may not occur.
      num_classes: C.
      weight: ``(N,)`` non-negative weights of the rows; ``None`` weights all rows equally.

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
        # At default precision accelerators would round the factors of this product.
        sums = jnp.matmul(belongs.T, values, precision=jax.lax.Precision.HIGHEST)
        return sums / jnp.maximum(count, jnp.finfo(x.dtype).tiny)[:, None]

    # Differences from one row of each class are exactly 0 where a column is constant in the class.
    example = x[jnp.argmax(belongs > 0, axis=0)]
    offset = x - example[y]
    offset_mean = class_means(offset)
    within = jnp.sum(share * class_means(jnp.square(offset - offset_mean[y])), axis=0)
    return _ratio(example, offset_mean, within, count)


def sparse_fisher_scores(x: SparseRows, y: Array, num_classes: int, weight: Array) -> Array:
    """:func:`fisher_scores` of sparse rows, from sums over their non-zeros.

    Arguments and result are the same; no dense array is larger than ``(C, D)``.
    """
    belongs = jax.nn.one_hot(y, num_classes) * weight[:, None]
    count = jnp.sum(belongs, axis=0)
    share = (count / jnp.sum(count))[:, None]
    tiny = jnp.finfo(x.dtype).tiny
    rows = jnp.repeat(jnp.arange(len(x)), x.counts, total_repeat_length=x.values.size)
    cell, counts = (y[rows], x.columns), (weight > 0).astype(jnp.int32)

    def by_class(values: Array) -> Array:
        """Sums ``(C, D)`` over the non-zeros."""
        return jnp.zeros((num_classes, x.shape[1]), values.dtype).at[cell].add(values, mode="drop")

    # Weight of the zeros, exactly 0 where a class has none.
    in_class = jnp.zeros(num_classes, jnp.int32).at[y].add(counts)
    none = by_class(counts[rows]) == in_class[:, None]
    zeros = jnp.where(none, 0.0, jnp.maximum(count[:, None] - by_class(weight[rows]), 0.0))
    # As in fisher_scores, differences from one row of each class.
    example = x[jnp.argmax(belongs > 0, axis=0)]
    zero_offset = x.base - example
    column = jnp.minimum(x.columns, x.shape[1] - 1)
    offset, weights = x.values - example[cell[0], column], weight[rows]
    total = by_class(weights * offset) + zeros * zero_offset
    offset_mean = total / jnp.maximum(count, tiny)[:, None]
    squares = by_class(weights * jnp.square(offset - offset_mean[cell[0], column]))
    squares = squares + zeros * jnp.square(zero_offset - offset_mean)
    within = jnp.sum(share * squares / jnp.maximum(count, tiny)[:, None], axis=0)
    return _ratio(example, offset_mean, within, count)


def _ratio(example: Array, offset_mean: Array, within: Array, count: Array) -> Array:
    """The scores.

    Args:
      example: ``(C, D)`` a row of each class.
      offset_mean: ``(C, D)`` means of the classes minus these rows.
      within: ``(D,)`` variance within the classes.
      count: ``(C,)`` weights of the classes.
    """
    share = (count / jnp.sum(count))[:, None]
    # Relative to one class that occurs, so that equal means differ by exactly 0. The difference of
    # two rows is exact where their values are far from 0.
    most = jnp.argmax(count)
    mean = (example - example[most]) + offset_mean
    mean = mean - mean[most]
    between = jnp.sum(share * jnp.square(mean - jnp.sum(share * mean, axis=0)), axis=0)
    ratio = between / jnp.where(within > 0, within, 1.0)
    perfect = (within == 0) & (between > 0)
    return jnp.where(perfect, HIGHEST, jnp.minimum(ratio, HIGHEST))


@register(
    estimator="FisherScore",
    paper="Gu et al., UAI 2011",
    optimises="nothing: variance between the classes over that within them, column by column",
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
    """The Fisher score of each column: a supervised filter that trains nothing.

    The score of a column is the variance between the classes divided by the variance within them,
    ``sum_c n_c (mu_c - mu)^2 / sum_c n_c var_c``. With ``hidden``, a network like that of the
    concrete selectors is then trained on the K best columns, so that the method can predict.

    Args:
      num_features: K; ``None`` leaves it to ``fit``, which is possible only without a network.
        Constant columns are used only if there are too few others.
      hidden: widths of the network's hidden layers, as a tuple; ``None`` for no network.
      layer_norm: LayerNorm before each activation of the network.
      optimizer: of the network: ``adam``; or an Optax transformation, or a function from Spec to
        one.
      learning_rate: of the network's Adam; or an Optax schedule.

    Returns:
      The method, for classification; its scores are computed from all training rows.
    """

    def scores(key: Array, spec: Spec, data: TrainingRows) -> Array:
        y = dense(data.y)
        if is_sparse(data.x):
            return sparse_fisher_scores(data.x, y, spec.num_outputs, data.weight)
        return fisher_scores(data.x, y, spec.num_outputs, data.weight)

    only = ("classification",)
    if hidden is None:
        return filter_method(scores, only, num_features=num_features, sparse=True)
    if num_features is None:
        raise ConfigError(
            f"a network needs num_features (hidden={hidden}); give the number of its inputs"
        )
    return network_on_columns(
        scores,
        num_features,
        hidden=hidden,
        layer_norm=layer_norm,
        optimizer=optimizer,
        learning_rate=learning_rate,
        only=only,
    )
