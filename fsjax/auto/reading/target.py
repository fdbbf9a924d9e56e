"""Reads the target of ``fsjax.select`` as its task needs it, and infers the task if not given."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from fsjax import DataError
from fsjax.auto.reading.notes import TARGET, Note
from fsjax.auto.reading.written_numbers import read_numbers
from fsjax.data import as_array, encode_target, one_spelling
from fsjax.errors import check_choice, name_some
from fsjax.tasks import get_task, kind_of_target

#: Names of classes, or None for other targets.
Names = tuple[str, ...] | None

#: The tasks of a selection.
TASKS = ("classification", "regression", "multilabel", "counts", "survival")

_WHERE = "the target"

#: Largest target, and inverse of its smallest spread, whose squares are computed.
_LARGEST = 1e100

_TIME_AND_EVENT = (
    "has a positive column and one of 0 and 1, taken as two numbers; if they are a time and "
    "whether the event was seen by then, choose the task survival"
)


class ReadTarget(NamedTuple):
    """The target of a selection.

    Attributes:
      values: ``(N,)`` int32 classes from 0, or ``(N,)`` or ``(N, C)`` float64.
      task: the task, as given or inferred.
      classes: the names of the classes, or of several outputs where they are known, or ``None``.
      notes: how the target was read, if another reading is likely too.
    """

    values: np.ndarray
    task: str
    classes: Names
    notes: tuple[Note, ...] = ()


def read_target(y: Any, task: str | None, rows: int) -> ReadTarget:
    """Reads the target for its task.

    Args:
      y: labels or numbers, one or several for each row, or time and event.
      task: of :data:`TASKS`, or ``None`` to infer it from y
        (:func:`fsjax.tasks.classes_or_numbers.kind_of_target`).
      rows: number of rows of the table.

    Raises:
      ConfigError: for an unknown task.
      DataError: for a y that does not fit the task, or the table, or has masked values.
    """
    if task is not None:
        check_choice("task", task, TASKS)
    labels = as_array(y, "y")
    if labels.ndim == 0:
        raise DataError(f"y is {str(y)[:50]!r}; give one target for each row of X, in an array")
    if len(labels) != rows:
        raise DataError(f"y has {len(labels)} values for {rows} rows of X; give one for each row")
    outputs = _names_of(y)
    several = labels.ndim > 1 and labels.shape[1] > 1
    if several and task is None:
        guess = "multilabel" if np.isin(labels, (0, 1)).all() else "regression"
        values = _numbers(y, guess)
        hint = Note(TARGET, "target", _TIME_AND_EVENT)
        hints = (hint,) if is_time_and_event(values) else ()
        return ReadTarget(values, guess, outputs, hints)
    if task is not None and (several or task == "survival"):
        if task == "classification":
            raise DataError("y has several columns; give one, of labels, for task='classification'")
        return ReadTarget(_numbers(y, task), task, None if task == "survival" else outputs)
    labels, notes = _with_written_numbers(labels.reshape(rows), task)
    if task not in (None, "classification"):
        return ReadTarget(_numbers(labels, task), task, None, notes)
    with warnings.catch_warnings():
        # A note says so already.
        warnings.filterwarnings("ignore", ".*differ only by case", UserWarning)
        # Larger numbers are no classes, and have no float32.
        huge = labels.dtype.kind == "f" and np.abs(labels).max() > np.finfo(np.float32).max
        values, names = (labels, None) if huge else encode_target(labels, _WHERE)
    if names is not None and len(names) > len(values) / 2 and labels.dtype.kind not in "iufb":
        raise DataError(
            f"the target has {len(names)} different texts or dates in {len(values)} rows, which is "
            "too many for classes; choose another column, or write them as numbers"
        )
    if task == "classification":
        if names is None:
            values, names = _numbers_as_classes(labels)
        return ReadTarget(values, task, names, notes)
    if remark := kind_of_target(labels).remark:
        notes += (Note(TARGET, "target", remark),)
    if names is None:
        return ReadTarget(_numbers(labels, "regression"), "regression", None, notes)
    return ReadTarget(values, "classification", names, notes)


def _names_of(y: Any) -> Names:
    """Names of the outputs, of a frame; DataError for repeated ones."""
    if hasattr(y, "columns") and len(set(y.columns)) < len(y.columns):
        raise DataError(f"y has the columns {list(y.columns)}; give each its own name")
    return tuple(map(str, y.columns)) if hasattr(y, "columns") else None


def is_time_and_event(values: np.ndarray) -> bool:
    """Whether ``(N, C)`` numbers look like a time from 0 and a 0/1 column, in either order."""
    if values.shape[1] != 2:
        return False
    binary = [set(np.unique(column)) == {0.0, 1.0} for column in values.T]
    other = values[:, binary.index(False)] if sum(binary) == 1 else np.array([-1.0])
    return bool((other >= 0).all())


def _with_written_numbers(
    labels: np.ndarray, task: str | None
) -> tuple[np.ndarray, tuple[Note, ...]]:
    """Reads texts such as ``€12`` or ``1,5`` as numbers, unless they are to be classes.

    Labels that differ only by spaces or Unicode form are merged.
    """
    if labels.dtype.kind not in "OUT":
        return labels, ()
    texts = pd.Series(labels, dtype=object)
    if not all(isinstance(label, str) for label in texts.dropna().tolist()):
        return labels, ()
    spelling = one_spelling(texts)
    distinct = spelling.texts.dropna().drop_duplicates()
    numbers = None if task == "classification" else read_numbers(distinct)
    if numbers is not None:
        values = spelling.texts.map(pd.Series(numbers.values.to_numpy(), index=distinct))
        unread = numbers.values.isna().to_numpy()
        if not unread.any() and (numbers.remark or numbers.warning):
            notes = (Note(TARGET, "target", text) for text in numbers[1:] if text)
            return values.to_numpy(np.float64), tuple(notes)
        if unread.any() and not kind_of_target(values.dropna().to_numpy(np.float64)).classes:
            raise DataError(
                f"the target has numbers, and {name_some(distinct[unread].tolist())} in "
                f"{int(values.isna().sum())} of {len(values)} rows; write numbers there, drop "
                "these rows, or choose task='classification'"
            )
    notes = (Note(TARGET, "spelling", text) for text in spelling[1:] if text)
    return spelling.texts.to_numpy(labels.dtype), tuple(notes)


def _numbers_as_classes(numbers: np.ndarray) -> tuple[np.ndarray, tuple[str, ...]]:
    """Classes from 0, and their names, of numbers that do not look like classes."""
    distinct, values = np.unique(numbers, return_inverse=True)
    if len(distinct) > len(numbers) / 2:
        raise DataError(
            f"the target has {len(distinct)} different values in {len(numbers)} rows, which is "
            "too many for classes; choose task='regression'"
        )
    return values.astype(np.int32), tuple(f"{value:.12g}" for value in distinct.tolist())


def _numbers(y: Any, task: str) -> np.ndarray:
    """Float64 numbers that fit the task; DataError for missing or constant ones."""
    checked, _ = get_task(task).target.check(*get_task(task).target.read(y), "the table")
    values = np.asarray(checked, np.float64)
    if not np.isfinite(values).all():
        raise DataError("the target has missing or infinite values; drop these rows")
    if (values == values[0]).all():
        raise DataError("the target has one value only; choose another column")
    return values


def check_scale(target: np.ndarray) -> None:
    """DataError for a target ``(N,)`` or ``(N, C)`` whose squares are not float64 numbers."""
    spreads = np.ptp(target.astype(np.float64), axis=0)
    # Events of survival may be all alike.
    largest, spread = np.abs(target).max(), np.min(spreads, where=spreads > 0, initial=np.inf)
    if largest > _LARGEST or spread < 1 / _LARGEST:
        raise DataError(
            f"the target has values up to {largest:.3g} that differ by {spread:.3g}, whose squares "
            f"are beyond the range of numbers; scale it to values between {1 / _LARGEST:g} and "
            f"{_LARGEST:g}"
        )
