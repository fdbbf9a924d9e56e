"""Whether float32 is too coarse for numbers, such as times in seconds since 1970."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array, issparse
from sklearn.utils.sparsefuncs import min_max_axis

from fsjax.errors import DataError
from fsjax.tables.checks import is_constant

#: Rounding may change the values of a column by this share of its range.
NOTICEABLE = 1e-4

#: Columns that are checked together.
_AT_ONCE = 256


class Rounding:
    """The largest rounding error of float32 in each column, and the range of the column."""

    def __init__(self) -> None:
        self._error = self._low = self._high = np.full((), np.nan)

    def add(self, X: np.ndarray, rounded: np.ndarray) -> None:
        """Take further rows ``(N, D)`` and their float32 values into account."""
        if X.dtype.kind == "f" and X.dtype.itemsize <= 4:
            return
        X = np.asarray(X, np.float64)
        with np.errstate(invalid="ignore"):
            self._error = np.fmax(self._error, np.fmax.reduce(np.abs(X - rounded)))
        self._low = np.fmin(self._low, np.fmin.reduce(X))
        self._high = np.fmax(self._high, np.fmax.reduce(X))

    @classmethod
    def of_sparse(cls, X: csr_array, rounded: np.ndarray) -> Rounding:
        """That of a sparse table, whose zeros count, and its stored values as float32."""

        def limits(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            of_columns = csr_array((values, X.indices, X.indptr), X.shape)
            return min_max_axis(of_columns, axis=0, ignore_nan=True)

        values, rounding = X.data.astype(np.float64), cls()
        with np.errstate(invalid="ignore"):
            _, rounding._error = limits(np.abs(values - rounded))
        rounding._low, rounding._high = limits(values)
        return rounding

    @property
    def noticeable(self) -> bool:
        """Whether an error is a noticeable share of the range of a column that is not constant."""
        with np.errstate(invalid="ignore"):
            large = self._error > NOTICEABLE * (self._high - self._low)
        constant = is_constant(self._low, self._high, np.dtype(np.float64))
        return bool((np.isfinite(self._error) & large & ~constant).any())


def is_too_coarse(X: np.ndarray | csr_array, rounded: np.ndarray) -> bool:
    """Whether the float32 values of ``(N, D)`` numbers are noticeably rounded in a column.

    Those of a sparse table are the values that it stores.
    """
    if X.ndim != 2 or not X.size:
        return False
    if issparse(X):
        return Rounding.of_sparse(X, rounded).noticeable
    # In parts, because the differences need as much memory as the table.
    for start in range(0, X.shape[1], _AT_ONCE):
        columns = slice(start, start + _AT_ONCE)
        rounding = Rounding()
        rounding.add(X[:, columns], rounded[:, columns])
        if rounding.noticeable:
            return True
    return False


def check_target_range(y: np.ndarray, where: str) -> None:
    """DataError for numbers beyond the range of float32; the message calls them ``where``."""
    if (largest := np.abs(y.astype(np.float64)).max()) > np.finfo(np.float32).max:
        raise DataError(
            f"{where} has values up to {largest:.3g}, beyond the range of float32; scale it, for "
            "example to values around 1"
        )


def single_or_double(y: np.ndarray) -> np.ndarray:
    """Numbers ``(N,)`` or ``(N, C)`` as float32, or as float64 where that is too coarse."""
    with np.errstate(over="ignore"):
        rounded = y.astype(np.float32)
    coarse = is_too_coarse(y.reshape(len(y), -1), rounded.reshape(len(y), -1))
    return y.astype(np.float64) if coarse else rounded
