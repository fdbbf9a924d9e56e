"""CTRE_seq: similarity first, random search later (Atashgahi et al. 2022, Algorithm 1)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fsjax.errors import check_whole
from fsjax.method import Array, Method, TrainState
from fsjax.methods.cached import cached_method
from fsjax.methods.checks import check_choice
from fsjax.methods.sparse_network import Rewiring, sparse_network
from fsjax.sparsity import drop
from fsjax.sparsity.grow import random, similar, switched

#: ``similar_first`` is the method; the others are the ablations 1 and 2 of appendix E.
ORDERS = ("similar_first", "random_first", "half")


@cached_method
def ctre_seq(
    *,
    hidden: Sequence[int] = (1000, 1000, 1000),
    epsilon: float | None = 1.0,
    density: float | None = None,
    drop_fraction: float = 0.2,
    order: str = "similar_first",
    patience: int = 40,
    similarity: str = "cosine",
    similarity_fraction: float = 1.0,
    grow_init: str = "uniform",
    learning_rate: float = 0.01,
    momentum: float = 0.9,
    l2: float = 1e-4,
) -> Method:
    """A sparse ReLU network that grows between similar neurons until validation stalls.

    From then on it grows at random. What stalls is the value by which ``fit`` keeps the best
    epoch; without validation rows the first rule stays for ever.

    Args:
      hidden: widths of the hidden layers, as a tuple.
      epsilon: Erdos-Renyi: a layer has ``epsilon (n_in + n_out)`` connections.
      density: instead of epsilon (then 0), the share of connections in every layer.
      drop_fraction: zeta, share of the connections that is replaced, in [0, 1].
      order: ``similar_first``; ``random_first`` until validation stalls (appendix E, ablation 1);
        ``half``: random in the first half of the epochs, similar in the second (ablation 2).
      patience: epochs without improvement after which validation counts as stalled, at least 1.
      similarity: ``cosine`` (eq. 2), ``hebb`` (section 5.3) or ``euclidean`` (eq. 4).
      similarity_fraction: share of the training rows it is computed from, in (0, 1].
      grow_init: new weights ``uniform`` within sqrt(6 / n_in), or ``zeros``.
      learning_rate: of gradient descent with Nesterov's momentum.
      momentum: in [0, 1).
      l2: weight of half the sum of squared weights in the loss.

    Returns:
      The method; its score of a column is the sum of its absolute outgoing weights.

    Raises:
      ConfigError: for a value outside its range.
    """
    check_choice("order", order, ORDERS)
    patience = check_whole("patience", patience)
    rules = (similar, random) if order == "similar_first" else (random, similar)
    return sparse_network(
        "ctre_seq",
        hidden=hidden,
        epsilon=epsilon,
        density=density,
        rewiring=Rewiring(
            drop.magnitude,
            switched(*rules),
            drop_fraction,
            grow_init,
            similarity=similarity,
            similarity_fraction=similarity_fraction,
            search=_half_way if order == "half" else _stalled(patience),
        ),
        learning_rate=learning_rate,
        momentum=momentum,
        l2=l2,
    )


def _half_way(state: TrainState) -> Array:
    return 2 * state.epoch >= state.spec.num_epochs


def _stalled(patience: int) -> Callable[[TrainState], Array]:
    def stalled(state: TrainState) -> Array:
        best = state.best.epoch
        return (best > 0) & (state.epoch - best >= patience)

    return stalled
