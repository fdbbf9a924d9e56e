"""SNIP: single-shot pruning before training (Lee et al. 2019), as the CTRE paper runs it."""

from __future__ import annotations

from collections.abc import Sequence

from fsjax.method import Method
from fsjax.methods.cached import cached_method
from fsjax.methods.sparse_network import sparse_network


@cached_method
def snip(
    *,
    hidden: Sequence[int] = (1000, 1000, 1000),
    epsilon: float | None = 1.0,
    density: float | None = None,
    learning_rate: float = 0.01,
    momentum: float = 0.9,
    l2: float = 1e-4,
) -> Method:
    """A ReLU network that is pruned once, before the first step, and then keeps its topology.

    The sensitivity of a connection is the absolute product of its weight and its gradient on one
    random batch of the dense network. Layers are ranked one by one.

    Args:
      hidden: widths of the hidden layers, as a tuple.
      epsilon: Erdos-Renyi: a layer keeps ``epsilon (n_in + n_out)`` connections.
      density: instead of epsilon (then 0), the share kept in every layer.
      learning_rate: of gradient descent with Nesterov's momentum.
      momentum: in [0, 1).
      l2: weight of half the sum of squared weights in the loss.

    Returns:
      The method; its score of a column is the sum of its absolute outgoing weights.

    Raises:
      ConfigError: for a value outside its range.
    """
    return sparse_network(
        "snip",
        hidden=hidden,
        epsilon=epsilon,
        density=density,
        rewiring=None,
        prune_at_start=True,
        learning_rate=learning_rate,
        momentum=momentum,
        l2=l2,
    )
