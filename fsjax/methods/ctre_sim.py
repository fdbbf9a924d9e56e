"""CTRE_sim: similarity and random search at once (Atashgahi et al. 2022, Algorithm 2)."""

from __future__ import annotations

from collections.abc import Sequence

from fsjax.method import Method
from fsjax.methods.cached import cached_method
from fsjax.methods.checks import check_choice
from fsjax.methods.sparse_network import Rewiring, sparse_network
from fsjax.sparsity import drop as drop_rules
from fsjax.sparsity import grow as grow_rules

#: Drop rules by name; the paper compares them in section 5.2.
DROPS = {
    "magnitude": drop_rules.magnitude,
    "lowest_similarity": drop_rules.lowest_similarity,
    "random": drop_rules.random,
}

#: Grow rules by name: the method, and the ablations "w/o random" and "LTH" of section 5.1.
GROWS = {
    "similar_or_random": grow_rules.similar_or_random,
    "similar": grow_rules.similar,
    "dissimilar_or_random": grow_rules.dissimilar_or_random,
}


@cached_method
def ctre_sim(
    *,
    hidden: Sequence[int] = (1000, 1000, 1000),
    epsilon: float | None = 1.0,
    density: float | None = None,
    drop_fraction: float = 0.2,
    drop: str = "magnitude",
    grow: str = "similar_or_random",
    similarity: str = "cosine",
    similarity_fraction: float = 1.0,
    grow_init: str = "uniform",
    learning_rate: float = 0.01,
    momentum: float = 0.9,
    l2: float = 1e-4,
) -> Method:
    """A sparse ReLU network that grows connections between similar neurons.

    Where such a connection was dropped a moment before, a random one is grown in its place.

    Args:
      hidden: widths of the hidden layers, as a tuple.
      epsilon: Erdos-Renyi: a layer has ``epsilon (n_in + n_out)`` connections.
      density: instead of epsilon (then 0), the share of connections in every layer.
      drop_fraction: zeta, share of the connections that is replaced, in [0, 1].
      drop: ``magnitude``, ``lowest_similarity`` or ``random`` (section 5.2).
      grow: ``similar_or_random``, ``similar`` ("w/o random") or ``dissimilar_or_random`` ("LTH";
        section 5.1).
      similarity: ``cosine`` (eq. 2), ``hebb`` (section 5.3) or ``euclidean`` (eq. 4).
      similarity_fraction: share of the training rows it is computed from, in (0, 1] (Table 7).
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
    check_choice("grow", grow, GROWS)
    return sparse_network(
        "ctre_sim",
        hidden=hidden,
        epsilon=epsilon,
        density=density,
        rewiring=Rewiring(
            DROPS[drop],
            GROWS[grow],
            drop_fraction,
            grow_init,
            similarity=similarity,
            similarity_fraction=similarity_fraction,
        ),
        learning_rate=learning_rate,
        momentum=momentum,
        l2=l2,
    )
