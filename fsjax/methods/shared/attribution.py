"""Neuron attribution: scores columns by the derivatives of a trained network's outputs.

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

#: Number of rows whose derivatives are in memory at once.
ROWS_AT_ONCE = 1024

#: Names of scores, see :func:`scored_by`.
ScoreName = Literal["strength", "attribution", "attribution_times_input"]


def scored_by(score: str, method: Method) -> Method:
    """The method with another score of its columns, computed in ``finish``.

    Args:
      score: ``strength`` for the method's own score, from its weights; ``attribution``, the mean
        over the training rows of the absolute derivative of an output with respect to the column;
        ``attribution_times_input``, the mean of that derivative times the absolute input.
      method: a method that predicts, whose ``extra`` is a dict.

    Examples:
      >>> from fsjax.methods.shared.attribution import scored_by
      >>> by_input = scored_by("attribution_times_input", fsjax.methods.set(hidden=(8,)))
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
    """Mean absolute derivative of the outputs with respect to each column.

    For classification it is the derivative of the true class's output, before the softmax;
    otherwise the sum over all outputs, which takes one backward pass for each of them.

    Args:
      outputs: ``(B, D) -> (B, C)``; each row of the result depends on one row of the input.
      task: the task of the network.
      data: the rows; those of weight 0 do not count.
      times_input: whether derivatives are multiplied by the absolute input.

    Returns:
      ``(D,)``, at least 0.
    """
    if TABLE[task].target.classes:
        number, classes = 1, data.y
    else:
        number, classes = jax.eval_shape(outputs, data.x[:1]).shape[1], None

    def absolute_slopes(index: Array, x: Array) -> Array:
        """Absolute derivatives ``(B, D)`` of one output for each row."""

        def total(x: Array) -> Array:
            # Rows do not depend on each other, so one backward pass serves all of them.
            return jnp.sum(jnp.take_along_axis(outputs(x), index[:, None], axis=1))

        return jnp.abs(jax.grad(total)(x))

    def sum_over(rows: Array, counts: Array) -> Array:
        x = data.x[rows]

        def add(output: Array, total: Array) -> Array:
            same = jnp.full(rows.shape, output, jnp.int32)
            return total + absolute_slopes(same if classes is None else classes[rows], x)

        slopes = jax.lax.fori_loop(0, number, add, jnp.zeros_like(x))
        if times_input:
            slopes = slopes * jnp.abs(x)
        weight = jnp.where(counts, data.weight[rows], 0.0)
        return weight @ jnp.where(weight[:, None] > 0, slopes, 0.0)

    chunks = -(-len(data.x) // rows_at_once(data.x, ROWS_AT_ONCE))
    size = -(-len(data.x) // chunks)

    def add_chunk(chunk: Array, total: Array) -> Array:
        rows = chunk * size + jnp.arange(size)
        last = len(data.x) - 1
        return total + sum_over(jnp.minimum(rows, last), rows <= last)

    total = jax.lax.fori_loop(0, chunks, add_chunk, jnp.zeros(data.x.shape[1], data.x.dtype))
    return total / jnp.sum(data.weight)
