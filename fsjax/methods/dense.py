"""The dense network behind the sparse methods: the baseline of the CTRE paper's Table 2."""

from __future__ import annotations

from collections.abc import Sequence

from fsjax.method import Method
from fsjax.methods.cached import cached_method
from fsjax.methods.sparse_network import sparse_network


@cached_method
def dense(
    *,
    hidden: Sequence[int] = (1000, 1000, 1000),
    learning_rate: float = 0.01,
    momentum: float = 0.9,
    l2: float = 1e-4,
) -> Method:
    """A dense ReLU network, trained as the sparse ones are.

    Args:
      hidden: widths of the hidden layers, as a tuple.
      learning_rate: of gradient descent with Nesterov's momentum.
      momentum: in [0, 1).
      l2: weight of half the sum of squared weights in the loss.

    Returns:
      The method; its score of a column is the sum of its absolute outgoing weights.

    Raises:
      ConfigError: for a value outside its range.
    """
    return sparse_network(
        "dense",
        hidden=hidden,
        epsilon=None,
        density=None,
        rewiring=None,
        learning_rate=learning_rate,
        momentum=momentum,
        l2=l2,
    )
