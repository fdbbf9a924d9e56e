"""Methods that choose their K columns before training: filters, and networks on their columns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import optax
from jax import Array

from fsjax import tasks
from fsjax.arguments import Optimizer, Schedule, Widths
from fsjax.distinct_columns import distinct_top_k
from fsjax.method import (
    About,
    Batch,
    Method,
    PyTree,
    Selection,
    Spec,
    TrainingRows,
    TrainState,
    create_state,
)
from fsjax.nets import MLP, outputs_of

#: ``(key, spec, data) -> scores (D,)``, computed from all training rows.
Filter = Callable[[Array, Spec, TrainingRows], Array]


def filter_method(scores: Filter, only: tuple[str, ...] = tasks.TASKS, **about: Any) -> Method:
    """A method that scores columns and trains nothing.

    Args:
      scores: computes the scores. For NumPy code see :mod:`fsjax.methods.shared.on_host`.
      only: the tasks of the method; the first one is its default.
      **about: further fields of :class:`fsjax.About`.
    """

    def init(key: Array, spec: Spec, data: TrainingRows) -> TrainState:
        return create_state(spec, (), extra={"score": scores(key, spec, data)})

    return Method(
        About(tasks=only, **about), init=init, select=lambda state: Selection(state.extra["score"])
    )


def network_on_columns(
    scores: Filter,
    num_features: int,
    *,
    hidden: Widths,
    layer_norm: bool,
    optimizer: str | Optimizer,
    learning_rate: float | Schedule,
    only: tuple[str, ...] = tasks.TASKS,
) -> Method:
    """A method that trains the decoder of the concrete selectors on the K best columns.

    The scores do not change during training. Constant columns are used only if there are too few
    others. ``only`` are the tasks of the method; the first one is its default.
    """

    def network(spec: Spec) -> MLP:
        return MLP(spec.num_outputs, hidden, layer_norm=layer_norm)

    def init(key: Array, spec: Spec, data: TrainingRows) -> TrainState:
        key_score, key_network = jax.random.split(key)
        params = network(spec).init(key_network, jnp.zeros((1, num_features)))["params"]
        return create_state(spec, params, extra={"score": scores(key_score, spec, data)})

    def picks(state: TrainState) -> Array:
        return distinct_top_k(state.extra["score"], num_features, feature_mask=state.feature_mask)

    def apply(params: PyTree, state: TrainState, x: Array) -> Array:
        return outputs_of(network(state.spec), {"params": params}, x[:, picks(state)])

    def loss(
        params: PyTree, state: TrainState, batch: Batch[Array], key: Array
    ) -> tuple[Array, dict]:
        outputs = apply(params, state, batch.x)
        return state.spec.loss_of(outputs, batch.y, batch.weight), {}

    return Method(
        About(tasks=only, num_features=num_features, sparse=True),
        init=init,
        loss=loss,
        optimizer=optax.adam(learning_rate) if optimizer == "adam" else optimizer,
        predict=lambda state, x: apply(state.params, state, x),
        select=lambda state: Selection(state.extra["score"], picks(state)),
    )
