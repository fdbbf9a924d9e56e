"""Nullable, Arrow-backed and sparse columns of pandas as columns of NumPy types."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from pandas.api.extensions import ExtensionArray


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


def dense_column(column: pd.Series) -> pd.Series:
    """The column with all of its values stored, zeros too."""
    return column.sparse.to_dense() if isinstance(column.dtype, pd.SparseDtype) else column


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
