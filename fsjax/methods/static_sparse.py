"""Static sparse training: a random topology that stays, the control of dynamic training."""

from __future__ import annotations

from collections.abc import Sequence

from fsjax.method import Method
from fsjax.methods.cached import cached_method
from fsjax.methods.sparse_network import check_sparse, sparse_network


@cached_method
def static_sparse(
    *,
    hidden: Sequence[int] = (1000, 1000, 1000),
    epsilon: float | None = 1.0,
    density: float | None = None,
    learning_rate: float = 0.01,
    momentum: float = 0.9,
    l2: float = 1e-4,
) -> Method:
    """A sparse ReLU network whose random connections never change.

    Args:
      hidden: widths of the hidden layers, as a tuple.
      epsilon: Erdos-Renyi: a layer has ``epsilon (n_in + n_out)`` connections.
      density: instead of epsilon (then 0), the share of connections in every layer.
      learning_rate: of gradient descent with Nesterov's momentum.
      momentum: in [0, 1).
      l2: weight of half the sum of squared weights in the loss.

    Returns:
      The method; its score of a column is the sum of its absolute outgoing weights.

    Raises:
      ConfigError: for a value outside its range.
    """
    check_sparse("static_sparse", epsilon, density)
    return sparse_network(
        "static_sparse",
        hidden=hidden,
        epsilon=epsilon,
        density=density,
        rewiring=None,
        learning_rate=learning_rate,
        momentum=momentum,
        l2=l2,
    )
