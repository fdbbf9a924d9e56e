"""Fisher score: the classical filter (Gu et al. 2011), column by column and without training."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array

from fsjax.arguments import Count, Positive, Widths
from fsjax.errors import ConfigError
from fsjax.method import Batch, Method, Spec
from fsjax.methods.shared.fixed_columns import filter_method, network_on_columns
from fsjax.registry import register

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
    # Likewise of the classes' means from one of them, that of a class that occurs.
    mean = example + offset_mean
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
    learning_rate: Positive = 1e-3,
) -> Method:
    """The Fisher score of every column, a filter that trains nothing.

    With ``hidden`` the decoder of the concrete selectors is trained on the K best columns, so that
    the method predicts as they do.

    Args:
      num_features: K; ``None`` leaves it to ``fit``, where there is no network. Constant columns
        are not used while there are others.
      hidden: widths of the network's hidden layers, as a tuple; ``None`` for no network.
      layer_norm: LayerNorm before each activation of the network.
      learning_rate: of the network's Adam.

    Returns:
      The method, for classification; its scores are those of all training rows.
    """

    def scores(key: Array, spec: Spec, data: Batch) -> Array:
        return fisher_scores(data.x, data.y, spec.num_outputs, data.weight)

    only = ("classification",)
    if hidden is None:
        method = filter_method(scores, only)
        return method._replace(about=method.about._replace(num_features=num_features))
    if num_features is None:
        raise ConfigError("a network needs num_features; give how many columns it sees")
    return network_on_columns(
        scores,
        num_features,
        hidden=hidden,
        layer_norm=layer_norm,
        learning_rate=learning_rate,
        only=only,
    )
