"""Random selection: the baseline that any selector has to beat."""

from __future__ import annotations

from typing import Literal

import jax

from fsjax.arguments import Count, Optimizer, Positive, Schedule, Widths
from fsjax.method import Method
from fsjax.methods.shared.fixed_columns import network_on_columns
from fsjax.registry import register


@register(
    estimator="RandomSelection",
    paper="control",
    optimises="the loss of a network behind K columns drawn at random",
    small={"num_features": 4, "hidden": (6,), "learning_rate": 0.03},
)
def random_selection(
    num_features: Count = 50,
    *,
    hidden: Widths = (200,),
    layer_norm: bool = True,
    optimizer: Literal["adam"] | Optimizer = "adam",
    learning_rate: Positive | Schedule = 1e-3,
) -> Method:
    """A network on K distinct columns that are drawn at random for each seed.

    The network is the decoder of the concrete selectors.

    Args:
      num_features: K. Constant columns are drawn only if there are too few others.
      hidden: widths of the network's hidden layers, as a tuple.
      layer_norm: LayerNorm before each activation.
      optimizer: ``adam``; or an Optax transformation, or a function from Spec to one.
      learning_rate: of Adam; or an Optax schedule.

    Returns:
      The method; its scores are random numbers in [0, 1).
    """
    return network_on_columns(
        lambda key, spec, data: jax.random.uniform(key, (spec.num_columns,)),
        num_features,
        hidden=hidden,
        layer_norm=layer_norm,
        optimizer=optimizer,
        learning_rate=learning_rate,
    )
