"""``Task``: what the library knows about a task, as four records.

They are for N rows, D columns, C outputs and S seeds.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import jax
import numpy as np

from fsjax.tasks.targets import LabelledTarget

Array = jax.Array


@dataclass(frozen=True)
class Target:
    """What y is: how it is read, checked, split and handed to the engine, in NumPy.

    Attributes:
      read: converts a user's y to an array, and gives the names of classes.
      check: ``(y, names, where) -> (y, names)`` to train on; DataError if y does not fit.
      supervised: whether the task uses y; otherwise the inputs are the target.
      classes: whether y holds classes ``(N,)`` and the outputs are their logits.
      multi_output: whether y may have several columns.
      positive_only: whether negative y are not allowed.
      scale: ``y -> (mean, deviation)``, by which estimators standardise y, or ``None``.
      strata: ``y -> (N,)`` classes whose proportions splits keep, or ``None``.
      strata_names: names of the strata 0, 1, ... if y has no class names.
      trainable: ``y -> text``, why training rows cannot be used; empty if they can.
      row, dtype: ``C -> shape``, and type, of the y of one row in the engine.
      as_rows: ``y -> (N, *shape)``, the rows for the engine.
    """

    read: Callable[[Any], LabelledTarget]
    check: Callable[..., LabelledTarget]
    supervised: bool = True
    classes: bool = False
    multi_output: bool = True
    positive_only: bool = False
    scale: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]] | None = None
    strata: Callable[[np.ndarray], np.ndarray | None] = lambda y: None
    strata_names: tuple[str, ...] | None = None
    trainable: Callable[[np.ndarray], str] = lambda y: ""
    row: Callable[[int], tuple[int, ...]] = lambda num_outputs: (num_outputs,)
    dtype: type = np.float32
    as_rows: Callable[[np.ndarray], np.ndarray] = lambda y: np.reshape(y, (len(y), -1))


@dataclass(frozen=True)
class Objective:
    """What training minimises and records, in JAX.

    Attributes:
      loss: ``(outputs (B, C), y, weight (B,)) -> scalar``.
      metrics: takes the same arguments and returns scalars by name, which are recorded after each
        epoch together with the loss.
      main_metric: the one of ``metrics`` that progress bars and reports show.
      bounds: range of the main metric.
      larger_is_better: whether larger values of the main metric are better.
      best_by: criteria for the best epoch besides the loss, of ``fsjax.method.BEST_BY``.
      coupled: whether the loss of a row depends on other rows of its batch.
    """

    loss: Callable[[Array, Array, Array], Array]
    metrics: Callable[[Array, Array, Array], dict[str, Array]]
    main_metric: str
    bounds: tuple[float, float] = (-np.inf, np.inf)
    larger_is_better: bool = False
    best_by: tuple[str, ...] = ()
    coupled: bool = False


@dataclass(frozen=True)
class Outputs:
    """What the outputs of a network are, and what is predicted and tested by them, in NumPy.

    Attributes:
      num_outputs: ``(y, D) -> C``; y may be ``None`` if the task does not use it.
      estimate: ``(S, N, C)`` outputs -> ``(N,)`` or ``(N, C)`` predictions of all seeds together.
      test_metrics: ``(outputs (N, C), y) -> numbers by name``.
      score: ``(y, predictions, sample_weight) -> number``, larger is better; ``None`` if nothing
        is predicted.
      test_metrics_from_rows: test metrics from :func:`row_metrics`, used if the target is sparse
        inputs.
      one_output: whether predictions are ``(N,)`` for any shape of y.
      probabilities: ``(S, N, C)`` outputs -> probabilities, or ``None``.
      log_probabilities: ``(S, N, C)`` outputs -> ``(N, C)`` logarithms of their mean over the
        seeds, or ``None``.
      decision: ``(S, N, C)`` outputs -> ``decision_function`` of the estimators, or ``None``.
      activation: of the last neurons, in JAX, for methods that compare neurons.
      estimator_type: scikit-learn's name for such estimators, if it has one.
    """

    num_outputs: Callable[[Any, int], int]
    estimate: Callable[[np.ndarray], np.ndarray]
    test_metrics: Callable[[np.ndarray, np.ndarray], dict[str, float]]
    score: Callable[..., float] | None = None
    test_metrics_from_rows: Callable[[Mapping[str, np.ndarray]], dict[str, float]] | None = None
    one_output: bool = False
    probabilities: Callable[[np.ndarray], np.ndarray] | None = None
    log_probabilities: Callable[[np.ndarray], np.ndarray] | None = None
    decision: Callable[[np.ndarray], np.ndarray] | None = None
    activation: Callable[[Array], Array] = lambda outputs: outputs
    estimator_type: str | None = None


@dataclass(frozen=True)
class Words:
    """How tables, plots and documentation describe a task.

    Attributes:
      letter: its abbreviation in tables of methods.
      target: what y is.
      outputs: what the outputs of a network are.
      label: of the main metric in plots.
      score_name: what the score is.
    """

    letter: str
    target: str
    outputs: str
    label: str
    score_name: str


class TaskSource(NamedTuple):
    """How a registered task was created.

    Attributes:
      builder: the registered function, which returns the same task for equal arguments.
      build: the function before decoration.
      settings: the arguments by name, hashable.
    """

    builder: Callable[..., Task]
    build: Callable[..., Task]
    settings: tuple[tuple[str, Any], ...]


@dataclass(frozen=True, eq=False, repr=False)
class Task:
    """What is known about a task.

    Attributes:
      target: what y is.
      objective: what training minimises and records.
      outputs: what the outputs of a network are, and what is predicted and tested by them.
      words: how tables, plots and documentation describe it.
      name: in runs, files and reports. For registered tasks it includes the arguments, for example
        ``quantile(level=0.9)``.
      like: for registered tasks, the built-in task that they resemble; otherwise empty.
      source: for registered tasks, how they were created.

    Examples:
      >>> task = fsjax.tasks.get_task("classification")
      >>> print(task.target.classes)  # of a tasks.Target
      >>> print(task.objective.main_metric)  # of a tasks.Objective
      >>> print(task.outputs.estimator_type)  # of a tasks.Outputs
      >>> print(task.words.score_name)  # of a tasks.Words
    """

    target: Target
    objective: Objective
    outputs: Outputs
    words: Words
    name: str = ""
    like: str = ""
    source: TaskSource | None = None

    def __repr__(self) -> str:
        return self.name or f"Task(like={self.like!r})"

    def __reduce__(self) -> str | tuple[Any, ...]:
        # Nested functions cannot be pickled, but the builder and its arguments can.
        if self.source is None:
            return super().__reduce__()
        return functools.partial(self.source.builder, **dict(self.source.settings)), ()


#: The record of each field of the four records; no two have the same name.
RECORDS: Final = {
    field.name: record
    for record, fields in (
        ("target", Target),
        ("objective", Objective),
        ("outputs", Outputs),
        ("words", Words),
    )
    for field in dataclasses.fields(fields)
}


def with_fields(task: Task, changes: Mapping[str, Any]) -> Task:
    """A task with other values of fields of its records, by the names in :data:`RECORDS`."""
    records = {
        record: dataclasses.replace(
            getattr(task, record),
            **{name: value for name, value in changes.items() if RECORDS[name] == record},
        )
        for record in {RECORDS[name] for name in changes}
    }
    return dataclasses.replace(task, **records)
