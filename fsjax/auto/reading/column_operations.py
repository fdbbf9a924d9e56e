"""Operations on the columns of a table, dense ``(N, D)`` or sparse; a sparse one stays sparse.

Sparse columns are divided by their deviation but not centred, because centring would fill them.
For the same reason, their ranks are counted from the rank of zero.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import pandas as pd
import scipy.sparse as sp
from scipy.stats import rankdata
from sklearn.utils.sparsefuncs import mean_variance_axis, min_max_axis

from fsjax.data import as_csr

#: A table ``(N, D)``.
Columns: TypeAlias = np.ndarray | sp.csr_array

#: At most this many columns of a sparse table are made dense at once.
FEW = 500


def is_sparse_table(X: Any) -> bool:
    """Whether a table is a SciPy matrix, or a frame whose columns are all sparse numbers.

    Values that such a frame does not store have to be 0.
    """
    if isinstance(X, pd.DataFrame):
        kinds = X.dtypes.to_numpy()
        return bool(len(kinds)) and all(
            isinstance(kind, pd.SparseDtype) and kind.kind in "fiub" and kind.fill_value == 0
            for kind in kinds
        )
    return sp.issparse(X)


def names_of(X: Any) -> tuple[str, ...]:
    """The names of the columns: those of a frame as text, otherwise ``x0``, ``x1``, ..."""
    if isinstance(X, pd.DataFrame):
        return tuple(map(str, X.columns))
    return tuple(f"x{index}" for index in range(X.shape[1]))


def float_rows(X: Any) -> sp.csr_array:
    """A table for which :func:`is_sparse_table` holds as CSR rows, float64."""
    rows = as_csr(X.sparse.to_coo() if isinstance(X, pd.DataFrame) else X)
    return sp.csr_array((rows.data.astype(np.float64), rows.indices, rows.indptr), shape=X.shape)


def means_and_deviations(
    X: Columns, weights: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Means and deviations ``(D,)`` of the columns, of rows with weights ``(N,)`` if given."""
    if weights is None and isinstance(X, np.ndarray):
        return X.mean(axis=0), X.std(axis=0)
    if weights is None:
        mean, variance = mean_variance_axis(X, axis=0)
        return mean, np.sqrt(variance)
    shares = weights / weights.sum()
    mean = np.asarray(X.T @ shares).ravel()
    if isinstance(X, np.ndarray):
        return mean, np.sqrt(np.square(X - mean).T @ shares)
    # Zeros differ from the mean too: by its square, in the share of the rows that they have.
    entries, columns = X.tocoo(), X.shape[1]
    share = shares[entries.row]
    squares = np.square(entries.data - mean[entries.col]) * share
    known = np.bincount(entries.col, share, columns)
    spread = np.bincount(entries.col, squares, columns) + (1.0 - known) * np.square(mean)
    return mean, np.sqrt(np.maximum(spread, 0.0))


def limits(X: Columns) -> tuple[np.ndarray, np.ndarray]:
    """The smallest and the largest value of each column, ``(D,)`` both."""
    return (X.min(axis=0), X.max(axis=0)) if isinstance(X, np.ndarray) else min_max_axis(X, axis=0)


def scaled_columns(X: Columns, mean: np.ndarray | float, scale: np.ndarray) -> Columns:
    """``(X - mean) / scale``; sparse columns are not centred. An infinite scale gives zeros."""
    if isinstance(X, np.ndarray):
        return (X - mean) / scale
    data = X.data / scale[X.indices]
    result = sp.csr_array((data, X.indices.copy(), X.indptr.copy()), shape=X.shape)
    result.eliminate_zeros()
    return result


def dense_columns(X: Columns, columns: np.ndarray) -> np.ndarray:
    """Some of the columns as a dense array ``(N, d)``; those of a sparse table are centred."""
    if isinstance(X, np.ndarray):
        return X[:, columns]
    dense = X[:, columns].toarray()
    return dense - dense.mean(axis=0)


def densify(X: Columns) -> np.ndarray:
    """A table ``(N, D)`` that is small enough as a dense array."""
    return X if isinstance(X, np.ndarray) else X.toarray()


def ranks(X: Columns) -> Columns:
    """Average ranks within each column.

    In a sparse table the rank of zero is subtracted, so that zeros stay zeros.
    """
    if isinstance(X, np.ndarray):
        return rankdata(X, axis=0)
    stored = pd.Series(X.data).groupby(X.indices).rank().to_numpy()
    below = np.bincount(X.indices[X.data < 0], minlength=X.shape[1])
    zeros = X.shape[0] - np.bincount(X.indices, minlength=X.shape[1])
    of_zero = below + (zeros + 1) / 2
    values = stored + np.where(X.data > 0, zeros[X.indices], 0) - of_zero[X.indices]
    return sp.csr_array((values, X.indices, X.indptr), shape=X.shape)


def permuted_columns(X: sp.csr_array, rng: np.random.Generator) -> sp.csr_array:
    """Each column with its stored values in other rows, drawn at random."""
    columns = sp.csc_array(X)
    rows = [
        rng.choice(X.shape[0], count, replace=False) for count in np.diff(columns.indptr).tolist()
    ]
    where = np.concatenate(rows).astype(columns.indices.dtype)
    result = sp.csc_array((columns.data, where, columns.indptr), shape=X.shape)
    return sp.csr_array(result)


def nonzeros(X: Columns) -> int | None:
    """The number of values that a sparse table stores; ``None`` for a dense one."""
    return None if isinstance(X, np.ndarray) else int(X.nnz)


def cells_per_row(X: Columns) -> float:
    """The number of values that a row stores on average."""
    return X.shape[1] if isinstance(X, np.ndarray) else X.nnz / X.shape[0]


def row_squares(X: Columns) -> np.ndarray:
    """The sum of the squares of each row, ``(N,)``."""
    if isinstance(X, np.ndarray):
        return np.square(X).sum(axis=1)
    return np.asarray(X.multiply(X).sum(axis=1)).ravel()


def with_column_means(X: Columns) -> Columns:
    """The table with column means, or 0, in place of missing values; sparse tables have none."""
    if not isinstance(X, np.ndarray):
        return X
    missing = np.isnan(X)
    return np.where(missing, np.nansum(X, axis=0) / np.maximum((~missing).sum(axis=0), 1), X)


def has_missing(X: Columns) -> bool:
    """Whether a dense table has missing values; sparse ones have none."""
    return isinstance(X, np.ndarray) and bool(np.isnan(X).any())


def by_column(X: Columns) -> np.ndarray | sp.csc_array:
    """The table in the form in which single columns are read fast."""
    return np.asfortranarray(X) if isinstance(X, np.ndarray) else sp.csc_array(X)


def arrays_of(X: Columns) -> tuple[np.ndarray, ...]:
    """The arrays that hold a table."""
    return (X,) if isinstance(X, np.ndarray) else (X.data, X.indices, X.indptr)
