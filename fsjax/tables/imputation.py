"""Imputation of missing values (NaN). Every rule here uses all rows, test rows included."""

import numpy as np
from scipy.sparse import csr_array, issparse
from sklearn.impute import SimpleImputer

from fsjax.errors import ConfigError, DataError, check_choice
from fsjax.tables.sparse import count_by_column

RULES = ("mean", "median", "class_mean")
"""The rules of :func:`impute`."""


def impute(X: np.ndarray, y: np.ndarray | None, rule: str, where: str) -> np.ndarray:
    """Fill the missing values of each column; the type of X stays.

    The values are computed over the whole table **before** it is split, so some information about
    test rows leaks into training. ``'class_mean'`` leaks more: what is filled into a test row
    depends on the **label of that row**. The IP-CAE paper did this for Mice Protein
    (appendix A.4); use it only to reproduce that paper.

    Args:
        X: (N, D) values, NaN where missing. A sparse table stays sparse, and its zeros count as
            values; ``'class_mean'`` is not possible for it.
        y: (N,) classes, which only ``'class_mean'`` needs.
        rule: ``'mean'`` or ``'median'`` of the column, or ``'class_mean'``, the mean of the
            column over the rows of the same class.
        where: the name of the table in messages.

    Returns:
        A new table (N, D), or X itself if no value is missing.

    Raises:
        ConfigError: for an unknown rule, or ``'class_mean'`` without classes.
        DataError: if a column, or a column within a class, has no values.
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
        raise ConfigError(
            f"impute='class_mean' needs a dense table, but {where} is sparse; use 'mean'"
        )
    _check_not_empty(count_by_column(X, missing) == X.shape[0], where)
    return csr_array(SimpleImputer(strategy=rule).fit_transform(X))


def _check_not_empty(empty: np.ndarray, where: str) -> None:
    """DataError if there are columns without any value."""
    if empty.any():
        columns = ", ".join(map(str, np.flatnonzero(empty)[:5]))
        raise DataError(
            f"{where}: {int(empty.sum())} columns have no values (column {columns}), so that none "
            "can be imputed; drop them"
        )


def _fill(X: np.ndarray, rule: str, where: str) -> np.ndarray:
    missing = np.isnan(X)
    _check_not_empty(missing.all(axis=0), where)
    values = X.astype(np.float64)
    fill = np.nanmean(values, axis=0) if rule == "mean" else np.nanmedian(values, axis=0)
    return np.where(missing, fill, values).astype(X.dtype)
