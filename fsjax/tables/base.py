"""One interface for tables in memory, sparse tables and tables on disk. It does not use JAX.

A user's table is an array, a sparse matrix or a :class:`fsjax.tables.stored.StoredTable`;
:func:`numbers_of` and :func:`as_table` choose the class that fits.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeAlias, TypeVar

import numpy as np
import pandas as pd
from scipy.sparse import csr_array, issparse

from fsjax.tables.sparse import (
    as_csr,
    column_limits,
    column_moments,
    count_by_column,
    stays_sparse,
    table_moments,
)
from fsjax.tables.stored import StoredTable, added, row_blocks
from fsjax.tables.user_arrays import as_array, frame_values, plain_columns

#: A table of the user, once it is read.
RawTable: TypeAlias = np.ndarray | csr_array | StoredTable

X = TypeVar("X", np.ndarray, csr_array, StoredTable)

#: Two values for each column, ``(D,)`` both.
Pair = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True, eq=False)
class Table(ABC, Generic[X]):
    """Rows ``(N, D)`` of real numbers.

    Attributes:
      raw: the rows as the user gave them.
      on_disk: whether rows are read from disk each time they are used.
      sparse: whether zeros are not stored.
      batches_only: why the table cannot be used as one dense array, and what to do instead;
        ``None`` if it can.
    """

    raw: X

    on_disk = False
    sparse = False
    batches_only: ClassVar[str | None] = None

    @property
    def shape(self) -> tuple[int, int]:
        """``(N, D)``."""
        return self.raw.shape[0], self.raw.shape[1]

    @property
    def dtype(self) -> np.dtype:
        """The type of the values."""
        return self.raw.dtype

    def __len__(self) -> int:
        return self.shape[0]

    @abstractmethod
    def limits(self) -> Pair:
        """The smallest and the largest value of each column."""

    @abstractmethod
    def moments(self) -> Pair:
        """Means and population standard deviations of the columns, float64."""

    @abstractmethod
    def whole_moments(self) -> tuple[float, float]:
        """Mean and population standard deviation of all entries, float64."""

    @abstractmethod
    def not_finite(self) -> Pair:
        """The numbers of missing and of infinite values of each column."""

    @abstractmethod
    def block(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Some columns of some rows, both given by index, as a new dense array ``(B, M)``."""


class DenseTable(Table[np.ndarray]):
    """An array in memory."""

    def limits(self) -> Pair:
        return self.raw.min(axis=0), self.raw.max(axis=0)

    def moments(self) -> Pair:
        total = np.zeros(self.shape[1])
        for block in row_blocks(self.raw):
            total = added(total, block.astype(np.float64))
        return _moments(self.raw, total)

    def whole_moments(self) -> tuple[float, float]:
        sums = [block.astype(np.float64).sum(axis=1) for block in row_blocks(self.raw)]
        return _whole_moments(self.raw, np.concatenate(sums).sum())

    def not_finite(self) -> Pair:
        if np.isfinite(self.raw).all():
            return _no_counts(self.shape[1])
        return np.isnan(self.raw).sum(axis=0), np.isinf(self.raw).sum(axis=0)

    def block(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        return self.raw[np.ix_(rows, columns)]


class SparseTable(Table[csr_array]):
    """A SciPy matrix in memory, in the form that :func:`fsjax.tables.sparse.as_csr` returns."""

    sparse = True
    batches_only = (
        "it cannot be sparse; give X.toarray() (data.dense=true in a config), or choose a method "
        "that trains by batches, such as binmask, stg, wast or fisher_score"
    )

    def limits(self) -> Pair:
        return column_limits(self.raw)

    def moments(self) -> Pair:
        return column_moments(self.raw)

    def whole_moments(self) -> tuple[float, float]:
        return table_moments(self.raw)

    def not_finite(self) -> Pair:
        if np.isfinite(self.raw.data).all():
            return _no_counts(self.shape[1])
        missing, infinite = np.isnan(self.raw.data), np.isinf(self.raw.data)
        return count_by_column(self.raw, missing), count_by_column(self.raw, infinite)

    def block(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        return self.raw[rows][:, columns].toarray()


class DiskTable(Table[StoredTable]):
    """Rows of a file, which are read in blocks."""

    on_disk = True
    batches_only = (
        "it cannot stay on disk; read it with data.dense=true (fsjax.data.load(..., dense=True)), "
        "or choose a method that trains by batches, such as binmask, stg or wast"
    )

    def limits(self) -> Pair:
        return self.raw.summary.lowest, self.raw.summary.highest

    def moments(self) -> Pair:
        return _moments(self.raw, self.raw.summary.total)

    def whole_moments(self) -> tuple[float, float]:
        # A NumPy scalar, so that float32 rows minus the mean are float64.
        return _whole_moments(self.raw, np.float64(self.raw.summary.overall))

    def not_finite(self) -> Pair:
        missing, infinite = _no_counts(self.shape[1])
        if self.raw.finite:
            return missing, infinite
        for block in row_blocks(self.raw):
            if not np.isfinite(block).all():
                missing = missing + np.isnan(block).sum(axis=0)
                infinite = infinite + np.isinf(block).sum(axis=0)
        return missing, infinite

    def block(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        return self.raw.take(rows, columns)


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


def as_table(raw: RawTable) -> Table:
    """The common interface to a table of any form."""
    if isinstance(raw, StoredTable):
        return DiskTable(raw)
    return SparseTable(raw) if issparse(raw) else DenseTable(raw)


def _moments(X: np.ndarray | StoredTable, total: np.ndarray) -> Pair:
    """Means and standard deviations from the column sums, without a float64 copy of X.

    The results do not depend on where the rows are stored.
    """
    mean, squares = total / X.shape[0], np.zeros(X.shape[1])
    for block in row_blocks(X):
        squares = added(squares, np.square(block - mean))
    return mean, np.sqrt(squares / X.shape[0])


def _whole_moments(X: np.ndarray | StoredTable, overall: float) -> tuple[float, float]:
    """Mean and standard deviation of all entries, from their sum."""
    size = X.shape[0] * X.shape[1]
    mean = overall / size
    squares = [np.square(block - mean).sum(axis=1) for block in row_blocks(X)]
    return mean, np.sqrt(np.concatenate(squares).sum() / size)


def _no_counts(columns: int) -> Pair:
    return np.zeros(columns, int), np.zeros(columns, int)
