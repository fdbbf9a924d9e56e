"""CTRE: sparse networks that grow connections between similar neurons (Atashgahi et al. 2022)."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from jax import Array

from fsjax.arguments import STATIC, Count, Fraction, Share
from fsjax.method import Method, TrainState
from fsjax.methods.shared.sparse_network import SPARSE, GrowInit, sparse_network
from fsjax.registry import register
from fsjax.sparsity import drop as drop_rules
from fsjax.sparsity import grow as grow_rules

Similarity = Literal["cosine", "hebb", "euclidean"]


@register(
    estimator="CTRESim",
    paper="Atashgahi et al., Machine Learning 2022",
    optimises="the loss of a sparse network that grows between similar neurons",
    **SPARSE,
)
def ctre_sim(
    *,
    drop_fraction: Share = 0.2,
    drop: Literal["magnitude", "lowest_similarity", "random"] = "magnitude",
    grow: Literal["similar_or_random", "similar", "dissimilar_or_random"] = "similar_or_random",
    similarity: Similarity = "cosine",
    similarity_fraction: Annotated[Fraction, STATIC] = 1.0,
    grow_init: GrowInit = "uniform",
    blind_start: bool = False,
    **options: Any,
) -> Method:
    """A sparse ReLU network that grows connections between similar neurons (Algorithm 2).

    After each epoch it drops the weakest connections and grows the missing ones between the most
    similar neurons. If such a connection has just been dropped, a random one is grown instead.

    Args:
      drop_fraction: zeta, the share of the connections that is replaced, in [0, 1].
      drop: which connections are dropped: smallest ``magnitude``, ``lowest_similarity`` or
        ``random`` (section 5.2).
      grow: which connections are grown: ``similar_or_random`` as above, ``similar`` ("w/o random")
        or ``dissimilar_or_random`` ("LTH"; section 5.1).
      similarity: ``cosine`` (eq. 2), ``hebb`` (section 5.3) or ``euclidean`` (eq. 4).
      similarity_fraction: share of the training rows that similarities are computed from, in
        (0, 1] (Table 7).
      grow_init: initial weights of new connections: ``uniform`` within sqrt(6 / n_in), or
        ``zeros``.
      blind_start: whether the connections also change once before training, as in the authors' code
        (but not in the paper). No similarity is known then, so that those grown are the first
        missing ones: they join the first neurons of each layer to those of the next one.
      **options: those of :class:`fsjax.methods.shared.sparse_network.SparseOptions`.
    """
    return sparse_network(
        drop=getattr(drop_rules, drop),
        grow=getattr(grow_rules, grow),
        drop_fraction=drop_fraction,
        grow_init=grow_init,
        similarity=similarity,
        similarity_fraction=similarity_fraction,
        first_growth=getattr(grow_rules, grow) if blind_start else None,
        **options,
    )


@register(
    estimator="CTRESeq",
    paper="Atashgahi et al., Machine Learning 2022",
    optimises="the loss of a sparse network that grows between similar neurons, later at random",
    **(SPARSE | {"small": {**SPARSE["small"], "patience": 1}}),
)
def ctre_seq(
    *,
    drop_fraction: Share = 0.2,
    order: Literal["similar_first", "random_first", "half"] = "similar_first",
    patience: Count = 40,
    similarity: Similarity = "cosine",
    similarity_fraction: Annotated[Fraction, STATIC] = 1.0,
    grow_init: GrowInit = "uniform",
    blind_start: bool = False,
    **options: Any,
) -> Method:
    """A sparse ReLU network that grows between similar neurons, and at random once that stalls.

    It changes from similar to random growth when validation has not improved for ``patience``
    epochs (Algorithm 1), judged by the value by which ``fit`` keeps the best epoch. Without
    validation rows it never changes.

    Args:
      drop_fraction: zeta, the share of the connections that is replaced, in [0, 1].
      order: ``similar_first``, as above; ``random_first``, the reverse (appendix E, ablation 1); or
        ``half``: random in the first half of the epochs, similar in the second (ablation 2).
      patience: epochs without improvement after which validation counts as stalled, at least 1.
      similarity: ``cosine`` (eq. 2), ``hebb`` (section 5.3) or ``euclidean`` (eq. 4).
      similarity_fraction: share of the training rows that similarities are computed from, in
        (0, 1].
      grow_init: initial weights of new connections: ``uniform`` within sqrt(6 / n_in), or
        ``zeros``.
      blind_start: whether the connections also change once before training, as in the authors' code
        (but not in the paper). No similarity is known then, so that those grown are the first
        missing ones: they join the first neurons of each layer to those of the next one.
      **options: those of :class:`fsjax.methods.shared.sparse_network.SparseOptions`.
    """
    rules = (grow_rules.similar, grow_rules.random)

    def search(state: TrainState) -> Array:
        if order == "half":
            return 2 * state.epoch >= state.spec.num_epochs
        return (state.best.epoch > 0) & (state.epoch - state.best.epoch >= patience)

    return sparse_network(
        drop=drop_rules.magnitude,
        grow=grow_rules.switched(*(rules if order == "similar_first" else rules[::-1])),
        drop_fraction=drop_fraction,
        grow_init=grow_init,
        similarity=similarity,
        similarity_fraction=similarity_fraction,
        search=search,
        first_growth=grow_rules.similar if blind_start else None,
        **options,
    )
