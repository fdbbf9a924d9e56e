"""The targets of the tasks: conversion of users' values, and checks.

``read_...`` functions convert arrays, frames and records to one array; ``check_...`` functions
check the target of a data set and return what the engine trains on. The table of tasks
(:mod:`fsjax.tasks.table`) assigns them to tasks.
"""

from __future__ import annotations

import unicodedata
import warnings
from typing import Any

import numpy as np
import pandas as pd

from fsjax.errors import DataError
from fsjax.tables.rounding import single_or_double
from fsjax.tables.user_arrays import as_array, plain_columns
from fsjax.tasks.classes_or_numbers import MANY_LABELS, kind_of_target

#: A target and, for classes, their names in the order of their numbers.
LabelledTarget = tuple[np.ndarray, tuple[str, ...] | None]

#: The most names in a message.
_NAMED = 5


def read_classes(y: Any) -> LabelledTarget:
    """Number labels of any kind from 0 in sorted order; fractions are returned as they are.

    Warns if whole numbers look like numbers and not like classes.
    """
    y = _array(y)
    check_present(y)
    if y.dtype.kind == "f" and not np.array_equal(y, np.floor(y)):
        return y, None
    warn_of_numbers(y)
    classes, labels = numbered(y)
    return labels.astype(np.int32), tuple(map(str, classes))


def warn_of_numbers(y: np.ndarray, where: str = "y") -> None:
    """Warn of many whole numbers that become classes because the task is classification."""
    labels = len(np.unique(y)) if y.dtype.kind in "iuf" else 0
    if labels > MANY_LABELS and not kind_of_target(y).classes:
        warnings.warn(
            f"{where} holds {labels} different numbers in {len(y)} rows, each of which becomes a "
            "class; choose task='regression' if they are numbers",
            stacklevel=4,
        )


def numbered(y: np.ndarray, where: str = "y") -> tuple[np.ndarray, np.ndarray]:
    """The sorted labels, and the number of the label of each row.

    DataError for labels of several types; warns of labels that differ only by spaces or case.
    """
    try:
        classes, numbers = np.unique(y, return_inverse=True)
    except TypeError:
        kinds = sorted({type(label).__name__ for label in y.ravel().tolist()})
        raise DataError(
            f"{where} holds labels of several types ({', '.join(kinds)}); make all of them text, "
            "or all numbers"
        ) from None
    if classes.dtype.kind in "OUST":
        warn_of_spelling(classes, where)
    return classes, numbers


def warn_of_spelling(classes: np.ndarray, where: str) -> None:
    """Warn of two labels that differ only by spaces, Unicode form or case."""
    seen: dict[str, Any] = {}
    for label in classes:
        plain = " ".join(unicodedata.normalize("NFKC", str(label)).split())
        other = seen.setdefault(plain.casefold(), label)
        if other is not label:
            same = " ".join(unicodedata.normalize("NFKC", str(other)).split()) == plain
            what = "spaces or Unicode form" if same else "case"
            warnings.warn(
                f"{where} holds the labels {str(other)!r} and {str(label)!r}, which differ only by "
                f"{what}, as two classes; write them alike if they are one class",
                stacklevel=4,
            )
            return


def check_present(y: np.ndarray, where: str = "y") -> None:
    """Raise DataError for missing and infinite values, and for empty text."""
    missing = pd.isna(y) if y.dtype.kind in "OMmf" else np.zeros(y.shape, bool)
    if y.dtype.kind in "UT":
        missing = y == ""
    if y.dtype.kind == "O":
        missing = missing | np.frompyfunc(_is_empty, 1, 1)(y).astype(bool)
    _check_none(int(missing.sum()), "missing", where)
    if y.dtype.kind == "f":
        _check_none(int(np.isinf(y).sum()), "infinite", where)


def _is_empty(value: Any) -> bool:
    return isinstance(value, str) and not value


def _check_none(number: int, kind: str, where: str) -> None:
    if number == 1:
        raise DataError(f"{where} has 1 {kind} value; leave this row out")
    if number:
        raise DataError(f"{where} has {number} {kind} values; leave these rows out")


def read_unused(y: Any) -> LabelledTarget:
    """Numbers unchanged; labels as classes."""
    y = _array(y)
    return (y.astype(np.float32), None) if y.dtype.kind in "fiub" else read_classes(y)


def read_exactly(y: Any) -> LabelledTarget:
    """Numbers as float64, also of dates and durations; DataError for anything else."""
    names = list(getattr(y, "columns", ()))
    y = _array(y)
    try:
        # As a number, a missing date would be one far in the past.
        missing = np.isnat(y) if y.dtype.kind in "mM" else False
        return np.where(missing, np.nan, y.astype(np.float64)), None
    except (TypeError, ValueError):
        if y.ndim == 2 and y.shape[1] > 1:
            raise DataError(_text_among(pd.DataFrame(y, columns=names or None))) from None
        raise DataError(
            "y holds values that are not numbers; give numbers, or task='classification' for labels"
        ) from None


def _text_among(outputs: pd.DataFrame) -> str:
    """The message about the first text in several outputs."""
    column, value = next(
        (name, value) for name, of in outputs.items() for value in of if not _is_number(value)
    )
    return (
        f"y holds values that are not numbers, such as {str(value)!r} in column {column!r}; give "
        "numbers. For a time and an event choose task='survival', and write 1 for an event and 0 "
        "where none was seen"
    )


def _is_number(value: Any) -> bool:
    try:
        np.asarray(value).astype(np.float64)
    except (TypeError, ValueError):
        return False
    return True


def read_survival(y: Any) -> LabelledTarget:
    """Time and event as the columns of ``(N, 2)`` float64.

    Args:
      y: an array or a frame with these two columns in this order, or records with two fields. If
        only the first column or field is boolean, it is the event.

    Raises:
      DataError: for other columns, and for text, such as events that are called dead and alive.
    """
    if isinstance(y, np.ndarray) and y.dtype.kind in "OUT" and y.ndim == 2:
        y = pd.DataFrame(y).infer_objects()
    if isinstance(y, pd.DataFrame):
        parts = {name: y[name] for name in y.columns} if y.columns.is_unique else {}
    elif isinstance(y, np.ndarray) and y.dtype.names:
        parts = {name: y[name] for name in y.dtype.names}
    else:
        return read_exactly(y)
    if len(parts) != 2:
        raise DataError(
            f"task=survival needs two columns, time and event, but y has {len(y.columns)}"
            if isinstance(y, pd.DataFrame)
            else f"task=survival needs two fields, event and time, but y has {y.dtype.names}"
        )
    arrays = [_survival_numbers(name, part) for name, part in parts.items()]
    if [part.dtype.kind == "b" for part in parts.values()] == [True, False]:
        arrays.reverse()
    return np.column_stack(arrays), None


def _survival_numbers(name: object, values: Any) -> np.ndarray:
    """A column or field as float64; DataError, which names it, for text."""
    try:
        return read_exactly(values)[0]
    except DataError:
        text = next(value for value in pd.Series(_array(values)) if not _is_number(value))
        raise DataError(
            f"task=survival needs numbers, a time and an event of 0 or 1, but column {name!r} "
            f"holds {text!r}; write 1 for an event, and 0 where none was seen"
        ) from None


def check_any(y: np.ndarray, names: tuple[str, ...] | None, where: str) -> LabelledTarget:
    """A target that is not used."""
    del where
    return y, names


def check_classes(y: np.ndarray, names: tuple[str, ...] | None, where: str) -> LabelledTarget:
    """Whole numbers from 0, of at least two classes.

    Whole numbers that a loader read as numbers become classes, with a warning.
    """
    if y.dtype.kind == "f" and y.ndim == 1 and _are_exact_whole_numbers(y):
        warn_of_numbers(y, f"the target of {where}")
        labels, y = np.unique(y, return_inverse=True)
        y, names = y.astype(np.int32), tuple(str(int(label)) for label in labels)
    if not np.issubdtype(y.dtype, np.integer):
        raise DataError(
            f"task=classification needs classes, but the target of {where} holds "
            f"{len(np.unique(y))} different numbers in {len(y)} rows; "
            "choose task=regression, or give class labels"
        )
    if len(np.unique(y)) < 2:
        raise DataError(
            f"task=classification needs at least 2 classes, but {where} has only one; "
            "choose another target, or task=reconstruction"
        )
    # Loaders number classes from 0, but a Dataset made by hand may have negative numbers.
    if y.min() < 0:
        raise DataError(f"{where}: class numbers start at {y.min()}; number them from 0")
    return y, names


def _are_exact_whole_numbers(y: np.ndarray) -> bool:
    """Whether floats are whole numbers that their type represents exactly."""
    return bool(np.all(y == np.round(y)) and np.abs(y).max() <= 2 ** (np.finfo(y.dtype).nmant))


def check_numbers(y: np.ndarray, names: tuple[str, ...] | None, where: str) -> LabelledTarget:
    """Numbers ``(N,)`` or ``(N, C)``; classes whose names are numbers become these numbers."""
    y = _decoded(y, names, where, "regression")
    check_present(y, f"the target of {where}")
    return y, None


def check_labels(y: np.ndarray, names: tuple[str, ...] | None, where: str) -> LabelledTarget:
    """``(N, L)`` of 0 and 1."""
    y = _decoded(y, names, where, "multilabel")
    if y.ndim != 2:
        raise DataError(
            f"task=multilabel needs a column of 0 and 1 for each label, but the target of {where} "
            f"has shape {y.shape}; give (N, L), or choose task=classification for one label"
        )
    bad = (y != 0) & (y != 1)
    if bad.any():
        row, label = np.argwhere(bad)[0]
        raise DataError(
            f"task=multilabel needs 0 and 1, but the target of {where} holds {y[row, label]:g} in "
            f"row {row}, label {label}; give 1 for labels that a row has, and 0 for all others"
        )
    return y, None


def check_counts(y: np.ndarray, names: tuple[str, ...] | None, where: str) -> LabelledTarget:
    """Whole numbers from 0, ``(N,)`` or ``(N, C)``, not all of them 0."""
    y = _decoded(y, names, where, "counts")
    for bad, fault, advice in (
        (~np.isfinite(y), "missing or infinite values", "leave these rows out"),
        (y < 0, "negative numbers", "choose task=regression for numbers that are not counts"),
        (y != np.round(y), "fractions", "choose task=regression for numbers that are not counts"),
    ):
        if bad.any():
            place = tuple(np.argwhere(bad)[0])
            raise DataError(
                f"task=counts needs whole numbers from 0, but the target of {where} has {fault} in "
                f"{int(bad.sum())} entries (first: {y[place]:g} in row {place[0]}); {advice}"
            )
    if not y.any(axis=0).all():
        raise DataError(
            f"a column of the target of {where} holds only zeros, so that there is nothing to "
            "learn; choose another target"
        )
    return y, None


def check_survival(y: np.ndarray, names: tuple[str, ...] | None, where: str) -> LabelledTarget:
    """``(N, 2)``: times above 0, and events that are 0 or 1, with at least one event."""
    y = _decoded(y, names, where, "survival")
    if y.ndim != 2 or y.shape[1] != 2:
        raise DataError(
            f"task=survival needs two columns, time and event, but the target of {where} has shape "
            f"{y.shape}; give (N, 2), or data.target=TIME,EVENT in a config"
        )
    time, event = y.T
    if not np.isfinite(y).all():
        raise DataError(f"the target of {where} has missing or infinite values; drop these rows")
    bad = (event != 0) & (event != 1)
    if bad.any():
        row = int(bad.argmax())
        swapped = np.isin(time, (0, 1)).all()
        raise DataError(
            f"task=survival needs events of 0 and 1 in the second column, but {where} has "
            f"{event[row]:g} in row {row}; "
            + ("the first column holds the events: swap them" if swapped else "1 is an event")
        )
    bad = time <= 0
    if bad.any():
        raise DataError(
            f"task=survival needs times above 0, but {where} has {int(bad.sum())} others (first: "
            f"{time[bad.argmax()]:g} in row {int(bad.argmax())}); leave these rows out, or add a "
            "small time to all"
        )
    if not event.any():
        raise DataError(
            f"task=survival needs events, but all rows of {where} are censored; the second column "
            "has to be 1 where the event was observed"
        )
    return y, None


def places_in_time(y: np.ndarray) -> np.ndarray:
    """Replace times by their ranks from 1, which float32 represents exactly; only these matter."""
    ranks = np.unique(y[:, 0], return_inverse=True)[1] + 1
    return np.column_stack([ranks, y[:, 1]]).astype(np.float32)


def _array(y: Any) -> np.ndarray:
    y = as_array(plain_columns(y), "y")
    if y.ndim == 0:
        raise DataError(f"y is {str(y)[:50]!r}; give one target for each row, in an array")
    if y.dtype.kind in "cV":
        # scikit-learn's checks of estimators expect these words.
        prefix = "Complex data not supported: " if y.dtype.kind == "c" else ""
        raise DataError(f"{prefix}y has the type {y.dtype}; give real numbers, or labels")
    return y


def _decoded(y: np.ndarray, names: tuple[str, ...] | None, where: str, task: str) -> np.ndarray:
    """The original numbers of a target, also if they were read as classes."""
    if not np.issubdtype(y.dtype, np.integer):
        return y
    numbers = y
    if names is not None:
        try:
            numbers = np.array(list(map(float, names)))[y]
        except ValueError:
            shown = ", ".join(map(repr, names[:_NAMED]))
            more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
            raise DataError(
                f"task={task} needs numbers, but the target of {where} holds the classes "
                f"{shown}{more}; choose task=classification"
            ) from None
    return single_or_double(numbers)
