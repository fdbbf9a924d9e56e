"""``like``: a task that resembles a built-in one, with another loss and other metrics."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from fsjax.errors import ConfigError, check_choice, check_names
from fsjax.tasks.table import TABLE, TASKS
from fsjax.tasks.task import RECORDS, Task, with_fields

Array = jax.Array
TaskLoss = Callable[[Array, Array, Array], Array]
TaskMetrics = Callable[[Array, Array, Array], dict[str, Array]]
TargetRow = Callable[[int], tuple[int, ...]]


def like(
    task: str, *, loss: TaskLoss | None = None, metrics: TaskMetrics | None = None, **changes: Any
) -> Task:
    """A task that resembles a built-in one, and that all methods for the built-in one accept.

    The allowed targets, the outputs of the network and the predictions are those of the built-in
    task. What is measured follows from the loss and the metrics:

    - the main metric is ``loss``, unless ``main_metric`` names one of the metrics;
    - the test metrics are the loss and the metrics on the test rows;
    - for tasks like ``regression``, the score of estimators is minus the loss of the predictions;
      for others it is that of the built-in task.

    Args:
      task: a name in :data:`fsjax.tasks.TASKS`.
      loss: ``(outputs (B, C), y, weight (B,)) -> scalar``, in JAX. Required.
      metrics: takes the same arguments and returns scalars by name, which are recorded after each
        epoch together with the loss.
      **changes: other fields of the records :class:`Target`, :class:`Objective`,
        :class:`Outputs` and :class:`Words`, such as ``main_metric``, ``label``, ``estimate``,
        ``score`` and ``scale``.

    Returns:
      The task, which a function decorated with :func:`fsjax.tasks.register` has to return.

    Raises:
      ConfigError: for an unknown name, a missing loss, or a field that tasks do not have.
    """
    check_choice("task", task, TASKS)
    check_names("fsjax.tasks.like has no argument", changes, list(RECORDS))
    if not callable(loss):
        raise ConfigError(
            f"loss={loss!r} for a task like {task!r}; give a function of (outputs (B, C), y, "
            "weight (B,)) that returns a scalar"
        )
    for name, value in changes.items():
        if name in ("score", "estimate", "scale", "check") and not (
            callable(value) or (name == "scale" and value is None)
        ):
            raise ConfigError(f"{name}={value!r} for a task like {task!r}; give a function")
    metrics = _no_metrics if metrics is None else metrics
    row = changes.get("row", TABLE[task].target.row)
    derived: dict[str, Any] = {
        "main_metric": "loss",
        "label": changes.get("main_metric", "loss"),
        "bounds": (-np.inf, np.inf),
        "larger_is_better": False,
        "best_by": (),
        "test_metrics": partial(_test_metrics, loss, metrics, row),
        "test_metrics_from_rows": _means,
    }
    if task == "regression":
        # For regression, the predictions are the outputs.
        derived |= {"score": partial(_minus_loss, loss), "score_name": "minus the loss"}
    fields = {**derived, **changes, "loss": loss, "metrics": metrics}
    return dataclasses.replace(with_fields(TABLE[task], fields), like=task, name="")


def _no_metrics(outputs: Array, y: Array, weight: Array) -> dict[str, Array]:
    return {}


def _test_metrics(
    loss: TaskLoss, metrics: TaskMetrics, row: TargetRow, outputs: np.ndarray, y: np.ndarray
) -> dict[str, float]:
    """The loss and the metrics of rows with equal weights, computed as in the engine."""
    # Numbers (N,) would broadcast to (N, N) where rows of the target have a shape.
    y = np.reshape(y, (len(y), -1)) if row(outputs.shape[-1]) else y
    rows = jnp.asarray(outputs, jnp.float32), jnp.asarray(y), jnp.ones(len(outputs))
    values = {"loss": loss(*rows), **metrics(*rows)}
    return {name: float(value) for name, value in values.items()}


def _means(rows: Mapping[str, np.ndarray]) -> dict[str, float]:
    return {name: float(np.mean(values, dtype=np.float64)) for name, values in rows.items()}


def _minus_loss(
    loss: TaskLoss, y: np.ndarray, predictions: np.ndarray, sample_weight: np.ndarray | None = None
) -> float:
    """Minus the loss of predictions ``(N,)`` or ``(N, C)``."""
    parts = (np.reshape(part, (len(y), -1)) for part in (predictions, y))
    outputs, targets = (jnp.asarray(part, jnp.float32) for part in parts)
    weight = jnp.ones(len(y)) if sample_weight is None else jnp.asarray(sample_weight, jnp.float32)
    return -float(loss(outputs, targets, weight))
