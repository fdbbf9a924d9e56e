"""What is recorded of an epoch: losses and metrics of rows, and changes of the connections."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array

from fsjax import tasks
from fsjax.engine.rows import DeviceRows, MemoryRows, as_batch
from fsjax.method import Method, PyTree, Spec, TrainState
from fsjax.sparsity.connections import Connections, layer_masks, of_inputs
from fsjax.tables.sparse_rows import SparseRows, dense, is_sparse, map_rows

#: Rows that are evaluated at once.
EVALUATION_ROWS = 1024

#: The name of the loss of the task among metrics of rows, if the run has a loss of its own.
TASK_LOSS = "task_loss"

#: Epochs after which the connections of the input neurons are counted; 0 is before training.
CONNECTION_EPOCHS = (0, 1, 5, 10)


def predict_rows(method: Method, state: TrainState, x: Array | SparseRows) -> Array:
    """Outputs ``(N, C)`` for any number of rows, computed in parts."""
    return map_rows(lambda part: method.predictor(state, part), x, EVALUATION_ROWS)


def metrics_of_each_row(spec: Spec, outputs: Array, y: Array) -> dict[str, Array]:
    """``tasks.row_metrics`` ``(B,)`` by name, with the loss of the run, and :data:`TASK_LOSS`."""
    metrics = tasks.row_metrics(spec.task, outputs, y)
    if spec.loss is not None:
        loss, weight = spec.loss, jnp.ones(1)
        by_row = jax.vmap(lambda output, target: loss(output[None], target[None], weight))
        metrics[TASK_LOSS], metrics["loss"] = metrics["loss"], by_row(outputs, y)
    return metrics


def outputs_of_part(method: Method, state: TrainState, x: Array) -> Array | dict[str, Array]:
    """Outputs ``(B, C)``, or :func:`metrics_of_each_row` if the rows are their own target.

    Sparse rows and rows on disk are never in memory together, so their metrics are computed by row.
    """
    outputs, task = method.predictor(state, x), tasks.TABLE[state.spec.task]
    return outputs if task.target.supervised else metrics_of_each_row(state.spec, outputs, x)


def outputs_of_rows(
    method: Method, state: TrainState, x: Array | SparseRows
) -> Array | dict[str, Array]:
    """Outputs ``(N, C)`` for all rows; for sparse rows as :func:`outputs_of_part`."""
    if is_sparse(x):
        return map_rows(lambda part: outputs_of_part(method, state, part), x, EVALUATION_ROWS)
    return predict_rows(method, state, x)


def metrics_of_rows(method: Method, state: TrainState, rows: MemoryRows) -> dict[str, Array]:
    """``tasks.metrics`` of at least one row, for the discrete selection.

    Returns:
      Scalars by name, including ``loss``; with ``best_by='auc'`` also ``auc``, the area under the
      ROC curve of the second class.
    """
    return evaluate_outputs(method, state, outputs_of_rows(method, state, rows.x), rows)


def evaluate_outputs(
    method: Method, state: TrainState, outputs: Array | dict[str, Array], rows: DeviceRows
) -> dict[str, Array]:
    """:func:`metrics_of_rows`, given the result of :func:`outputs_of_rows`."""
    del method
    if isinstance(outputs, dict):
        return {
            name: tasks.weighted_mean(jnp.where(rows.weight > 0, of_rows, 0.0), rows.weight)
            for name, of_rows in outputs.items()
            if name != TASK_LOSS
        }
    task = state.spec.task
    # The outputs of padding rows may have any value, even NaN.
    outputs = jnp.where(rows.weight[:, None] > 0, outputs, 0.0)
    y = dense(as_batch(task, rows).y)
    metrics = tasks.metrics(task, outputs, y, rows.weight)
    if state.spec.loss is not None:
        metrics["loss"] = state.spec.loss(outputs, y, rows.weight)
    if state.spec.best_by == "auc" and "auc" not in metrics:
        margins = outputs[:, 1] - outputs[:, 0]
        metrics["auc"] = tasks.roc_auc(margins, rows.y, rows.weight)
    return metrics


def topology_metrics(before: PyTree, after: PyTree) -> dict[str, Array]:
    """Sparsity in [0, 1], and the percentage of connections that are new in this epoch."""
    active: Array | float = 0.0
    grown: Array | float = 0.0
    size = 0.0
    for old, new in zip(layer_masks(before), layer_masks(after), strict=True):
        if isinstance(new, Connections):
            active += new.rows.size
            grown += (new.grown - old.grown).astype(jnp.float32)
        elif new.ndim >= 2:
            active += jnp.sum(new, dtype=jnp.float32)
            grown += jnp.sum(new & ~old, dtype=jnp.float32)
        else:
            continue
        size += new.size
    if not size:
        return {}
    return {
        "train/sparsity": jnp.asarray(1.0 - active / size),
        "train/topology_change": jnp.asarray(100.0 * grown / active),
    }


def input_connections(state: TrainState) -> Array | None:
    """``(D,)`` float32, active connections of each input neuron; ``None`` without such masks."""
    columns = state.spec.num_columns
    masks = [mask for mask in layer_masks(state.masks) if len(mask.shape) == 2]
    if not masks or masks[0].shape[0] != columns:
        return None
    first = masks[0]
    if isinstance(first, Connections):
        return of_inputs(jnp.ones(first.rows.shape), first)
    return jnp.sum(first, axis=1, dtype=jnp.float32)


def record_connections(state: TrainState) -> TrainState:
    """The state with the connections of the input neurons, if they are counted at its epoch."""
    if isinstance(state.trace, tuple):
        return state
    counts = input_connections(state)
    if counts is None:
        return state
    is_counted = (jnp.asarray(CONNECTION_EPOCHS) == state.epoch)[:, None]
    return state.replace(trace=jnp.where(is_counted, counts, state.trace))
