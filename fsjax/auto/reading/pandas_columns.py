"""What kind of values a column of pandas holds."""

from __future__ import annotations

import pandas as pd
from pandas.api.types import is_complex_dtype, is_numeric_dtype


def holds_numbers(column: pd.Series) -> bool:
    """Whether a column has a type of real numbers or booleans."""
    return is_numeric_dtype(column) and not is_complex_dtype(column)


def dense_column(column: pd.Series) -> pd.Series:
    """The column with all of its values stored, zeros too."""
    return column.sparse.to_dense() if isinstance(column.dtype, pd.SparseDtype) else column
