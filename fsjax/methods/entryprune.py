"""EntryPrune: keeps the columns whose entry changed the network most.

Zimmer et al., "EntryPrune: Neural Network Feature Selection using First Impressions",
arXiv 2410.02344.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Annotated, Any

import jax
import jax.numpy as jnp
import optax
from jax import Array

from fsjax.arguments import STATIC, Count, Share
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
from fsjax.methods.shared.network import PLAIN, NetworkOptions, first_kernel, with_kernel
from fsjax.registry import register
from fsjax.sparsity import largest, random_subset
from fsjax.sparsity.topology import Changed, cond_with_key
from fsjax.sparsity.trees import is_masked_out
from fsjax.sparsity.updates import keep_moments
from fsjax.tasks import SUPERVISED

#: Score of columns that have not been tried; scores of all others are at least minus sqrt(D).
NEVER = -1e3


@register(
    estimator="EntryPrune",
    paper="Zimmer et al., 2024",
    optimises="the loss of a dense network on K columns and a changing set of candidates",
    num_epochs=200,
    batch_size=256,
    training={"min_steps_per_epoch": 10},
    small={"num_features": 4, "hidden": (6,), "every": 4, "learning_rate": 0.03},
    options=replace(PLAIN, hidden=(100,)),
    without=("network", "finetune_epochs", "finetune_learning_rate"),
)
def entryprune(
    num_features: Count = 50,
    *,
    candidates: Annotated[Share, STATIC] = 0.2,
    every: Count = 100,
    **options: Any,
) -> Method:
    """A dense network on K columns and on random candidates, replaced every few steps.

    A candidate is judged by its relative change: the gradients of its weights are added up over the
    steps since it entered, their absolute values are summed over the hidden neurons, and the result
    is standardised over all inputs of the network. The score of a column is the largest relative
    change it has reached. At each exchange the K columns with the highest scores stay, and random
    other columns replace the candidates, with weights of 0.

    Args:
      num_features: K.
      candidates: share of the other columns that are in the network at a time, in [0, 1]; there is
        at least one. The authors use 0.2 if there are more rows than columns, else 0.5.
      every: steps between two exchanges, at least 1; the authors use 100 and 5, respectively.
      **options: those of :class:`fsjax.methods.shared.network.NetworkOptions`.

    Returns:
      The method; it predicts from the K columns alone.
    """
    body = NetworkOptions(**options)
    merges = body.merges_copies

    def num_inputs(spec: Spec) -> int:
        others = spec.num_columns - num_features
        # Minus a small number, because 0.2 * 15 is slightly above 3 in floating point.
        return num_features + min(max(1, math.ceil(candidates * others - 1e-6)), others)

    def init(key: Array, spec: Spec, data: TrainingRows) -> TrainState:
        key_network, key_order = jax.random.split(key)
        weights, stats = body.init(key_network, spec)
        # Random scores below NEVER, so that the first columns are drawn at random.
        best = NEVER - jax.random.uniform(key_order, (spec.num_columns,))
        entered = largest(best, num_inputs(spec))
        columns = first_places(entered, num_inputs(spec))
        kernel = first_kernel(weights)[columns]
        extra = {
            "stats": stats,
            "best": best,
            "kept": largest(best, num_features),
            "entered": entered,
            "columns": columns,
            "change": jnp.zeros_like(kernel),
        }
        return create_state(spec, with_kernel(weights, kernel), extra=extra)

    def loss(
        params: PyTree, state: TrainState, batch: Batch[Array], key: Array
    ) -> tuple[Array, dict[str, Any]]:
        columns = state.extra["columns"]
        inside = (state.extra["kept"] | state.extra["entered"])[columns]
        weights = with_kernel(params, jnp.where(inside[:, None], first_kernel(params), 0.0))
        return body.train(weights, state, batch._replace(x=batch.x[:, columns]), key)

    def after_step(
        state: TrainState, grads: PyTree, aux: dict[str, Any], batch: Batch[Array], key: Array
    ) -> TrainState:
        change = state.extra["change"] + jnp.sum(batch.weight) * first_kernel(grads)
        state = state.replace(extra={**state.extra, "stats": aux["stats"], "change": change})
        number = num_inputs(state.spec) - num_features
        return cond_with_key(
            state.step % every == 0,
            lambda key: enter(body, exchange(state, key, num_features, number)),
            lambda _: state,
            key,
        )

    def predict(state: TrainState, x: Array) -> Array:
        columns = state.extra["columns"]
        places = first_places(state.extra["kept"][columns], num_features)
        weights = with_kernel(state.params, first_kernel(state.params)[places])
        return body.predict(weights, state, x[:, columns[places]])

    def select(state: TrainState) -> Selection:
        best = state.extra["best"]
        return Selection(best, distinct_top_k(best, num_features, None, state.feature_mask))

    return Method(
        About(tasks=SUPERVISED, num_features=num_features, sparse=True, merges_copies=merges),
        init=init,
        loss=loss,
        optimizer=body.tx,
        predict=predict,
        select=select,
        after_step=after_step,
        monitor=lambda state: {"num_tried": jnp.sum(state.extra["best"] > NEVER, dtype="f4")},
        phases=lambda spec: first_and_last_exchange(spec, num_features, num_inputs(spec), every),
    )


def first_places(inside: Array, number: int) -> Array:
    """``(number,)`` places in which ``inside`` is true, in order, followed by others."""
    return jnp.argsort(~inside, stable=True)[:number]


def exchange(state: TrainState, key: Array, num_features: int, number: int) -> TrainState:
    """Keeps the K columns with the highest scores, and draws ``number`` new candidates."""
    extra, columns = state.extra, state.extra["columns"]
    inside = (extra["kept"] | extra["entered"])[columns]
    reached = extra["best"].at[columns].max(relative_change(extra["change"], inside))
    best = jnp.where(extra["entered"], reached, extra["best"])
    kept = largest(best, num_features, state.feature_mask)
    changed = {
        "best": best,
        "kept": kept,
        "entered": random_subset(key, number, ~kept & state.feature_mask),
        "change": jnp.zeros_like(extra["change"]),
    }
    return state.replace(extra={**extra, **changed})


def enter(body: NetworkOptions, state: TrainState) -> TrainState:
    """Gives the network the new columns: 0 are the weights and moments of those not kept before."""
    extra, old = state.extra, state.extra["columns"]
    columns = first_places(extra["kept"] | extra["entered"], len(old))
    # The place of each new column among the old ones, or that of a column that is not kept.
    place = jnp.zeros(extra["kept"].shape, jnp.int32).at[old].set(jnp.arange(len(old)))[columns]
    kept = (extra["kept"][columns] & (old[place] == columns))[:, None]
    kernel = jnp.where(kept, first_kernel(state.params)[place], 0.0)
    params, tx = with_kernel(state.params, kernel), body.tx(state.spec)

    def moved(moment: Any, stays: Any) -> Any:
        # Factored moments may have no entry for each row.
        has_rows = stays is not True and getattr(moment, "shape", ())[:1] == place.shape
        return moment[place] if has_rows else moment

    stay = with_kernel(jax.tree.map(lambda _: True, params), jnp.broadcast_to(kept, kernel.shape))
    moments = optax.tree.map_params(tx, moved, state.opt_state, stay, is_leaf=is_masked_out)
    moments = keep_moments(tx, moments, Changed(params, (), stay))
    return state.replace(params=params, opt_state=moments, extra={**extra, "columns": columns})


def first_and_last_exchange(
    spec: Spec, num_features: int, num_inputs: int, every: int
) -> tuple[Phase, Phase]:
    """What a run of enough epochs reaches: the first exchange, and a trial of every column."""
    shorter = f"an every below {every}"
    first = Phase(
        name=f"the first exchange of columns (every={every} steps)",
        epochs=math.ceil(every / spec.steps_per_epoch),
        without="no column has been judged and they are drawn at random",
        instead=shorter,
    )
    exchanges = math.ceil((spec.num_columns - num_features) / max(num_inputs - num_features, 1))
    tried = Phase(
        name=f"all columns can have been tried ({exchanges} exchanges, every={every} steps)",
        epochs=math.ceil(max(exchanges, 1) * every / spec.steps_per_epoch),
        without="some columns have never been in the network",
        instead=f"{shorter}, or a larger share of candidates",
        kept=False,
    )
    return first, tried


def relative_change(change: Array, inside: Array) -> Array:
    """How much the weights of each input changed, relative to those of the other inputs.

    Args:
      change: ``(I, H)`` sums of gradients of the columns that have a place in the network.
      inside: ``(I,)`` bool, those that are inputs of the network.

    Returns:
      ``(I,)``, with mean 0 and standard deviation 1 over the inputs; meaningless for other columns.
    """
    total = jnp.sum(jnp.abs(change), axis=1)
    weight = inside / jnp.sum(inside)
    centred = total - total @ weight
    return centred / jnp.maximum(jnp.sqrt(jnp.square(centred) @ weight), 1e-12)
