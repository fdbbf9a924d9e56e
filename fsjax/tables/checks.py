"""Checks of the user's tables and options. Each error message says what to do."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from pandas.api.types import is_complex_dtype, is_numeric_dtype

from fsjax.errors import DataError, name_some
from fsjax.tables.base import RawTable, as_table

_NAMED = 5
"""The most columns that a message names."""

_NUMBERS_ONLY = (
    "encode them as numbers (pandas.get_dummies does), drop them, or make one the target (y, or "
    "data.target in a config); fsjax.select takes text and dates as they are"
)
"""What to do about columns of text and dates."""

_ROUNDING = 8 * np.finfo(np.float64).eps
"""float64 values whose relative difference is at most this count as equal."""


def check_features(
    X: RawTable,
    feature_names: Sequence[str] | None,
    where: str,
    fill: str = "fill them (data.impute=mean of a config, or scikit-learn's SimpleImputer)",
) -> None:
    """Check that ``X`` is a non-empty numeric (N, D) table without missing or infinite values.

    Args:
        X: a table in memory, sparse or on disk.
        feature_names: D names by which messages refer to columns, or None.
        where: the name of the table in messages.
        fill: advice about missing values in messages.

    Raises:
        DataError: which names up to five of the affected columns.

    Examples:
      >>> X = np.array([[1.0, 5.0], [np.nan, 5.0], [3.0, 5.0]])
      >>> X = fsjax.data.impute(X, None, "mean", "my table")
      >>> fsjax.data.check_features(X, ["a", "b"], "my table")  # a DataError for NaN
      >>> fsjax.data.check_num_features(2, X.shape[1])
      >>> print(fsjax.data.constant_columns(X))  # [False  True]
    """
    if X.ndim != 2:
        raise DataError(f"{where}: X has shape {X.shape}; give a table of (rows, columns)")
    if X.shape[0] == 0 or X.shape[1] == 0:
        raise DataError(f"{where} is empty: {X.shape[0]} rows and {X.shape[1]} feature columns")
    if X.dtype.kind not in "fiub":
        raise DataError(f"{where}: X has type {X.dtype}; give real numbers")
    if X.dtype.kind != "f":
        return
    missing, infinite = as_table(X).not_finite()
    if not (missing.any() or infinite.any()):
        return
    bad = np.flatnonzero(missing + infinite).tolist()
    labels = [f"column {i}" if feature_names is None else feature_names[i] for i in bad]
    faults, advice = [], []
    if missing.any():
        faults.append(f"{_values(missing.sum(), 'missing')} (NaN)")
        advice.append(fill)
    if infinite.any():
        faults.append(_values(infinite.sum(), "infinite"))
        advice.append("replace infinities, and numbers beyond 3.4e38, with smaller numbers")
    raise DataError(
        f"{where} has {' and '.join(faults)} in {len(bad)} of {len(missing)} columns: "
        f"{name_some(labels)}; {'; '.join(advice)}; or drop these columns or rows"
    )


def _values(number: int, kind: str) -> str:
    return f"{number} {kind} {'value' if number == 1 else 'values'}"


def holds_numbers(column: pd.Series) -> bool:
    """Whether a column has a type of real numbers or booleans."""
    return is_numeric_dtype(column) and not is_complex_dtype(column)


def numeric_columns(
    frame: pd.DataFrame, where: str, numeric: Callable[[pd.Series], bool] = holds_numbers
) -> tuple[str, ...]:
    """The column names of a frame, all of whose columns have to be ``numeric``.

    The DataError names the table as ``where``, and up to five other columns with a value of each.
    """
    bad = [(name, column) for name, column in frame.items() if not numeric(column)]
    if bad:
        shown = [
            f"{str(name)!r} (such as {_first_text(values)!r})" for name, values in bad[:_NAMED]
        ]
        raise DataError(
            f"{where} has {len(bad)} of {frame.shape[1]} columns that are not numbers: "
            f"{_listed(shown, len(bad))}; {_NUMBERS_ONLY}"
        )
    return tuple(map(str, frame.columns))


def check_dates(X: Any) -> None:
    """DataError for a polars frame with dates or times, which arrays would hold as numbers."""
    schema = getattr(X, "schema", None)
    if not isinstance(schema, Mapping):
        return
    temporal = {name: dtype for name, dtype in schema.items() if dtype.is_temporal()}
    if temporal:
        shown = [f"{name!r} ({dtype})" for name, dtype in temporal.items()]
        raise DataError(
            f"X has {len(temporal)} of {len(schema)} columns that are not numbers: "
            f"{_listed(shown[:_NAMED], len(temporal))}; {_NUMBERS_ONLY}"
        )


def check_text(X: RawTable) -> None:
    """DataError like that of :func:`numeric_columns` for an array ``(N, D)`` that holds text."""
    if not isinstance(X, np.ndarray) or X.ndim != 2 or X.dtype.kind not in "OUST":
        return
    text = np.vectorize(_is_text, otypes=[bool])(X) if X.size else np.zeros(X.shape, bool)
    bad = np.flatnonzero(text.any(axis=0))
    if bad.size:
        shown = [f"column {i} (such as {str(X[text[:, i], i][0])!r})" for i in bad[:_NAMED]]
        raise DataError(
            f"X has {bad.size} of {X.shape[1]} columns that are not numbers: "
            f"{_listed(shown, bad.size)}; {_NUMBERS_ONLY}"
        )


def _is_text(value: object) -> bool:
    """Whether a value is text that cannot be read as a number."""
    if not isinstance(value, str | bytes):
        return False
    try:
        float(value)
    except ValueError:
        return True
    return False


def check_column_names(X: Any) -> None:
    """DataError for a pandas frame with repeated column names."""
    if not isinstance(X, pd.DataFrame):
        return
    repeated = X.columns[X.columns.duplicated()].unique()
    if len(repeated):
        raise DataError(f"X has several columns called {name_some(repeated)}; rename them")


def constant_columns(X_train: RawTable) -> np.ndarray:
    """Which columns of (N, D) rows are constant; returns (D,) bool.

    float64 values that differ only by rounding count as equal.
    """
    return is_constant(*as_table(X_train).limits(), X_train.dtype)


def is_constant(lowest: np.ndarray, highest: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Whether all values between these limits count as equal, elementwise; returns bool."""
    if dtype != np.float64:
        return lowest == highest
    with np.errstate(over="ignore"):
        return highest - lowest <= _ROUNDING * np.maximum(np.abs(lowest), np.abs(highest))


def _listed(shown: Sequence[str], count: int) -> str:
    return ", ".join(shown) + (f" and {count - len(shown)} more" if count > len(shown) else "")


def _first_text(column: pd.Series) -> str:
    numbers = pd.to_numeric(column, errors="coerce")
    text = column[numbers.isna() & column.notna()]
    return str((text if len(text) else column).iloc[0])
