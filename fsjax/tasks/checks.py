"""Checks of registered tasks, when they are created and before anything is trained."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from fsjax.errors import ConfigError, nearest
from fsjax.tasks.examples import example
from fsjax.tasks.table import TABLE, TASKS
from fsjax.tasks.task import Target, Task

#: Number of rows and of columns of a sample.
ROWS, COLUMNS = 8, 3


class Sample(NamedTuple):
    """Arguments of a loss.

    Attributes:
      outputs: ``(B, C)``, random.
      y: ``(B, ...)`` targets from the example of the task.
      weight: ``(B,)`` ones.
    """

    outputs: np.ndarray
    y: np.ndarray
    weight: np.ndarray


def sample(task: Task, target: Target, y: Any = None, rows: int = ROWS) -> Sample:
    """Rows of a task, with random outputs.

    Args:
      task: any task.
      target: reads and checks y, by which a task's own check may be left out.
      y: as users give it; ``None`` takes the example of the built-in task.
      rows: how many, for the example.
    """
    rng = np.random.default_rng(0)
    signals = rng.normal(size=(rows if y is None else len(y), COLUMNS))
    if task.target.supervised:
        y = example(task, rng, signals) if y is None else y
        y, _ = target.check(*target.read(y), "the example")
        num_outputs = task.outputs.num_outputs(y, COLUMNS)
        y = task.target.as_rows(y).astype(task.target.dtype)
    else:
        num_outputs, y = COLUMNS, signals.astype(np.float32)
    outputs = rng.normal(size=(len(y), num_outputs)).astype(np.float32)
    return Sample(outputs, y, np.ones(len(y), np.float32))


def check_made(name: str, task: Any) -> None:
    """Raise ConfigError if no network could be trained for a task; nothing is computed.

    Args:
      name: of the registered function.
      task: the value that it returned.
    """
    if not isinstance(task, Task):
        raise ConfigError(
            f"the function of the task {name} returns {type(task).__name__}; return "
            "fsjax.tasks.like('regression', loss=...)"
        )
    if task.like not in TASKS:
        raise ConfigError(
            f"the task {name} does not say which built-in task it resembles; return "
            "fsjax.tasks.like('regression', loss=...)"
        )
    # Shapes are all that matters, and a task's own check may not accept the example.
    rows = sample(task, TABLE[task.like].target)
    label = f"the loss of the task {name}"
    _check_scalar(label, _shape(label, task.objective.loss, rows))
    label = f"the metrics of the task {name}"
    metrics = _shape(label, task.objective.metrics, rows)
    if not isinstance(metrics, Mapping):
        raise ConfigError(
            f"{label} are {_described(metrics)}; return a dict of scalars by name, such as "
            "{'coverage': value}"
        )
    for metric, value in metrics.items():
        if metric == "loss":
            raise ConfigError(
                f"{label} include 'loss', but the loss is always recorded; leave it out"
            )
        _check_scalar(f"the metric {metric!r} of the task {name}", value)
    main_metric, known = task.objective.main_metric, ("loss", *metrics)
    if main_metric not in known:
        raise ConfigError(
            f"main_metric={main_metric!r} is not among the metrics of the task {name}: "
            f"{nearest(str(main_metric), known)}"
        )


def _shape(label: str, function: Callable[..., Any], rows: Sample) -> Any:
    """Shapes and types of what a function returns for a sample."""
    if not callable(function):
        raise ConfigError(
            f"{label} is {function!r}; give a function of (outputs (B, C), y, weight (B,))"
        )
    try:
        return jax.eval_shape(function, *rows)
    except Exception as error:  # a user's function may raise anything
        shapes = ", ".join(f"{part} {array.shape}" for part, array in rows._asdict().items())
        # JAX adds many lines to its messages.
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise ConfigError(f"{label} fails for {shapes}: {reason}") from error


def _check_scalar(label: str, value: Any) -> None:
    """ConfigError unless a traced value is a scalar of floating point."""
    if getattr(value, "shape", None) == () and jnp.issubdtype(value.dtype, jnp.floating):
        return
    raise ConfigError(
        f"{label} is {_described(value)}; return a scalar of floating point, such as "
        "fsjax.tasks.weighted_mean(values, weight) of values (B,)"
    )


def _described(value: Any) -> str:
    if hasattr(value, "shape"):
        return f"an array of the shape {value.shape} and type {value.dtype}"
    return "None" if value is None else f"of the type {type(value).__name__}"
