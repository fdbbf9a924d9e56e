"""Sparse tables, checked once and kept as CSR, and their conversion to dense ones. No JAX."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.utils.sparsefuncs import mean_variance_axis, min_max_axis

from fsjax.engine.environment.memory_limits import check_bytes
from fsjax.errors import DataError

#: The most non-zeros, rows or columns of a table: devices index them with 32 bits.
MAX_SIZE = 2**31 - 1

#: The least bytes for a row, a column (its statistics, scaling and scores) and a stored value.
_ROW, _COLUMN, _STORED = 8, 64, 8


def has_sparse_columns(X: Any) -> bool:
    """Whether ``X`` is a pandas frame with at least one sparse column."""
    kinds = X.dtypes if isinstance(X, pd.DataFrame) else ()
    return any(isinstance(kind, pd.SparseDtype) for kind in kinds)


def stays_sparse(X: Any) -> bool:
    """Whether a user's table is kept sparse: a SciPy matrix, or a frame with a sparse column."""
    return sp.issparse(X) or has_sparse_columns(X)


def canonical(
    X: np.ndarray | sp.spmatrix | sp.sparray, where: str = "X", max_bytes: int | None = None
) -> np.ndarray | sp.csr_array:
    """A table in the form that the library works on: an array as it is, or :func:`as_csr`."""
    return as_csr(X, where, max_bytes) if sp.issparse(X) else X


def as_frame(X: np.ndarray | sp.csr_array, columns: Sequence[str]) -> pd.DataFrame:
    """A table ``(N, D)`` as a pandas frame; of a sparse table all columns are sparse."""
    build = pd.DataFrame.sparse.from_spmatrix if sp.issparse(X) else pd.DataFrame
    return build(X, columns=list(columns))


def joined_rows(first: Any, second: Any, names: tuple[str, str]) -> Any:
    """The rows of two tables with the same columns, one after the other.

    Args:
      first, second: ``(N, D)`` and ``(M, D)``, both dense or both sparse.
      names: what messages call them.

    Raises:
      DataError: if one of them is sparse and the other is dense.
    """
    sparse = [sp.issparse(X) for X in (first, second)]
    if sparse[0] != sparse[1]:
        sparse_name, dense_name = names if sparse[0] else reversed(names)
        raise DataError(
            f"{sparse_name} is sparse and {dense_name} is dense; give both sparse or both dense"
        )
    return (sp.vstack if sparse[0] else np.concatenate)([first, second])


def _sparse_frame(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame with all columns sparse: numbers, of which zeros are not stored.

    Not by ``frame.astype``: before pandas 3.1 it leaves a column of another fill value as it is,
    and ``to_coo`` then takes that value for 0.
    """
    if all(_leaves_out_zeros(kind) for kind in frame.dtypes):
        return frame
    columns = {
        place: column.array
        if _leaves_out_zeros(column.dtype)
        else pd.arrays.SparseArray(column.to_numpy(np.float64), fill_value=0.0)
        for place, (_, column) in enumerate(frame.items())
    }
    return pd.DataFrame(columns, index=frame.index)


def _leaves_out_zeros(kind: Any) -> bool:
    return isinstance(kind, pd.SparseDtype) and kind.kind in "fiu" and kind.fill_value == 0


def as_csr(X: Any, where: str = "X", max_bytes: int | None = None) -> sp.csr_array:
    """Convert a sparse table to canonical CSR: ascending columns, no duplicates, no stored zeros.

    Args:
      X: ``(N, D)``, a SciPy matrix or array of any format, or a pandas frame with sparse columns,
        which may have dense columns too. It is not changed, and its arrays are shared if it is
        already canonical. Duplicates are summed, as SciPy does; booleans become 0 and 1.
      max_bytes: limit on the memory for its rows and the statistics of its columns, by default
        half of the free memory: even a table with few values may have a billion columns.

    Raises:
      DataError: for indices outside the table, values that are not real numbers, a number of
        dimensions other than 2, more non-zeros than 2**31 - 1, or a table that is too large.
    """
    if isinstance(X, pd.DataFrame):
        X = _sparse_frame(X).sparse.to_coo()
    if X.ndim != 2:
        raise DataError(f"{where} has shape {X.shape}; give a table (rows, columns)")
    if X.dtype.kind not in "fiub":
        raise DataError(f"{where} has type {X.dtype}; give real numbers: X.astype(np.float32)")
    _check_indices(X, where)
    if max(*X.shape, X.nnz) > MAX_SIZE:
        raise DataError(
            f"{where} has {X.nnz:,} non-zeros and the shape {X.shape}; non-zeros, rows and columns "
            f"may be at most {MAX_SIZE:,} each: give fewer rows or columns"
        )
    needed = _ROW * X.shape[0] + _COLUMN * X.shape[1] + (_STORED + X.dtype.itemsize) * X.nnz
    subject = f"{where}, a sparse table of {X.shape[0]:,} x {X.shape[1]:,},"
    check_bytes(needed, max_bytes, subject, "leave out empty rows and columns, or renumber them")
    rows = X.tocsr()
    # A new matrix finds out the order of its indices, whatever flags the user's matrix has.
    index = [part.astype(np.int32, copy=False) for part in (rows.indices, rows.indptr)]
    rows = sp.csr_array((rows.data, *index), shape=X.shape)
    if rows.dtype == bool:
        rows = rows.astype(np.uint8)
    if not rows.has_canonical_format or not rows.data.all():
        rows = rows.copy()
        rows.sum_duplicates()
        rows.eliminate_zeros()
    return rows


def column_moments(X: sp.csr_array) -> tuple[np.ndarray, np.ndarray]:
    """Means and population standard deviations ``(D,)`` of the columns, float64."""
    mean, variance = mean_variance_axis(_doubled(X), axis=0)
    return mean, np.sqrt(variance)


def table_moments(X: sp.csr_array) -> tuple[float, float]:
    """Mean and population standard deviation of all entries, float64."""
    size, values = X.shape[0] * X.shape[1], X.data.astype(np.float64)
    mean = values.sum() / size
    total = np.square(values - mean).sum() + (size - values.size) * mean**2
    return mean, np.sqrt(total / size)


def column_limits(X: sp.csr_array) -> tuple[np.ndarray, np.ndarray]:
    """The smallest and the largest value of each column, ``(D,)`` float64 both."""
    return min_max_axis(_doubled(X), axis=0)


def count_by_column(X: sp.csr_array, marked: np.ndarray) -> np.ndarray:
    """The number ``(D,)`` of stored values in each column that are marked in ``(nnz,)`` bool."""
    return np.bincount(X.indices[marked], minlength=X.shape[1])


def _doubled(X: sp.csr_array) -> sp.csr_array:
    """The matrix in float64, because scikit-learn computes statistics in the type of the values."""
    return sp.csr_array((X.data.astype(np.float64), X.indices, X.indptr), shape=X.shape)


def _check_indices(X: Any, where: str) -> None:
    """DataError for indices outside the table, with which SciPy would access other memory."""
    advice = "save it again, or build it again from its rows and columns"
    if X.format == "coo":
        for name, index, size in zip(("row", "column"), X.coords, X.shape, strict=True):
            if index.size and (index.min() < 0 or index.max() >= size):
                raise DataError(
                    f"{where}: its sparse matrix has {name} indices from {index.min()} to "
                    f"{index.max()}, but {size} {name}s, numbered from 0; {advice}"
                )
    elif X.format in ("csr", "csc", "bsr"):
        try:
            X.check_format(full_check=True)
        except ValueError as error:
            raise DataError(f"{where}: its sparse matrix is damaged: {error}; {advice}") from None


def dense(
    matrix: np.ndarray | sp.spmatrix | sp.sparray, max_bytes: int | None = None
) -> np.ndarray:
    """The table ``(N, D)`` as an array; an array is returned as it is.

    Raises:
      DataError: if the indices of a sparse matrix do not fit its shape, because SciPy would write
        beyond the array, or if the array would take more than ``max_bytes``, by default half of
        the free memory.
    """
    if isinstance(matrix, np.ndarray):
        return matrix
    check_size(matrix.shape, matrix.dtype, max_bytes)
    _check_indices(matrix, "it")
    return matrix.toarray()


def check_size(shape: tuple[int, ...], dtype: np.dtype, max_bytes: int | None = None) -> None:
    """DataError for an array that would take more memory than ``max_bytes``.

    :func:`fsjax.engine.environment.memory_limits.limit_of` has the default.
    """
    size = " x ".join(f"{length:,}" for length in shape)
    needed = math.prod(map(int, shape)) * dtype.itemsize
    check_bytes(needed, max_bytes, f"a dense table of {size}", "keep fewer columns")
