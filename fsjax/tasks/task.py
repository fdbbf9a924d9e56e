"""``Task``: everything that the library needs to know about a task."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import numpy as np

from fsjax.tasks import targets

Array = jax.Array


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
    """Everything that is known about a task, for N rows, D columns, C outputs and S seeds.

    Attributes:
      letter: its abbreviation in tables of methods.
      target: what y is, in words.
      outputs: what the outputs of a network are, in words.
      read: converts a user's y to an array, and gives the names of classes.
      check: ``(y, names, where) -> (y, names)`` to train on; DataError if y does not fit.
      num_outputs: ``(y, D) -> C``; y may be ``None`` if the task does not use it.
      loss: ``(outputs (B, C), y, weight (B,)) -> scalar``.
      metrics: takes the same arguments and returns scalars by name, which are recorded after each
        epoch together with the loss.
      test_metrics: ``(outputs (N, C), y) -> numbers by name``, in NumPy.
      test_of_rows: the same from :func:`row_metrics`, used if the target is sparse inputs.
      main_metric: the one of ``metrics`` that progress bars and reports show.
      label, bounds: its label in plots, and its range.
      estimate: ``(S, N, C)`` outputs -> ``(N,)`` or ``(N, C)`` predictions of all seeds together.
      score: ``(y, predictions, sample_weight) -> number``, larger is better; ``None`` if nothing
        is predicted.
      example: takes a generator and ``(N, 3)`` signals and returns a y that depends on them, for
        the contract test of methods.
      larger_is_better: whether larger values of the main metric are better.
      score_name: what ``score`` is, in words.
      supervised: whether the task uses y; otherwise the inputs are the target.
      classes: whether y holds classes ``(N,)`` and the outputs are their logits.
      best_by: criteria for the best epoch besides the loss, of ``fsjax.method.BEST_BY``.
      coupled: whether the loss of a row depends on other rows of its batch.
      estimator_type: scikit-learn's name for such estimators, if it has one.
      multi_output: whether y may have several columns.
      positive_only: whether negative y are not allowed.
      one_output: whether predictions are ``(N,)`` for any shape of y.
      probabilities: ``(S, N, C)`` outputs -> probabilities, or ``None``.
      log_probabilities: ``(S, N, C)`` outputs -> ``(N, C)`` logarithms of their mean over the
        seeds, or ``None``.
      decision: ``(S, N, C)`` outputs -> ``decision_function`` of the estimators, or ``None``.
      activation: of the last neurons, in JAX, for methods that compare neurons.
      scale: ``y -> (mean, deviation)``, by which estimators standardise y, or ``None``.
      strata: ``y -> (N,)`` classes whose proportions splits keep, or ``None``.
      strata_names: names of the strata 0, 1, ... if y has no class names.
      trainable: ``y -> text``, why training rows cannot be used; empty if they can.
      row, dtype: ``C -> shape``, and type, of the y of one row in the engine.
      as_rows: ``y -> (N, *shape)``, the rows for the engine.
      name: in runs, files and reports. For registered tasks it includes the arguments, for example
        ``quantile(level=0.9)``.
      like: for registered tasks, the built-in task that they resemble; otherwise empty.
      source: for registered tasks, how they were created.
    """

    letter: str
    target: str
    outputs: str
    read: Callable[[Any], targets.Target]
    check: Callable[..., targets.Target]
    num_outputs: Callable[[Any, int], int]
    loss: Callable[[Array, Array, Array], Array]
    metrics: Callable[[Array, Array, Array], dict[str, Array]]
    test_metrics: Callable[[np.ndarray, np.ndarray], dict[str, float]]
    main_metric: str
    label: str
    estimate: Callable[[np.ndarray], np.ndarray]
    score: Callable[..., float] | None
    score_name: str
    example: Callable[[np.random.Generator, np.ndarray], np.ndarray | None]
    bounds: tuple[float, float] = (-np.inf, np.inf)
    larger_is_better: bool = False
    supervised: bool = True
    classes: bool = False
    best_by: tuple[str, ...] = ()
    coupled: bool = False
    estimator_type: str | None = None
    multi_output: bool = True
    positive_only: bool = False
    one_output: bool = False
    probabilities: Callable[[np.ndarray], np.ndarray] | None = None
    log_probabilities: Callable[[np.ndarray], np.ndarray] | None = None
    decision: Callable[[np.ndarray], np.ndarray] | None = None
    activation: Callable[[Array], Array] = lambda outputs: outputs
    scale: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]] | None = None
    test_of_rows: Callable[[Mapping[str, np.ndarray]], dict[str, float]] | None = None
    strata: Callable[[np.ndarray], np.ndarray | None] = lambda y: None
    strata_names: tuple[str, ...] | None = None
    trainable: Callable[[np.ndarray], str] = lambda y: ""
    row: Callable[[int], tuple[int, ...]] = lambda num_outputs: (num_outputs,)
    as_rows: Callable[[np.ndarray], np.ndarray] = lambda y: np.reshape(y, (len(y), -1))
    dtype: type = np.float32
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
