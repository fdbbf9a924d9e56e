"""The target of a table: which columns it is, and their conversion to classes or numbers."""

from collections.abc import Container, Sequence

import numpy as np
import pandas as pd

from fsjax.errors import DataError, name_some, nearest
from fsjax.tables.rounding import check_target_range, single_or_double
from fsjax.tasks.classes_or_numbers import kind_of_target
from fsjax.tasks.targets import numbered


def encode_target(
    values: np.ndarray, where: str, names: tuple[str, ...] | None = None
) -> tuple[np.ndarray, tuple[str, ...] | None]:
    """Number classes from 0 in sorted order, or keep numbers that are not class labels.

    :func:`fsjax.tasks.classes_or_numbers.kind_of_target` decides which of them the values are.

    Args:
        names: of the classes in sorted order, or None for their labels.

    Returns:
        (N,) int32 classes and their names; ``names`` is ignored unless there is one for each
        class, or if they are labels of text in another order. For numbers, (N,) float32, or
        float64 where float32 is too coarse, and None.

    Raises:
        DataError: for missing or infinite values, and if all values are equal.
    """
    values, missing = _plain(np.asarray(values).ravel())
    _check_usable(missing, where)
    labels, classes = numbered(values, where)
    if len(labels) < 2:
        shown = str(labels[0]) if len(labels) else "nothing"
        raise DataError(
            f"{where} has only one value ({shown!r}), so that there is nothing to predict; choose "
            "another column"
        )
    if not kind_of_target(values).classes:
        check_target_range(values, where)
        return single_or_double(values), None
    if values.dtype.kind in "iuf":
        labels = labels.astype(np.int64 if values.dtype.kind == "f" else values.dtype)
    texts = tuple(map(str, labels))
    reordered = values.dtype.kind == "U" and set(names or ()) == set(texts)
    if names is None or len(names) != len(labels) or reordered:
        names = texts
    return classes.astype(np.int32), names


def encode_targets(values: np.ndarray, where: str) -> np.ndarray:
    """Several numbers for each row, (N, C) float64; booleans become 1 and 0.

    DataError, which calls the values ``where``, for text and for missing or infinite values.
    """
    try:
        numbers = values.astype(np.float64)
    except (TypeError, ValueError):
        raise DataError(
            f"{where} holds values that are not numbers; several targets have to be numbers, for "
            "labels 0 and 1"
        ) from None
    _check_usable(np.asarray(~np.isfinite(numbers).all(axis=1)), where)
    return numbers


def _check_usable(missing: np.ndarray, where: str) -> None:
    """DataError if rows of a target are marked as missing or infinite, ``(N,)`` bool."""
    if missing.any():
        raise DataError(
            f"{where} has no usable value in {int(missing.sum())} of {len(missing)} rows (first: "
            f"row {int(missing.argmax())}, counted from 0); fill them in, or drop these rows (in a "
            "text file, NA, None and the like mean missing: give a class of that name another one)"
        )


def _plain(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(N,) values as whole numbers, float64 or text, and a mask (N,) of missing values."""
    if values.dtype.kind in "iu":
        # As floats, different labels beyond 2^53 could become equal.
        return values, np.zeros(len(values), bool)
    if values.dtype.kind == "f":
        numbers = values.astype(np.float64)
        return numbers, ~np.isfinite(numbers)
    if values.dtype == object:
        text = np.array([str(value) for value in values], dtype=str)
        return text, (text == "") | pd.isna(values)
    if values.dtype.kind in "cV":
        raise DataError(f"the target has the type {values.dtype}; give real numbers, or labels")
    text = values.astype(str)
    return text, (text == "") | pd.isna(values)


def without_target(
    frame: pd.DataFrame, target: str | int | Sequence[str | int]
) -> tuple[pd.DataFrame, np.ndarray]:
    """The other columns, and the target (N,), or (N, C) for several."""
    names = [target_column(list(frame.columns), name) for name in target_names(frame, target)]
    _check_distinct(names)
    y = frame[names if len(names) > 1 else names[0]].to_numpy()
    return frame.drop(columns=names), y


def target_names(
    columns: Container[str], target: str | int | Sequence[str | int]
) -> list[str | int]:
    """The list of target columns; commas separate them unless a column has that name.

    DataError if one is named twice.
    """
    if isinstance(target, str) and "," in target and target not in columns:
        target = [name.strip() for name in target.split(",") if name.strip()]
    names = [target] if isinstance(target, str | int | np.integer) else list(target)
    _check_distinct(names)
    return names


def _check_distinct(names: Sequence[str | int]) -> None:
    if len(set(names)) < len(names):
        raise DataError(f"target={','.join(map(str, names))} names a column twice; name each once")


def target_column(columns: list[str], target: str | int) -> str:
    """The name of the target column, given by name or number; DataError if there is none."""
    if target in columns:
        return target
    try:
        return columns[int(target)]
    except ValueError:
        close = nearest(str(target), columns)
        advice = f"{close} " if close.startswith("did you mean") else ""
        raise DataError(
            f"target={target!r} is not a column; {advice}the columns are {name_some(columns)}"
        ) from None
    except IndexError:
        raise DataError(
            f"target={target} is not a column of {len(columns)}; give a name, or a number from "
            f"0 to {len(columns) - 1} (or -1 for the last)"
        ) from None
