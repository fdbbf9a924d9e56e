"""RigL (Evci et al. 2020), with the schedule of the CTRE paper: one change after each epoch."""

from __future__ import annotations

from collections.abc import Sequence

from fsjax.method import Method
from fsjax.methods.cached import cached_method
from fsjax.methods.sparse_network import Rewiring, sparse_network
from fsjax.sparsity import drop, grow


@cached_method
def rigl(
    *,
    hidden: Sequence[int] = (1000, 1000, 1000),
    epsilon: float | None = 1.0,
    density: float | None = None,
    drop_fraction: float = 0.2,
    grow_init: str = "zeros",
    learning_rate: float = 0.01,
    momentum: float = 0.9,
    l2: float = 1e-4,
) -> Method:
    """A sparse ReLU network that grows where the gradient of a dense layer would be largest.

    The gradient is that of one random batch, and no weight is updated by it.

    Args:
      hidden: widths of the hidden layers, as a tuple.
      epsilon: Erdos-Renyi: a layer has ``epsilon (n_in + n_out)`` connections.
      density: instead of epsilon (then 0), the share of connections in every layer.
      drop_fraction: share of the connections that is replaced, constant, in [0, 1].
      grow_init: new weights are ``zeros``, or ``uniform`` within sqrt(6 / n_in).
      learning_rate: of gradient descent with Nesterov's momentum.
      momentum: in [0, 1).
      l2: weight of half the sum of squared weights in the loss.

    Returns:
      The method; its score of a column is the sum of its absolute outgoing weights. For the
      original schedule on a network of your own, see :func:`fsjax.sparsity.sparse`.

    Raises:
      ConfigError: for a value outside its range.
    """
    return sparse_network(
        "rigl",
        hidden=hidden,
        epsilon=epsilon,
        density=density,
        rewiring=Rewiring(
            drop.magnitude, grow.gradient, drop_fraction, grow_init, uses_gradient=True
        ),
        learning_rate=learning_rate,
        momentum=momentum,
        l2=l2,
    )
