"""The table of all tasks: the built-in ones, and registered ones once they are created.

Its functions are in :mod:`fsjax.tasks.losses` (JAX), :mod:`fsjax.tasks.output_metrics` (NumPy) and
:mod:`fsjax.tasks.targets` (targets).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Final

import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import softmax
from sklearn.metrics import accuracy_score, r2_score

from fsjax.tasks import losses, output_metrics, targets
from fsjax.tasks.task import Task

Array = jax.Array

#: The default batch size if the loss of a row depends on other rows, so that tables up to this
#: length are one batch.
COUPLED_BATCH: Final = 4096


def _columns(y: np.ndarray, num_columns: int) -> int:
    return 1 if y.ndim == 1 else y.shape[1]


def mean_and_deviation(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation, ``(C,)`` or ``()`` both; 1 in place of a deviation of 0."""
    deviation = y.std(axis=0, dtype=np.float64)
    return y.mean(axis=0, dtype=np.float64), np.where(deviation > 0, deviation, 1.0)


def _relative(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Scale counts by their mean, which changes their deviance only by that factor."""
    mean = y.mean(axis=0, dtype=np.float64)
    return np.zeros_like(mean), mean


_BUILT_IN: Final[Mapping[str, Task]] = {
    "classification": Task(
        letter="C",
        target="``(N,)`` labels of any kind",
        outputs="a logit for each class",
        read=targets.read_classes,
        check=targets.check_classes,
        num_outputs=lambda y, num_columns: int(y.max()) + 1,
        loss=losses.cross_entropy,
        metrics=losses.classification_values,
        test_metrics=output_metrics.classification_metrics,
        main_metric="accuracy",
        label="accuracy (%)",
        bounds=(0.0, 100.0),
        larger_is_better=True,
        classes=True,
        best_by=("accuracy", "auc"),
        estimate=lambda outputs: softmax(outputs.astype(np.float64), -1).mean(0).argmax(1),
        probabilities=lambda outputs: softmax(outputs.astype(np.float64), axis=-1),
        log_probabilities=output_metrics.log_of_classes,
        decision=output_metrics.decision_of_classes,
        activation=jax.nn.softmax,
        score=accuracy_score,
        score_name="accuracy in [0, 1]",
        estimator_type="classifier",
        multi_output=False,
        one_output=True,
        strata=lambda y: y,
        trainable=lambda y: "one class only" if np.unique(y).size < 2 else "",
        row=lambda num_outputs: (),
        as_rows=lambda y: y,
        dtype=np.int32,
        example=lambda rng, signals: signals.argmax(axis=1),
    ),
    "reconstruction": Task(
        letter="U",
        target="nothing: y is not used",
        outputs="the D columns",
        read=targets.read_unused,
        check=targets.check_any,
        num_outputs=lambda y, num_columns: num_columns,
        loss=losses.squared_error,
        metrics=losses.reconstruction_values,
        test_metrics=output_metrics.reconstruction_metrics,
        test_of_rows=output_metrics.reconstructed_row_metrics,
        main_metric="reconstruction_frobenius",
        label="Frobenius error / D",
        supervised=False,
        estimate=lambda outputs: outputs.mean(axis=0),
        score=None,
        score_name="nothing",
        row=lambda num_outputs: (),
        dtype=np.int32,
        example=lambda rng, signals: None,
    ),
    "regression": Task(
        letter="R",
        target="``(N,)`` or ``(N, C)`` numbers",
        outputs="a number for each target",
        read=targets.read_exactly,
        check=targets.check_numbers,
        num_outputs=_columns,
        loss=losses.squared_error,
        metrics=losses.regression_values,
        test_metrics=output_metrics.regression_metrics,
        main_metric="mse",
        label="mean squared error",
        estimate=lambda outputs: outputs.mean(axis=0),
        score=r2_score,
        score_name="R2 (the mean over several targets)",
        estimator_type="regressor",
        scale=mean_and_deviation,
        example=lambda rng, signals: signals @ np.array([[1.0, 0.5], [-1.0, 1.0], [0.5, -1.0]]),
    ),
    "multilabel": Task(
        letter="M",
        target="``(N, L)`` of 0 and 1",
        outputs="a logit for each label",
        read=targets.read_exactly,
        check=targets.check_labels,
        num_outputs=_columns,
        loss=losses.sigmoid_cross_entropy,
        metrics=losses.label_values,
        test_metrics=output_metrics.label_metrics,
        main_metric="subset_accuracy",
        label="rows with all labels correct (%)",
        bounds=(0.0, 100.0),
        larger_is_better=True,
        best_by=("auc",),
        estimate=output_metrics.estimated_labels,
        probabilities=output_metrics.probabilities,
        log_probabilities=output_metrics.log_of_labels,
        decision=output_metrics.decision_of_labels,
        activation=jax.nn.sigmoid,
        score=accuracy_score,
        score_name="subset accuracy in [0, 1]",
        estimator_type="classifier",
        example=lambda rng, signals: (signals[:, :2] > 1.0).astype(int),
    ),
    "counts": Task(
        letter="N",
        positive_only=True,
        target="``(N,)`` or ``(N, C)`` whole numbers from 0",
        outputs="the logarithm of each expected count",
        read=targets.read_exactly,
        check=targets.check_counts,
        num_outputs=_columns,
        loss=losses.poisson_deviance,
        metrics=losses.count_values,
        test_metrics=output_metrics.count_metrics,
        main_metric="poisson_deviance",
        label="mean Poisson deviance",
        estimate=lambda outputs: np.exp(outputs.astype(np.float64)).mean(axis=0),
        score=output_metrics.d2_poisson,
        score_name="D2 of the Poisson deviance (the mean over several counts)",
        estimator_type="regressor",
        scale=_relative,
        example=lambda rng, signals: rng.poisson(np.exp(signals @ np.array([0.5, -0.5, 0.3]))),
    ),
    "survival": Task(
        letter="S",
        target="``(N, 2)`` time and event, or records or a frame of these",
        outputs="one logarithm of the hazard ratio",
        read=targets.read_survival,
        check=targets.check_survival,
        num_outputs=lambda y, num_columns: 1,
        loss=losses.cox_partial_likelihood,
        metrics=losses.survival_values,
        test_metrics=output_metrics.survival_metrics,
        main_metric="concordance_index",
        label="concordance index",
        bounds=(0.0, 1.0),
        larger_is_better=True,
        coupled=True,
        estimate=lambda outputs: outputs.mean(axis=0),
        one_output=True,
        score=output_metrics.survival_score,
        score_name="Harrell's concordance index in [0, 1]",
        strata=lambda y: y[:, 1].astype(np.int64),
        strata_names=("censored", "event"),
        trainable=lambda y: "" if y[:, 1].any() else "no event",
        row=lambda num_outputs: (2,),
        as_rows=targets.places_in_time,
        example=lambda rng, signals: np.column_stack(
            [
                rng.exponential(np.exp(-signals @ np.array([0.5, -0.5, 0.3]))) + 1e-3,
                rng.random(len(signals)) < 0.8,
            ]
        ),
    ),
}

#: The tasks by name: the built-in ones, and those that registered functions have returned.
TABLE: Final[dict[str, Task]] = {
    name: dataclasses.replace(task, name=name) for name, task in _BUILT_IN.items()
}

#: The names of the built-in tasks.
TASKS: Final = tuple(TABLE)

#: The built-in tasks that use y.
SUPERVISED: Final = tuple(name for name, task in TABLE.items() if task.supervised)


def loss(task: str, outputs: Array, y: Array, weight: Array) -> Array:
    """The loss of a task, a scalar.

    Args:
      task: a name in :data:`TABLE`, such as ``state.spec.task``.
      outputs: ``(B, C)``, as :attr:`Task.outputs` says.
      y: in the form of the engine: ``(B,)`` integer classes, ``(B, C)`` numbers, or ``(B, 2)``
        ranks of times and events.
      weight: ``(B,)`` non-negative, not all 0; rows of weight 0 are ignored.
    """
    return TABLE[task].loss(outputs, y, weight)


def metrics(task: str, outputs: Array, y: Array, weight: Array) -> dict[str, Array]:
    """The loss and the recorded metrics of a task, by name; arguments as for :func:`loss`."""
    entry = TABLE[task]
    return {"loss": entry.loss(outputs, y, weight), **entry.metrics(outputs, y, weight)}


def row_metrics(task: str, outputs: Array, y: Array) -> dict[str, Array]:
    """:func:`metrics` of each row alone, ``(B,)`` by name.

    Their means are the metrics of all rows for reconstruction, but not for all other tasks:
    areas and concordance compare rows.
    """

    def of_row(output: Array, target: Array) -> dict[str, Array]:
        return metrics(task, output[None], target[None], jnp.ones(1))

    return jax.vmap(of_row)(outputs, y)
