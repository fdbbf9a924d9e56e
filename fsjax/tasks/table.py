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
from fsjax.tasks.task import Objective, Outputs, Target, Task, Words

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
        Target(
            read=targets.read_classes,
            check=targets.check_classes,
            classes=True,
            multi_output=False,
            strata=lambda y: y,
            trainable=lambda y: "one class only" if np.unique(y).size < 2 else "",
            row=lambda num_outputs: (),
            dtype=np.int32,
            as_rows=lambda y: y,
        ),
        Objective(
            losses.cross_entropy,
            losses.classification_values,
            main_metric="accuracy",
            bounds=(0.0, 100.0),
            larger_is_better=True,
            best_by=("accuracy", "auc"),
        ),
        Outputs(
            num_outputs=lambda y, num_columns: int(y.max()) + 1,
            estimate=lambda outputs: softmax(outputs.astype(np.float64), -1).mean(0).argmax(1),
            test_metrics=output_metrics.classification_metrics,
            score=accuracy_score,
            one_output=True,
            probabilities=lambda outputs: softmax(outputs.astype(np.float64), axis=-1),
            log_probabilities=output_metrics.class_log_probabilities,
            decision=output_metrics.class_decision,
            activation=jax.nn.softmax,
            estimator_type="classifier",
        ),
        Words(
            letter="C",
            target="``(N,)`` labels of any kind",
            outputs="a logit for each class",
            label="accuracy (%)",
            score_name="accuracy in [0, 1]",
        ),
    ),
    "reconstruction": Task(
        Target(
            read=targets.read_unused,
            check=targets.check_any,
            supervised=False,
            row=lambda num_outputs: (),
            dtype=np.int32,
        ),
        Objective(
            losses.squared_error,
            losses.reconstruction_values,
            main_metric="reconstruction_frobenius",
        ),
        Outputs(
            num_outputs=lambda y, num_columns: num_columns,
            estimate=lambda outputs: outputs.mean(axis=0),
            test_metrics=output_metrics.reconstruction_metrics,
            test_metrics_from_rows=output_metrics.reconstructed_row_metrics,
        ),
        Words(
            letter="U",
            target="nothing: y is not used",
            outputs="the D columns",
            label="Frobenius error / D",
            score_name="nothing",
        ),
    ),
    "regression": Task(
        Target(read=targets.read_exactly, check=targets.check_numbers, scale=mean_and_deviation),
        Objective(losses.squared_error, losses.regression_values, main_metric="mse"),
        Outputs(
            num_outputs=_columns,
            estimate=lambda outputs: outputs.mean(axis=0),
            test_metrics=output_metrics.regression_metrics,
            score=r2_score,
            estimator_type="regressor",
        ),
        Words(
            letter="R",
            target="``(N,)`` or ``(N, C)`` numbers",
            outputs="a number for each target",
            label="mean squared error",
            score_name="R2 (the mean over several targets)",
        ),
    ),
    "multilabel": Task(
        Target(read=targets.read_exactly, check=targets.check_labels),
        Objective(
            losses.sigmoid_cross_entropy,
            losses.label_values,
            main_metric="subset_accuracy",
            bounds=(0.0, 100.0),
            larger_is_better=True,
            best_by=("auc",),
        ),
        Outputs(
            num_outputs=_columns,
            estimate=output_metrics.estimated_labels,
            test_metrics=output_metrics.label_metrics,
            score=accuracy_score,
            probabilities=output_metrics.probabilities,
            log_probabilities=output_metrics.label_log_probabilities,
            decision=output_metrics.label_decision,
            activation=jax.nn.sigmoid,
            estimator_type="classifier",
        ),
        Words(
            letter="M",
            target="``(N, L)`` of 0 and 1",
            outputs="a logit for each label",
            label="rows with all labels correct (%)",
            score_name="subset accuracy in [0, 1]",
        ),
    ),
    "counts": Task(
        Target(
            read=targets.read_exactly,
            check=targets.check_counts,
            positive_only=True,
            scale=_relative,
        ),
        Objective(losses.poisson_deviance, losses.count_values, main_metric="poisson_deviance"),
        Outputs(
            num_outputs=_columns,
            estimate=lambda outputs: np.exp(outputs.astype(np.float64)).mean(axis=0),
            test_metrics=output_metrics.count_metrics,
            score=output_metrics.d2_poisson,
            estimator_type="regressor",
        ),
        Words(
            letter="N",
            target="``(N,)`` or ``(N, C)`` whole numbers from 0",
            outputs="the logarithm of each expected count",
            label="mean Poisson deviance",
            score_name="D2 of the Poisson deviance (the mean over several counts)",
        ),
    ),
    "survival": Task(
        Target(
            read=targets.read_survival,
            check=targets.check_survival,
            strata=lambda y: y[:, 1].astype(np.int64),
            strata_names=("censored", "event"),
            trainable=lambda y: "" if y[:, 1].any() else "no event",
            row=lambda num_outputs: (2,),
            as_rows=targets.places_in_time,
        ),
        Objective(
            losses.cox_partial_likelihood,
            losses.survival_values,
            main_metric="concordance_index",
            bounds=(0.0, 1.0),
            larger_is_better=True,
            coupled=True,
        ),
        Outputs(
            num_outputs=lambda y, num_columns: 1,
            estimate=lambda outputs: outputs.mean(axis=0),
            test_metrics=output_metrics.survival_metrics,
            score=output_metrics.survival_score,
            one_output=True,
        ),
        Words(
            letter="S",
            target="``(N, 2)`` time and event, or records or a frame of these",
            outputs="one logarithm of the hazard ratio",
            label="concordance index",
            score_name="Harrell's concordance index in [0, 1]",
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
SUPERVISED: Final = tuple(name for name, task in TABLE.items() if task.target.supervised)


def loss(task: str, outputs: Array, y: Array, weight: Array) -> Array:
    """The loss of a task, a scalar.

    Args:
      task: a name in :data:`TABLE`, such as ``state.spec.task``.
      outputs: ``(B, C)``, as :attr:`Words.outputs` of the task says.
      y: in the form of the engine: ``(B,)`` integer classes, ``(B, C)`` numbers, or ``(B, 2)``
        ranks of times and events.
      weight: ``(B,)`` non-negative, not all 0; rows of weight 0 are ignored.
    """
    return TABLE[task].objective.loss(outputs, y, weight)


def metrics(task: str, outputs: Array, y: Array, weight: Array) -> dict[str, Array]:
    """The loss and the recorded metrics of a task, by name; arguments as for :func:`loss`."""
    objective = TABLE[task].objective
    return {"loss": objective.loss(outputs, y, weight), **objective.metrics(outputs, y, weight)}


def row_metrics(task: str, outputs: Array, y: Array) -> dict[str, Array]:
    """:func:`metrics` of each row alone, ``(B,)`` by name.

    Their means are the metrics of all rows for reconstruction, but not for all other tasks:
    areas and concordance compare rows.
    """

    def metrics_alone(output: Array, target: Array) -> dict[str, Array]:
        return metrics(task, output[None], target[None], jnp.ones(1))

    return jax.vmap(metrics_alone)(outputs, y)
