"""Weights of the rows of ``fsjax.select``: checks, and models and scores that take them.

Weights are relative: they are divided by their mean, and rows of weight 0 are left out before
anything is estimated. They stand beside the target, in ``Problem.weights`` and ``Part.weights``,
and are None where all rows count alike.
"""

from __future__ import annotations

import inspect
from typing import Any, NamedTuple

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _check_sample_weight, has_fit_parameter

from fsjax import ConfigError, DataError
from fsjax.auto.contest.scoring import Metric, check_weighs_rows
from fsjax.auto.reading.notes import ROWS, Note

_UNWEIGHTED = (
    "count in proportion to their weights in rankings, models and scores; p, q and AUC values of "
    "single columns, their effects, correlations and curves, the search for leaks, the confusion "
    "table and the models of decoy columns count all rows alike"
)


def checked_weights(sample_weight: Any, rows: int) -> np.ndarray | None:
    """``(N,)`` weights of the rows, as they are given; None if all are equal.

    Raises:
      DataError: unless there is a finite number of at least 0 for each row, and one above 0.
    """
    if sample_weight is None:
        return None
    try:
        weights = _check_sample_weight(
            sample_weight, np.empty((rows, 0)), dtype=np.float64, ensure_non_negative=True
        )
    except (TypeError, ValueError) as error:
        raise DataError(
            f"sample_weight: {str(error).rstrip('.')}; give a finite number of at least 0 for each "
            "row"
        ) from None
    if not weights.any():  # older versions of scikit-learn accept this
        raise DataError("sample_weight: all weights are 0; give a non-zero number for some rows")
    return None if (weights == weights[0]).all() else weights


class WeightedRows(NamedTuple):
    """The rows of a selection that count.

    Attributes:
      X, y, row_groups: as they were given, without the rows of weight 0.
      weights: ``(n,)`` above 0, or None if all are equal.
      notes: what the weights change, and what they do not.
    """

    X: Any
    y: Any
    row_groups: Any
    weights: np.ndarray | None
    notes: tuple[Note, ...]


def weighted_rows_of(X: Any, y: Any, row_groups: Any, sample_weight: Any) -> WeightedRows:
    """Reads the weights and leaves out the rows of weight 0.

    Args:
      X: ``(N, columns)``, a frame or a sparse table.
      y, row_groups: a value for each row, or None.
      sample_weight: ``(N,)``, or None.

    Raises:
      DataError: as :func:`checked_weights`, or if y or row_groups have another number of rows.
    """
    weights = checked_weights(sample_weight, X.shape[0])
    if weights is None:
        return WeightedRows(X, y, row_groups, None, ())
    notes: tuple[Note, ...] = ()
    kept = np.flatnonzero(weights)
    if absent := len(weights) - len(kept):
        text = f"of weight 0 were left out: {absent:,} of {len(weights):,}"
        notes = (Note(ROWS, "weights", text),)
        for name, values in {"y": y, "row_groups": row_groups}.items():
            if values is not None and len(values) != len(weights):
                raise DataError(
                    f"{name} has {len(values)} values for {len(weights)} rows; give one for each"
                )
        X, y = _safe_indexing(X, kept), _safe_indexing(y, kept)
        row_groups = None if row_groups is None else _safe_indexing(row_groups, kept)
        weights = weights[kept]
    if (weights == weights[0]).all():
        return WeightedRows(X, y, row_groups, None, notes)
    return WeightedRows(X, y, row_groups, weights, (*notes, Note(ROWS, "weights", _UNWEIGHTED)))


def check_weighted(task: str, judge: Any, metric: Metric) -> None:
    """Checks that the task, the judge and the metric take weights of rows.

    Args:
      judge: as the user gave it: a name, an estimator, or None.

    Raises:
      ConfigError: if one of them does not.
    """
    if task == "survival":
        raise ConfigError(
            "sample_weight: the models of task='survival' do not take weights of rows; omit them"
        )
    if not (judge is None or isinstance(judge, str)):
        check_takes_weights(judge)
    check_weighs_rows(metric)


def check_takes_weights(model: Any) -> None:
    """Checks that an estimator can be fitted with ``sample_weight``.

    Raises:
      ConfigError: if it cannot.
    """
    if not (_takes(model) or _passes_on(model)):
        name = type(_last(model)).__name__
        raise ConfigError(
            f"judge: {name} does not take sample_weight; choose another judge, or omit "
            "sample_weight"
        )


def fit_weighted(model: Any, X: Any, y: np.ndarray, weights: np.ndarray | None) -> Any:
    """Fits an estimator; of a pipeline, the last step gets the weights."""
    if weights is None:
        return model.fit(X, y)
    prefix = ""
    step = model
    while isinstance(step, Pipeline):
        name, step = step.steps[-1]
        prefix += f"{name}__"
    return model.fit(X, y, **{f"{prefix}sample_weight": weights})


def _last(model: Any) -> Any:
    while isinstance(model, Pipeline):
        model = model.steps[-1][1]
    return model


def _takes(model: Any) -> bool:
    return has_fit_parameter(_last(model), "sample_weight")


def _passes_on(model: Any) -> bool:
    """Whether a model of another one, such as a grid search, passes its weights to that one."""
    kinds = [
        parameter.kind for parameter in inspect.signature(_last(model).fit).parameters.values()
    ]
    inner = getattr(_last(model), "estimator", None) or getattr(_last(model), "regressor", None)
    return inspect.Parameter.VAR_KEYWORD in kinds and inner is not None and _takes(inner)
