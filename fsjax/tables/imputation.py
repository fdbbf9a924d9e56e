"""Fill missing values (NaN). Every rule here looks at all rows, test rows included."""

import numpy as np
from scipy.sparse import csr_array, issparse
from sklearn.impute import SimpleImputer

from fsjax.errors import ConfigError, DataError, check_choice
from fsjax.tables.sparse import count_by_column

RULES = ("mean", "median", "class_mean")
"""What :func:`impute` knows."""


def impute(X: np.ndarray, y: np.ndarray | None, rule: str, where: str) -> np.ndarray:
    """Fill the missing values of each column; returns a new (N, D) float32 array.

    The fill is computed over the whole table **before** it is split, so a little of the test rows
    leaks into training. ``'class_mean'`` leaks more: the fill of a test row depends on the **label
    of that row**. It is what the IP-CAE paper did for Mice Protein (appendix A.4), and is meant
    for reproducing it.

    Args:
        X: (N, D) values with NaN where missing; DataError if a column has nothing to learn from.
            In a sparse table, which stays sparse, all zeros are values; it has no ``'class_mean'``.
        y: (N,) classes; needed by ``'class_mean'`` only.
        rule: ``'mean'`` or ``'median'`` of the column, or ``'class_mean'``, the mean of the
            column over the rows of the same class. ConfigError for others, or without classes.
        where: the name of the table, for messages.
    """
    check_choice("impute", rule, RULES)
    if issparse(X):
        return _fill_sparse(X, rule, where)
    if not np.issubdtype(X.dtype, np.floating) or not np.isnan(X).any():
        return X
    if rule != "class_mean":
        return _fill(X, rule, where)
    if y is None or not np.issubdtype(y.dtype, np.integer):
        raise ConfigError(f"impute='class_mean' needs classes, but {where} has none; use 'mean'")
    filled = X.copy()
    for label in np.unique(y):
        rows = y == label
        filled[rows] = _fill(X[rows], "mean", f"{where}, class {label}")
    return filled


def _fill_sparse(X: csr_array, rule: str, where: str) -> csr_array:
    missing = np.isnan(X.data)
    if not missing.any():
        return X
    if rule == "class_mean":
        raise ConfigError(f"impute='class_mean' needs a dense table, but {where} is sparse")
    _check_not_empty(count_by_column(X, missing) == X.shape[0], where)
    return csr_array(SimpleImputer(strategy=rule).fit_transform(X))


def _check_not_empty(empty: np.ndarray, where: str) -> None:
    """DataError if there are columns without a value."""
    if empty.any():
        columns = ", ".join(map(str, np.flatnonzero(empty)[:5]))
        raise DataError(
            f"{where}: {int(empty.sum())} columns have no value at all (column {columns}), so "
            "there is nothing to impute from; drop them"
        )


def _fill(X: np.ndarray, rule: str, where: str) -> np.ndarray:
    missing = np.isnan(X)
    _check_not_empty(missing.all(axis=0), where)
    values = X.astype(np.float64)
    fill = np.nanmean(values, axis=0) if rule == "mean" else np.nanmedian(values, axis=0)
    return np.where(missing, fill, values).astype(np.float32)
