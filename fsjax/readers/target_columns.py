"""Turn a column of labels or numbers into the target of a data set."""

import numpy as np
import pandas as pd

from fsjax.errors import DataError
from fsjax.tasks.classes_or_numbers import kind_of_target
from fsjax.tasks.targets import numbered


def encode_target(
    values: np.ndarray, where: str, names: tuple[str, ...] | None = None
) -> tuple[np.ndarray, tuple[str, ...] | None]:
    """Number the classes from 0, or keep numbers that are not class labels.

    :func:`fsjax.tasks.classes_or_numbers.kind_of_target` says which; labels are numbered in sorted
    order. A value that is missing or infinite is a DataError, which calls the (N,) values
    ``where``, and so is one value in all rows.

    Returns:
        (N,) int32 classes, with ``names`` where there is one for each label in sorted order, else
        with the labels; or (N,) float32 and None.
    """
    values, missing = _plain(np.asarray(values).ravel())
    if missing.any():
        raise DataError(
            f"{where} has no usable value in {int(missing.sum())} of {len(values)} rows (first: "
            f"row {int(missing.argmax())}, counted from 0); fill them in, or drop these rows"
        )
    labels, classes = numbered(values, where)
    if len(labels) < 2:
        shown = str(labels[0]) if len(labels) else "nothing"
        raise DataError(
            f"{where} has one value only ({shown!r}); choose another column, or leave the target "
            "out for task=reconstruction"
        )
    if not kind_of_target(values).classes:
        return values.astype(np.float32), None
    if values.dtype.kind in "iuf":
        labels = labels.astype(np.int64 if values.dtype.kind == "f" else values.dtype)
    if names is None or len(names) != len(labels):
        names = tuple(map(str, labels))
    return classes.astype(np.int32), names


def encode_targets(values: np.ndarray, where: str) -> np.ndarray:
    """Several numbers for each row, (N, C) float64; truth values are 1 and 0.

    DataError, which calls the values ``where``, for text and for missing or infinite values.
    """
    try:
        numbers = values.astype(np.float64)
    except (TypeError, ValueError):
        raise DataError(
            f"{where} holds values that are no numbers; several targets are numbers, or 0 and 1"
        ) from None
    missing = ~np.isfinite(numbers).all(axis=1)
    if missing.any():
        raise DataError(
            f"{where} has no usable value in {int(missing.sum())} of {len(values)} rows (first: "
            f"row {int(missing.argmax())}, counted from 0); fill them in, or drop these rows"
        )
    return numbers


def _plain(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(N,) whole numbers as they are, others as float64, or everything else as text; and (N,) bool,
    what is missing.
    """
    if values.dtype.kind in "iu":
        # Labels beyond 2^53 would become one as floats.
        return values, np.zeros(len(values), bool)
    if values.dtype.kind == "f":
        numbers = values.astype(np.float64)
        return numbers, ~np.isfinite(numbers)
    if values.dtype == object:
        return np.array([str(value) for value in values], dtype=str), pd.isna(values)
    if values.dtype.kind in "cV":
        raise DataError(f"the target has the type {values.dtype}; give real numbers, or labels")
    text = values.astype(str)
    return text, (text == "") | pd.isna(values)
