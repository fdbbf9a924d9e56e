"""Arrays from users' values; whatever NumPy would drop or invent silently is an error.

Nullable, Arrow-backed and sparse columns of pandas become columns of NumPy types.
"""

from collections import Counter
from typing import Any

import numpy as np
import pandas as pd
from pandas.api.extensions import ExtensionArray
from scipy.sparse import csr_array, issparse

from fsjax.errors import ConfigError, DataError
from fsjax.tables.sparse import as_csr, stays_sparse


def as_array(values: Any, where: str) -> np.ndarray:
    """The values as a dense array.

    Args:
        values: anything that ``np.asarray`` accepts.

    Raises:
        ConfigError: for a sparse matrix.
        DataError: for rows of different lengths, and for masked values, whose mask would be lost.
    """
    if issparse(values):
        raise ConfigError(f"{where} is a sparse matrix; give an array, {where}.toarray()")
    check_masked(values, where)
    try:
        return np.asarray(values)
    except (ValueError, TypeError) as error:
        message = str(error).partition(". ")[0]
        advice = (
            "give rows of the same length" if "inhomogeneous" in str(error) else "give an array"
        )
        raise DataError(f"{where} is not an array ({message}); {advice}") from None


def numbers_of(x: Any) -> np.ndarray | csr_array:
    """The numbers of a table in memory that a user hands over: CSR if it is sparse.

    Args:
        x: an array, a sparse matrix or array of SciPy, or a pandas frame, which counts as sparse if
            one of its columns is.

    Raises:
        DataError: if it is not an array, or cannot be read as numbers (:func:`as_csr`).
    """
    x = plain_columns(x)
    if stays_sparse(x):
        return as_csr(x)
    return frame_values(x) if isinstance(x, pd.DataFrame) else as_array(x, "X")


def check_masked(values: Any, where: str) -> None:
    """DataError for a masked array that has masked values."""
    if isinstance(values, np.ma.MaskedArray) and np.ma.getmaskarray(values).any():
        count = int(np.ma.getmaskarray(values).sum())
        raise DataError(
            f"{where} has {count} masked values; fill them ({where}.filled(...)), or leave these "
            "rows out"
        )


def check_row_order(X: Any, where: str = "X", **others: Any) -> None:
    """DataError if a pandas object has the row labels of X, but in another order.

    Rows are paired by position, as in scikit-learn. Other labels than those of X say nothing: they
    may have been reset, or belong to later rows of a series.

    Args:
        X: the table; only a pandas frame has row labels.
        where: its name in messages.
        others: what has a value for each row, by argument name.
    """
    if not isinstance(X, pd.DataFrame):
        return
    for name, values in others.items():
        if not isinstance(values, pd.Series | pd.DataFrame) or len(values) != len(X):
            continue
        if values.index.equals(X.index) or Counter(values.index) != Counter(X.index):
            continue
        row = int(np.argmax([a != b for a, b in zip(X.index, values.index, strict=True)]))
        by_label = (
            f"{name}.loc[{where}.index]" if X.index.is_unique else "labels that do not repeat"
        )
        raise DataError(
            f"{name} has the row labels of {where} in another order (in row {row}, counted from "
            f"0, {where} has {X.index[row]!r} and {name} {values.index[row]!r}); pair rows by "
            f"label with {by_label}, or, if they are in the right order, by position with "
            f"{name}.to_numpy()"
        )


def plain_columns(values: Any) -> Any:
    """A pandas frame, series or array with NumPy types for nullable and Arrow-backed numbers.

    Missing values become NaN. Other columns and other values are returned as they are.
    """
    if isinstance(values, ExtensionArray):
        values = pd.Series(values)
    if isinstance(values, pd.Series):
        return values.astype(_numpy_type(values)) if _is_nullable(values.dtype) else values
    # Repeated column names are reported elsewhere.
    if not isinstance(values, pd.DataFrame) or not values.columns.is_unique:
        return values
    names = [name for name, dtype in values.dtypes.items() if _is_nullable(dtype)]
    return values.astype({name: _numpy_type(values[name]) for name in names}) if names else values


def frame_values(frame: pd.DataFrame) -> np.ndarray:
    """The numbers ``(N, D)`` of a frame, which may mix booleans and other numbers."""
    values = frame.to_numpy()
    return values if values.dtype != object else frame.to_numpy(np.float64)


def _is_nullable(dtype: Any) -> bool:
    """Whether a type is one of nullable or Arrow-backed numbers."""
    as_numpy = getattr(dtype, "numpy_dtype", None)
    return as_numpy is not None and (as_numpy.kind in "biuf" or _is_decimal(dtype))


def _is_decimal(dtype: Any) -> bool:
    return str(dtype).startswith("decimal")


def _numpy_type(column: pd.Series) -> np.dtype:
    """The NumPy type of the numbers of a nullable column."""
    if _is_decimal(column.dtype) or column.isna().any():
        return np.dtype(np.float64)
    return column.dtype.numpy_dtype
