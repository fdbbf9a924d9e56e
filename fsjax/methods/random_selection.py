"""Random selection: the control that any selector has to beat."""

from __future__ import annotations

from collections.abc import Sequence

import jax

from fsjax.method import Method
from fsjax.methods.cached import cached_method
from fsjax.methods.fixed_columns import fixed_columns


@cached_method
def random_selection(
    num_features: int = 50,
    *,
    hidden: Sequence[int] = (200,),
    layer_norm: bool = True,
    learning_rate: float = 1e-3,
) -> Method:
    """The decoder of the concrete selectors on K distinct columns drawn at random for each seed.

    Args:
      num_features: K. Constant columns are not drawn while there are others.
      hidden: widths of the network's hidden layers, as a tuple.
      layer_norm: LayerNorm before each activation.
      learning_rate: of Adam.

    Returns:
      The method; its scores are the random numbers that were drawn.

    Raises:
      ConfigError: for a value outside its range.
    """
    return fixed_columns(
        "random_selection",
        num_features,
        hidden=hidden,
        layer_norm=layer_norm,
        learning_rate=learning_rate,
        first_score=lambda key, columns: jax.random.uniform(key, (columns,)),
    )
