"""Neuron attribution: columns scored by the derivatives of the outputs of a trained network.

Atashgahi et al., "Unveiling the power of sparse neural networks for feature selection", ECAI 2024.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import jax
import jax.numpy as jnp
from jax import Array

from fsjax.method import Method, Selection, TrainingRows, TrainState
from fsjax.tables.sparse_rows import rows_at_once
from fsjax.tasks import TABLE

#: Rows whose derivatives are held at once.
ROWS_AT_ONCE = 1024

#: ``strength`` is the method's own score, from its weights.
Score = Literal["strength", "attribution", "attribution_times_input"]


def scored_by(score: str, method: Method) -> Method:
    """The method with another score of its columns, made in ``finish`` over the training rows.

    Args:
      score: ``strength`` for the method's own; ``attribution``, the mean over the rows of the
        absolute derivative of an output by the column; ``attribution_times_input``, that times
        the absolute input.
      method: one with a network, whose ``extra`` is a dict. Constant inputs of the network, such
        as dropout, are as in ``predict``.
    """
    if score == "strength":
        return method

    def finish(state: TrainState, data: TrainingRows, key: Array) -> TrainState:
        state = method.finish(state, data, key)
        scores = attribution(
            lambda x: method.predictor(state, x), state.spec.task, data, score != "attribution"
        )
        return state.replace(extra={**state.extra, "attribution": scores})

    def select(state: TrainState) -> Selection:
        return method.select(state)._replace(scores=state.extra["attribution"])

    return method._replace(finish=finish, select=select)


def attribution(
    outputs: Callable[[Array], Array], task: str, data: TrainingRows, times_input: bool = False
) -> Array:
    """Mean absolute derivative of the outputs by every column.

    For classification that of the output of the true class, before the softmax; otherwise the sum
    over all outputs, which takes a backward pass for each of them.

    Args:
      outputs: ``(B, D) -> (B, C)``, one row from one row.
      task: of the network.
      data: rows; those of weight 0 do not count.
      times_input: whether derivatives are multiplied by the input.

    Returns:
      ``(D,)``, at least 0.
    """
    if TABLE[task].classes:
        number, classes = 1, data.y
    else:
        number, classes = jax.eval_shape(outputs, data.x[:1]).shape[1], None

    def of_output(x: Array, wanted: Array) -> Array:
        def chosen(x: Array) -> Array:
            # Rows do not depend on each other: one backward pass is for all of them.
            return jnp.sum(jnp.take_along_axis(outputs(x), wanted[:, None], axis=1))

        return jnp.abs(jax.grad(chosen)(x))

    def of_rows(rows: Array, counts: Array) -> Array:
        x = data.x[rows]

        def add(output: Array, total: Array) -> Array:
            same = jnp.full(rows.shape, output, jnp.int32)
            return total + of_output(x, same if classes is None else classes[rows])

        slopes = jax.lax.fori_loop(0, number, add, jnp.zeros_like(x))
        if times_input:
            slopes = slopes * jnp.abs(x)
        weight = jnp.where(counts, data.weight[rows], 0.0)
        return weight @ jnp.where(weight[:, None] > 0, slopes, 0.0)

    chunks = -(-len(data.x) // rows_at_once(data.x, ROWS_AT_ONCE))
    size = -(-len(data.x) // chunks)

    def one(chunk: Array, total: Array) -> Array:
        rows = chunk * size + jnp.arange(size)
        last = len(data.x) - 1
        return total + of_rows(jnp.minimum(rows, last), rows <= last)

    total = jax.lax.fori_loop(0, chunks, one, jnp.zeros(data.x.shape[1], data.x.dtype))
    return total / jnp.sum(data.weight)
