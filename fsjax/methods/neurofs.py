"""NeuroFS: a sparse network whose input neurons are pruned and regrown during training.

Atashgahi et al., "Supervised Feature Selection with Neuron Evolution in Sparse Neural Networks",
TMLR 2023.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Literal, NamedTuple

import jax.numpy as jnp
from jax import Array

from fsjax.arguments import (
    STATIC,
    TERM,
    Count,
    Layers,
    NonNegative,
    Optimizer,
    Positive,
    Rate,
    Schedule,
    Share,
    known,
)
from fsjax.method import Method, Phase, Spec, TrainingRows, TrainState
from fsjax.methods.shared.attribution import ScoreName
from fsjax.methods.shared.sparse_network import sparse_network
from fsjax.registry import register
from fsjax.sparsity import Layer, largest, may_shrink, needs
from fsjax.sparsity import drop as drop_rules
from fsjax.sparsity import grow as grow_rules
from fsjax.sparsity.rules import DropRule, GrowRule
from fsjax.tasks import SUPERVISED

#: Number of first topology changes that do not prune or regrow input neurons.
PLAIN_CHANGES = 2


class Evolution(NamedTuple):
    """One change of the input neurons.

    Attributes:
      kept: ``(D,)`` bool, the active neurons that stay.
      inactive: ``(D,)`` bool, the neurons that were inactive before the change.
      number: int32, how many inactive neurons are to be regrown.
    """

    kept: Array
    inactive: Array
    number: Array


@register(
    estimator="NeuroFS",
    paper="Atashgahi et al., TMLR 2023",
    optimises="the loss of a sparse network whose inputs are pruned and regrown",
    num_epochs=100,
    batch_size=100,
    scaling="minmax",
    training={"min_steps_per_epoch": 5},
    small={"num_features": 4, "hidden": (16, 8), "epsilon": 3.0, "learning_rate": 0.03},
)
def neurofs(
    num_features: Count = 50,
    *,
    hidden: Layers = (1000, 1000, 1000),
    epsilon: Annotated[Positive, STATIC] = 30.0,
    input_fraction: Share = 0.2,
    hidden_fraction: Share = 0.3,
    removal_share: Share = 0.65,
    activation: Literal["relu", "sigmoid", "tanh"] = "tanh",
    optimizer: Literal["sgd"] | Optimizer = "sgd",
    learning_rate: Positive | Schedule = 0.01,
    momentum: Rate = 0.9,
    l2: Annotated[NonNegative, TERM] = 2e-5,
    rank_by: ScoreName = "strength",
) -> Method:
    """A sparse network that prunes its weakest input neurons and regrows some by their gradient.

    The input neurons change after each epoch from the third on. In the first part of the training,
    the ``ceil((R - r) / t)`` active neurons with the smallest strength are removed for good, where
    ``R = (1 - input_fraction) D - K`` neurons are to be removed in all, r have been removed, and t
    changes are to come. In addition, a share of r that falls from ``input_fraction`` to 0 is
    exchanged: as many active neurons are pruned, and as many inactive ones regrown, those with the
    largest gradient of a missing connection. Until all R are removed, regrown neurons are protected
    for one epoch. In the end ``K + input_fraction D`` input neurons are active. Connections that
    are lost are regrown at active neurons. In other layers, the weakest connections of each sign
    are dropped, and those with the largest gradient grown.

    The authors' code takes gradients of the sum of the class probabilities, which are 0 up to
    rounding; here they are those of the loss on a random batch, as the paper describes.

    Args:
      num_features: K.
      hidden: widths of the hidden layers.
      epsilon: Erdos-Renyi density, above 0: a layer has ``epsilon (n_in + n_out)`` connections, or
        is dense if it has fewer weights.
      input_fraction: zeta_in, in [0, 1]: share of removed neurons that is exchanged, and share of
        the connections of the remaining input neurons that is replaced.
      hidden_fraction: zeta_h, in [0, 1]: share of the connections that is replaced in other layers.
      removal_share: alpha, in [0, 1]: share of the epochs in which neurons are removed for good.
      activation: activation of the hidden layers; the authors use ``relu`` for ISOLET, else
        ``tanh``.
      optimizer: ``sgd``; or an Optax transformation, or a function from Spec to one.
      learning_rate: of gradient descent with Nesterov's momentum; or an Optax schedule.
      momentum: of gradient descent, in [0, 1).
      l2: factor of half the sum of squared weights in the loss, at least 0.
      rank_by: score of a column: its ``strength``, as in the paper, or by derivatives; see
        :func:`fsjax.methods.shared.attribution.scored_by`.

    Returns:
      The method; with ``strength``, columns that were removed score 0.
    """

    def evolution(layer: Layer) -> Evolution:
        return evolve(layer, num_features, input_fraction, removal_share)

    method = sparse_network(
        drop=drop_inputs(evolution, input_fraction, hidden_fraction),
        grow=grow_inputs(evolution),
        # Ignored by the drop rule, which has a fraction of its own for each layer.
        drop_fraction=1.0,
        epsilon=epsilon,
        hidden=hidden,
        optimizer=optimizer,
        learning_rate=learning_rate,
        momentum=momentum,
        l2=l2,
        rank_by=rank_by,
        activation=activation,
        only=SUPERVISED,
    )

    def init(key: Array, spec: Spec, data: TrainingRows) -> TrainState:
        state = method.init(key, spec, data)
        return state.replace(extra={**state.extra, "young": jnp.zeros(spec.num_columns, bool)})

    def after_epoch(state: TrainState, data: TrainingRows, key: Array) -> TrainState:
        before = active_inputs(state.masks["layer_0"]["kernel"])
        state = method.after_epoch(state, data, key)
        young = active_inputs(state.masks["layer_0"]["kernel"]) & ~before
        return state.replace(extra={**state.extra, "young": young})

    def monitor(state: TrainState) -> dict[str, Array]:
        active = active_inputs(state.masks["layer_0"]["kernel"])
        return {"num_active": jnp.sum(active).astype(jnp.float32)}

    changes = Phase(
        name=f"input neurons change (after epoch {PLAIN_CHANGES + 1})",
        epochs=PLAIN_CHANGES + 2,
        without="columns are ranked by weights, as input neurons neither die nor grow",
    )

    def phases(spec: Spec) -> tuple[Phase, ...]:
        last = spec.num_epochs
        if known(removal_share):
            last = min(int(removal_share * last + 1e-3) + 1, last)
        gone = Phase(
            name=f"the last input neurons leave (epoch {last})",
            epochs=max(last, changes.epochs),
            without="more columns are left than the method is to choose from",
        )
        return changes, gone

    return method._replace(
        phases=phases,
        about=method.about._replace(num_features=num_features),
        init=init,
        after_epoch=after_epoch,
        monitor=monitor,
        keep="last",
    )


def active_inputs(mask: Array) -> Array:
    """``(D,)`` bool: input neurons with a connection in ``(D, H)``."""
    return jnp.any(mask, axis=1)


def evolve(
    layer: Layer, num_features: int, fraction: Array | float, removal_share: Array | float
) -> Evolution:
    """Decides which input neurons stay and how many are regrown.

    Args:
      layer: the first layer, with the state of the method.
      num_features: K.
      fraction: zeta_in.
      removal_share: alpha.
    """
    state, active = layer.state, active_inputs(layer.mask)
    size, epochs, done = active.size, state.spec.num_epochs, state.epoch - 1
    removed = size - jnp.sum(active, dtype=jnp.int32)
    # R = (1 - zeta) D - K, of which ceil((R - r) / t) leave now
    target = jnp.maximum(jnp.floor((1.0 - fraction) * size - num_features + 1e-3), 0.0)
    left = jnp.maximum(jnp.floor(removal_share * epochs + 1e-3) - done, 1.0)
    leaving = jnp.ceil(jnp.maximum(target - removed, 0.0) / left - 1e-3).astype(jnp.int32)
    share = fraction * (1.0 - done / epochs)
    exchanged = jnp.floor(share * removed + 1e-3).astype(jnp.int32)

    # Constant columns leave first.
    strength = jnp.where(state.feature_mask, jnp.sum(jnp.abs(layer.weight), axis=1), -1.0)
    staying = largest(strength, jnp.sum(active) - leaving - exchanged, active)
    removing = removed + leaving < target
    protected = active & state.extra["young"] & removing
    kept = staying | protected
    number = jnp.maximum(jnp.sum(active & ~kept, dtype=jnp.int32) - leaving, 0)
    plain = done < PLAIN_CHANGES
    return Evolution(jnp.where(plain, active, kept), ~active, jnp.where(plain, 0, number))


def drop_inputs(
    evolution: Callable[[Layer], Evolution],
    input_fraction: Array | float,
    hidden_fraction: Array | float,
) -> DropRule:
    """Drops neurons and weak connections of the first layer, weak connections of the others."""

    @needs("state")
    def rule(layer: Layer, fraction: Array, key: Array) -> Array:
        del fraction
        if layer.number > 0:
            return drop_rules.per_sign(layer, hidden_fraction, key)
        kept = evolution(layer).kept[:, None]
        plain = layer.state.epoch <= PLAIN_CHANGES
        share = jnp.where(plain, hidden_fraction, input_fraction)
        staying = layer._replace(mask=layer.mask & kept, weight=jnp.where(kept, layer.weight, 0.0))
        return (layer.mask & ~kept) | drop_rules.per_sign(staying, share, key)

    return rule


def grow_inputs(evolution: Callable[[Layer], Evolution]) -> GrowRule:
    """Grows by gradient; in the first layer only at neurons that stay or are regrown."""

    # The first layer loses connections if its active neurons have no room for all of them.
    @may_shrink
    @needs("gradient", "state")
    def rule(layer: Layer, dropped: Array, key: Array) -> Array:
        if layer.number > 0:
            return grow_rules.gradient(layer, dropped, key)
        kept, inactive, number = evolution(layer)
        slope = grow_rules.gradient(layer, dropped, key)
        inactive &= layer.state.feature_mask
        added = largest(jnp.max(slope, axis=1), number, inactive)
        free = (kept | added)[:, None] & (~layer.mask | dropped)
        return largest(slope, jnp.sum(dropped, dtype=jnp.int32), free)

    return rule
