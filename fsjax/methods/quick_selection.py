"""QuickSelection: feature selection by a denoising autoencoder trained with SET."""

from __future__ import annotations

from collections.abc import Sequence

from fsjax.method import Method
from fsjax.methods.cached import cached_method
from fsjax.methods.checks import check_choice
from fsjax.methods.set import DROPS
from fsjax.methods.sparse_network import Rewiring, sparse_network
from fsjax.sparsity import grow


@cached_method
def quick_selection(
    *,
    hidden: Sequence[int] = (200,),
    epsilon: float | None = None,
    density: float | None = 0.2,
    drop_fraction: float = 0.3,
    drop: str = "per_sign",
    grow_init: str = "zeros",
    input_noise: float = 0.2,
    initialisation: str = "fan_in",
    learning_rate: float = 0.1,
    momentum: float = 0.9,
    l2: float = 0.0,
) -> Method:
    """A sparse sigmoid autoencoder whose strongest input neurons are the selection.

    The defaults are those with which the WAST paper compares (its appendix A.1). The original
    (Atashgahi et al. 2022) has 1000 hidden neurons, epsilon 13, drop fraction 0.2, learning rate
    0.01 and l2 1e-5; it draws its input noise once and grows weights from a normal distribution.

    Args:
      hidden: widths of the hidden layers, as a tuple.
      epsilon: Erdos-Renyi: a layer has ``epsilon (n_in + n_out)`` connections.
      density: instead of epsilon (then 0), the share of connections in every layer.
      drop_fraction: share of the connections that is replaced after each epoch, in [0, 1].
      drop: ``per_sign``, or ``magnitude`` over all weights.
      grow_init: new weights are ``zeros``, or ``uniform`` within sqrt(6 / n_in).
      input_noise: standard deviation of Gaussian noise on the inputs.
      initialisation: ``fan_in`` (PyTorch's) or ``glorot``.
      learning_rate: of gradient descent with Nesterov's momentum.
      momentum: in [0, 1).
      l2: weight of half the sum of squared weights in the loss.

    Returns:
      The method; its score of a column is the strength of its input neuron, the sum of its
      absolute outgoing weights. It needs no labels.

    Raises:
      ConfigError: for a value outside its range.
    """
    check_choice("drop", drop, DROPS)
    return sparse_network(
        "quick_selection",
        hidden=hidden,
        epsilon=epsilon,
        density=density,
        rewiring=Rewiring(DROPS[drop], grow.random, drop_fraction, grow_init),
        activation="sigmoid",
        initialisation=initialisation,
        learning_rate=learning_rate,
        momentum=momentum,
        l2=l2,
        input_noise=input_noise,
        only=("reconstruction",),
    )
