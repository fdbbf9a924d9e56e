"""Sequential Attention: greedy forward selection by a softmax over the inputs.

Yasuda et al., "Sequential Attention for Feature Selection", ICLR 2023.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from fsjax.arguments import Count, Rate
from fsjax.engine.kernels.distinct_columns import distinct_top_k
from fsjax.method import (
    About,
    Batch,
    Method,
    Phase,
    PyTree,
    Selection,
    Spec,
    TrainingRows,
    TrainState,
    create_state,
)
from fsjax.methods.shared.network import PLAIN, NetworkOptions, keep_stats
from fsjax.registry import register
from fsjax.tables.groups import expand
from fsjax.tasks import SUPERVISED

#: Standard deviation of the attention logits at the start of a phase.
START = 1e-5

#: Fewest steps of a phase: the first step of Adam has the same length for every column, so that
#: after a single one the initial logits decide between columns.
MIN_STEPS = 2


@register(
    estimator="SequentialAttention",
    paper="Yasuda et al., ICLR 2023",
    optimises="the loss of a network whose inputs not yet selected share one softmax",
    num_epochs=100,
    batch_size=64,
    training={"min_steps_per_epoch": 10},
    small={"num_features": 4, "hidden": (6,), "learning_rate": 0.03},
    options=replace(PLAIN, hidden=(67,)),
)
def sequential_attention(
    num_features: Count = 50,
    *,
    warmup: Rate = 0.1,
    columns_per_phase: Count = 1,
    **options: Any,
) -> Method:
    """Greedy forward selection in one training run: each of K equal phases selects a column.

    Selected inputs are multiplied by 1, all others by the softmax of trained logits over them. At
    the end of a phase the column with the largest logit is selected, and the logits are drawn anew
    near 0; the weights of the network are kept. After the last phase the network sees only the K
    columns.

    The authors' code selects at the start of a phase, so that its first column is drawn at random;
    here columns are selected at the end of a phase, as in Algorithm 1.

    Args:
      num_features: K.
      warmup: share of the steps before the first phase, in [0, 1), in which all inputs are
        multiplied by 1.
      columns_per_phase: number of columns selected per phase, at least 1; there are
        ``K / columns_per_phase`` phases, rounded up.
      **options: those of :class:`fsjax.methods.shared.network.NetworkOptions`; the optimiser trains
        all parameters, including the logits. The phases end before the epochs of fine-tuning.

    Returns:
      The method; it scores selected columns by the order of their selection, and all others, lower,
      by the softmax.
    """
    body = NetworkOptions(**options)
    num_phases = -(-num_features // columns_per_phase)

    def init(key: Array, spec: Spec, data: TrainingRows) -> TrainState:
        del data
        key_network, key_logits = jax.random.split(key)
        weights, stats = body.init(key_network, spec)
        # K for the column selected first, 1 for the last one, 0 for columns not selected.
        extra = {"stats": stats, "place": jnp.zeros(spec.num_units)}
        params = {"weights": weights, "logits": initial_logits(key_logits, spec)}
        return create_state(spec, params, extra=extra)

    def schedule(spec: Spec) -> tuple[int, Array]:
        """Number of steps of the selection with its warm-up, and number of warm-up steps."""
        steps = body.mask_epochs(spec) * spec.steps_per_epoch
        return steps, jnp.floor(warmup * steps + 1e-3).astype(jnp.int32)

    def inputs(params: PyTree, state: TrainState) -> Array:
        """The factor of each column, ``(D,)``."""
        is_warm = state.step >= schedule(state.spec)[1]
        gates = jnp.where(is_warm, gate_values(params, state, num_features), 1.0)
        return expand(gates, state.spec.groups)

    def loss(
        params: PyTree, state: TrainState, batch: Batch[Array], key: Array
    ) -> tuple[Array, dict[str, Any]]:
        return body.train(params["weights"], state, batch, key, inputs(params, state))

    def due(state: TrainState) -> Array:
        """Number of columns that should be selected by now."""
        steps, start = schedule(state.spec)
        progress = (state.step - start).astype(jnp.float32) / jnp.maximum(steps - start, 1)
        # Plus a small number, because rounding may leave the end of a phase below a whole number.
        phase = jnp.floor(progress * num_phases + 1e-3).astype(jnp.int32)
        return jnp.clip(phase * columns_per_phase, 0, num_features)

    def after_step(
        state: TrainState, grads: PyTree, aux: dict[str, Any], batch: Batch[Array], key: Array
    ) -> TrainState:
        del batch
        return keep_stats(select_more(state, key, due(state), num_features), grads, aux)

    def predict(state: TrainState, x: Array) -> Array:
        return body.predict(state.params["weights"], state, x, inputs(state.params, state))

    def select(state: TrainState) -> Selection:
        # At most one share is above a half; 1, that of the only free column, is also a place.
        shares = jnp.minimum(attention(state.params, state), 0.5)
        scores = state.extra["place"] + shares
        return Selection(scores, distinct_top_k(scores, num_features, None, state.feature_mask))

    def monitor(state: TrainState) -> dict[str, Array]:
        return {"num_selected": jnp.sum((state.extra["place"] > 0).astype(jnp.float32))}

    def phases(spec: Spec) -> tuple[Phase, Phase]:
        epochs = math.ceil(MIN_STEPS * num_phases / (1 - warmup) / spec.steps_per_epoch)
        return selections(num_phases, epochs + body.finetune_epochs, body.mask_epochs(spec))

    return Method(
        About(tasks=SUPERVISED, num_features=num_features, takes_groups=True, sparse=True),
        init=init,
        loss=loss,
        optimizer=body.tx,
        predict=predict,
        select=select,
        after_step=after_step,
        keep="last",
        monitor=monitor,
        phases=phases,
    )


def initial_logits(key: Array, spec: Spec) -> Array:
    """Random logits near 0, ``(D,)`` or ``(G,)`` for groups."""
    return START * jax.random.normal(key, (spec.num_units,))


def attention(params: PyTree, state: TrainState) -> Array:
    """Softmax over the columns that may still be selected; 0 elsewhere."""
    free = (state.extra["place"] == 0) & state.feature_mask
    logits = jnp.where(free, params["logits"], -jnp.inf)
    # A finite lower bound, because no column is free if K is the number of columns.
    largest = jax.lax.stop_gradient(jnp.maximum(jnp.max(logits), -1e9))
    shares = jnp.exp(logits - largest)
    return shares / jnp.maximum(jnp.sum(shares), 1.0)


def gate_values(params: PyTree, state: TrainState, num_features: int) -> Array:
    """1 for selected columns; for the others their attention, or 0 once K are selected."""
    chosen = state.extra["place"] > 0
    complete = jnp.sum(chosen) >= num_features
    shares = jnp.where(complete, 0.0, attention(params, state))
    return jnp.where(chosen, 1.0, shares)


def select_more(state: TrainState, key: Array, due: Array, num_features: int) -> TrainState:
    """Selects the columns of most attention until ``due`` are; then the logits start anew."""
    place, shares = state.extra["place"], attention(state.params, state)
    count = jnp.sum(place > 0, dtype=jnp.int32)
    order = jnp.argsort(jnp.argsort(-jnp.where(place > 0, -1.0, shares)))
    new = (order < due - count) & (place == 0)
    place = jnp.where(new, num_features - count - order, place).astype(place.dtype)
    restarted = initial_logits(key, state.spec)
    logits = jnp.where(jnp.any(new), restarted, state.params["logits"])
    return state.replace(
        params={**state.params, "logits": logits}, extra={**state.extra, "place": place}
    )


def selections(num_phases: int, long_enough: int, selected: int) -> tuple[Phase, Phase]:
    """The phases of a run: all steps of each, and the selection of the last column.

    Args:
      num_phases: how many select a column.
      long_enough: number of epochs in which each of them has :data:`MIN_STEPS` steps.
      selected: number of epochs before fine-tuning.
    """
    share = Phase(
        name=f"each of its {num_phases} phases has {MIN_STEPS} steps",
        epochs=long_enough,
        without="columns are selected by initial logits, which are random",
        instead="a larger columns_per_phase or min_steps_per_epoch",
        kept=False,
    )
    last = Phase(
        name="the last column is selected",
        epochs=selected,
        without="columns that are not selected yet are ranked by the softmax",
    )
    return share, last
