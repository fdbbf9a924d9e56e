"""SET: sparse evolutionary training (Mocanu et al. 2018), as the CTRE paper runs it."""

from __future__ import annotations

from collections.abc import Sequence

from fsjax.method import Method
from fsjax.methods.cached import cached_method
from fsjax.methods.checks import check_choice
from fsjax.methods.sparse_network import Rewiring, sparse_network
from fsjax.sparsity import drop as drop_rules
from fsjax.sparsity import grow as grow_rules

#: Drop rules by name: ``magnitude`` ranks all weights, ``per_sign`` each sign by itself.
DROPS = {"magnitude": drop_rules.magnitude, "per_sign": drop_rules.per_sign}


@cached_method
def set(  # noqa: A001
    *,
    hidden: Sequence[int] = (1000, 1000, 1000),
    epsilon: float | None = 1.0,
    density: float | None = None,
    drop_fraction: float = 0.2,
    drop: str = "magnitude",
    grow_init: str = "uniform",
    learning_rate: float = 0.01,
    momentum: float = 0.9,
    l2: float = 1e-4,
) -> Method:
    """A sparse ReLU network that drops small weights after each epoch and grows random ones.

    Args:
      hidden: widths of the hidden layers, as a tuple.
      epsilon: Erdos-Renyi: a layer has ``epsilon (n_in + n_out)`` connections.
      density: instead of epsilon (then 0), the share of connections in every layer.
      drop_fraction: zeta, share of the connections that is replaced, in [0, 1].
      drop: ``magnitude`` as in CTRE's comparison, or ``per_sign`` as in the original.
      grow_init: new weights ``uniform`` within sqrt(6 / n_in), or ``zeros``.
      learning_rate: of gradient descent with Nesterov's momentum.
      momentum: in [0, 1).
      l2: weight of half the sum of squared weights in the loss.

    Returns:
      The method; its score of a column is the sum of its absolute outgoing weights.

    Raises:
      ConfigError: for a value outside its range.
    """
    check_choice("drop", drop, DROPS)
    return sparse_network(
        "set",
        hidden=hidden,
        epsilon=epsilon,
        density=density,
        rewiring=Rewiring(DROPS[drop], grow_rules.random, drop_fraction, grow_init),
        learning_rate=learning_rate,
        momentum=momentum,
        l2=l2,
    )
