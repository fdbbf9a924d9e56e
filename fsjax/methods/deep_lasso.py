"""Deep Lasso: Cherepanova et al., "A Performance-Driven Benchmark for Feature Selection in Tabular
Deep Learning", NeurIPS 2023."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from fsjax import tasks
from fsjax.arguments import NonNegative
from fsjax.method import (
    About,
    Batch,
    Loss,
    Method,
    PyTree,
    Selection,
    Spec,
    TrainingRows,
    TrainState,
)
from fsjax.methods.shared.network import PLAIN, NetworkOptions, first_state, keep_stats
from fsjax.registry import register
from fsjax.tables.sparse_rows import SparseRows, dense, is_sparse, map_rows, rows_at_once

#: Number of rows of a sparse table whose gradients are in memory at once.
ROWS_AT_ONCE = 1024

#: Added under the square roots, because a norm has no gradient at 0; the authors' value.
SMOOTHING = 1e-8


@register(
    estimator="DeepLasso",
    paper="Cherepanova et al., NeurIPS 2023",
    optimises="the loss plus the norms of its gradients with respect to each column",
    num_epochs=100,
    batch_size=128,
    training={"min_steps_per_epoch": 10, "early_stopping": 20},
    small={"hidden": (6,)},
    options=replace(PLAIN, hidden=(200,), optimizer="adamw", weight_decay=2e-4),
    without=("finetune_epochs", "finetune_learning_rate"),
)
def deep_lasso(*, penalty: NonNegative = 0.1, **options: Any) -> Method:
    """The lasso with gradients in place of weights: few columns should affect the loss.

    It minimises ``L + lambda sum_j ||(dL / dx_1j, ..., dL / dx_Bj)||_2`` over the B rows of a
    batch, where L is their mean loss. For a linear regression this is a group lasso whose weights
    are multiplied by the size of the residuals. Nothing is annealed, and the columns are those of
    the best epoch on validation rows, so the estimator stops by default 20 epochs after it.

    Args:
      penalty: lambda, at least 0. The authors' code weights the two terms by 1 - w and w, that is
        ``lambda = w / (1 - w)``, and tunes w between 0.01 and 0.5. As L is a mean over B rows, the
        norms shrink with the square root of B: larger batches need a larger penalty.
      **options: those of :class:`fsjax.methods.shared.network.NetworkOptions`. Learning rate and
        weight decay are the authors', but without their stepwise decay of the learning rate.

    Returns:
      The method, for supervised tasks; the score of column j is the norm above, over all training
      rows.
    """
    body = NetworkOptions(**options)

    def init(key: Array, spec: Spec, data: TrainingRows) -> TrainState:
        del data
        return first_state(body, key, spec, norms=jnp.zeros(spec.num_columns))

    def loss(
        params: PyTree, state: TrainState, batch: Batch[Array], key: Array
    ) -> tuple[Array, dict[str, Any]]:
        def loss_at(x: Array) -> tuple[Array, dict[str, PyTree]]:
            return body.train(params, state, batch._replace(x=x), key)

        (value, aux), slopes = jax.value_and_grad(loss_at, has_aux=True)(batch.x)
        norms = jnp.sqrt(jnp.sum(_squares(slopes, batch.weight), axis=0) + SMOOTHING)
        return value + penalty * jnp.sum(norms), aux

    def predict(state: TrainState, x: Array) -> Array:
        return body.predict(state.params, state, x)

    def finish(state: TrainState, data: TrainingRows, key: Array) -> TrainState:
        del key
        y, outputs = dense(data.y), partial(predict, state)

        def loss_at(x: Array) -> Array:
            return state.spec.loss_of(outputs(x), y, data.weight)

        if is_sparse(data.x):
            norms = sparse_norms(outputs, state.spec.loss_of, data.x, y, data.weight)
        else:
            squares = _squares(jax.grad(loss_at)(data.x), data.weight)
            norms = jnp.sqrt(jnp.sum(squares, axis=0))
        return state.replace(extra={**state.extra, "norms": norms})

    return Method(
        # Per weight: forward 2, gradient by the inputs 2, and twice that for the backward passes.
        About(tasks=tasks.SUPERVISED, sparse=True, merges_copies=body.merges_copies, flops=12.0),
        init=init,
        loss=loss,
        optimizer=body.tx,
        predict=predict,
        select=lambda state: Selection(state.extra["norms"]),
        after_step=keep_stats,
        finish=finish,
    )


def _squares(slopes: Array, weight: Array) -> Array:
    """Squares ``(B, D)``: a row of weight c is c rows, each with the c-th part of its slopes."""
    return jnp.square(slopes) / jnp.where(weight > 0, weight, 1.0)[:, None]


def sparse_norms(
    outputs: Callable[[Array], Array], loss: Loss, x: SparseRows, y: Array, weight: Array
) -> Array:
    """``(D,)`` norms of the gradients of the loss with respect to the columns of a sparse table."""
    size = min(rows_at_once(x, ROWS_AT_ONCE), len(x))
    last = len(x) - 1
    # By the outputs of all rows at once, because some losses compare rows with each other.
    by_outputs = jax.grad(loss)(map_rows(outputs, x, ROWS_AT_ONCE), y, weight)

    def add(chunk: Array, squares: Array) -> Array:
        number = chunk * size + jnp.arange(size)
        rows = jnp.minimum(number, last)
        by_rows = jnp.where((number <= last)[:, None], by_outputs[rows], 0.0)
        (slopes,) = jax.vjp(outputs, x[rows])[1](by_rows)
        return squares + jnp.sum(_squares(slopes, weight[rows]), axis=0)

    squares = jax.lax.fori_loop(0, -(-len(x) // size), add, jnp.zeros(x.shape[1]))
    return jnp.sqrt(squares)
