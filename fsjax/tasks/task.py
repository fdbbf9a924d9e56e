"""``Task``: all that the library has to know of what a network is trained for."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import numpy as np

from fsjax.tasks import targets

Array = jax.Array


class Source(NamedTuple):
    """How a registered task was built.

    Attributes:
      builder: the registered function, which gives the same task for equal arguments.
      build: the function as it was written.
      settings: the arguments by name, hashable.
    """

    builder: Callable[..., Task]
    build: Callable[..., Task]
    settings: tuple[tuple[str, Any], ...]


@dataclass(frozen=True, eq=False, repr=False)
class Task:
    """All that is known of a task. N rows, D columns, C outputs, S seeds.

    Attributes:
      letter: what tables of methods call it.
      target: what y is, in words.
      outputs: what the outputs of a network are, in words.
      read: from what users hand in as y to an array, and names of classes.
      check: ``(y, names, where) -> (y, names)``: what is trained on; DataError if it does not fit.
      num_outputs: ``(y, D) -> C``; y may be ``None`` where it plays no part.
      loss: ``(outputs (B, C), y, weight (B,)) -> scalar``.
      metrics: the same arguments; scalars by name, recorded after each epoch beside the loss.
      test_metrics: ``(outputs (N, C), y) -> numbers by name``, in NumPy.
      test_of_rows: the same from :func:`row_metrics`, for sparse inputs as the target.
      main_metric: which of ``metrics`` progress bars and reports show.
      label, bounds: how pictures call it, and its range.
      estimate: ``(S, N, C)`` outputs -> ``(N,)`` or ``(N, C)`` predictions of the seeds together.
      score: ``(y, predictions, sample_weight) -> number``, larger is better; ``None`` where
        nothing is predicted.
      example: from a generator and ``(N, 3)`` signals to a y that follows from them, for the
        contract of methods.
      larger_is_better: whether so of the main metric.
      score_name: what ``score`` is, in words.
      supervised: whether y plays a part; otherwise the inputs are the target.
      classes: whether y are classes ``(N,)`` and the outputs their logits.
      best_by: what may tell the best epoch beside the loss, of ``fsjax.method.BEST_BY``.
      coupled: whether the loss of a row depends on the others of its batch.
      estimator_type: scikit-learn's name for such estimators, where it has one.
      multi_output: whether y may have several columns.
      positive_only: whether y has to be above 0, or at least 0.
      one_output: whether predictions are ``(N,)`` however y looks.
      probabilities: ``(S, N, C)`` outputs -> probabilities, or ``None``.
      log_probabilities: ``(S, N, C)`` outputs -> ``(N, C)`` logarithms of their mean over the
        seeds, or ``None``.
      decision: ``(S, N, C)`` outputs -> ``decision_function`` of the estimators, or ``None``.
      activation: what last neurons fire, in JAX, where neurons are compared.
      scale: ``y -> (mean, deviation)``, by which estimators standardise y, or ``None``.
      strata: ``y -> (N,)`` what splits keep in proportion, or ``None``.
      strata_names: names of 0, 1, ... in it, where y has none.
      trainable: ``y -> text``, why training rows do not do; empty where they do.
      row, dtype: ``C -> shape``, and type, of the y of a row as the engine has it.
      as_rows: ``y -> (N, *shape)``, such rows.
      name: by which runs, files and reports know it. Of registered tasks it has the arguments, as
        in ``quantile(level=0.9)``.
      like: of registered tasks, the built-in one whose place they take; else empty.
      source: of registered tasks, how they were built.
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
    source: Source | None = None

    def __repr__(self) -> str:
        return self.name or f"Task(like={self.like!r})"

    def __reduce__(self) -> str | tuple[Any, ...]:
        # Functions inside functions do not pickle; the builder and its arguments do.
        if self.source is None:
            return super().__reduce__()
        return functools.partial(self.source.builder, **dict(self.source.settings)), ()
