"""One interface for tables in memory, sparse tables and streamed tables. It does not use JAX.

A user's table is an array, a sparse matrix or a :class:`fsjax.tables.streamed.StreamedTable`;
:func:`as_table` gives each of them the interface.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, TypeAlias

import numpy as np
from scipy.sparse import csr_array, issparse

from fsjax.tables.sparse import column_limits, column_moments, count_by_column, table_moments

if TYPE_CHECKING:
    from fsjax.tables.streamed import StreamedTable

#: A table of the user, once it is read.
RawTable: TypeAlias = "np.ndarray | csr_array | StreamedTable"

#: Two values for each column, ``(D,)`` both.
Pair = tuple[np.ndarray, np.ndarray]

#: Entries of the rows that are in memory at once.
BLOCK = 2**22


class Table(ABC):
    """Rows ``(N, D)`` of real numbers.

    Attributes:
      on_disk: whether rows are read each time they are used.
      sparse: whether zeros are not stored.
      batches_only: why the table cannot be used as one dense array, and what to do instead;
        ``None`` if it can.
    """

    on_disk = False
    sparse = False
    batches_only: ClassVar[str | None] = None

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


@dataclass(frozen=True, eq=False)
class DenseTable(Table):
    """An array in memory."""

    raw: np.ndarray

    def limits(self) -> Pair:
        return self.raw.min(axis=0), self.raw.max(axis=0)

    def moments(self) -> Pair:
        total = np.zeros(self.raw.shape[1])
        for block in self._blocks():
            total = added(total, block.astype(np.float64))
        return moments_of(self._blocks(), len(self.raw), total)

    def whole_moments(self) -> tuple[float, float]:
        sums = [block.astype(np.float64).sum(axis=1) for block in self._blocks()]
        return whole_moments_of(self._blocks(), self.raw.size, np.concatenate(sums).sum())

    def not_finite(self) -> Pair:
        if np.isfinite(self.raw).all():
            return _no_counts(self.raw.shape[1])
        return np.isnan(self.raw).sum(axis=0), np.isinf(self.raw).sum(axis=0)

    def block(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        return self.raw[np.ix_(rows, columns)]

    def _blocks(self) -> Iterator[np.ndarray]:
        return (self.raw[rows] for rows in row_blocks(self.raw.shape))


@dataclass(frozen=True, eq=False)
class SparseTable(Table):
    """A SciPy matrix in memory, in the form that :func:`fsjax.tables.sparse.as_csr` returns."""

    raw: csr_array

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
            return _no_counts(self.raw.shape[1])
        missing, infinite = np.isnan(self.raw.data), np.isinf(self.raw.data)
        return count_by_column(self.raw, missing), count_by_column(self.raw, infinite)

    def block(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        return self.raw[rows][:, columns].toarray()


def as_table(raw: RawTable) -> Table:
    """The common interface to a table of any form."""
    if isinstance(raw, Table):
        return raw
    return SparseTable(raw) if issparse(raw) else DenseTable(raw)


def rows_of_block(columns: int) -> int:
    """The number of rows that are in memory at once, at least one."""
    return max(BLOCK // columns, 1)


def row_blocks(shape: tuple[int, ...]) -> Iterator[slice]:
    """The rows ``(N, D)`` of each block."""
    step = rows_of_block(shape[1])
    return (slice(start, start + step) for start in range(0, shape[0], step))


def added(total: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Add float64 rows to column sums ``(D,)``; the rows are overwritten.

    Rows are added one after the other, so that the sum does not depend on the blocks.
    """
    rows[0] += total
    return rows.sum(axis=0)


def moments_of(blocks: Iterable[np.ndarray], count: int, total: np.ndarray) -> Pair:
    """Means and standard deviations from the column sums, without a float64 copy of all rows.

    The results do not depend on where the rows are stored.
    """
    mean, squares = total / count, np.zeros(len(total))
    for block in blocks:
        squares = added(squares, np.square(block - mean))
    return mean, np.sqrt(squares / count)


def whole_moments_of(
    blocks: Iterable[np.ndarray], size: int, overall: np.float64
) -> tuple[float, float]:
    """Mean and standard deviation of all entries, from their sum.

    The sum is a NumPy scalar, so that float32 rows minus the mean are float64.
    """
    mean = overall / size
    squares = [np.square(block - mean).sum(axis=1) for block in blocks]
    return mean, np.sqrt(np.concatenate(squares).sum() / size)


def _no_counts(columns: int) -> Pair:
    return np.zeros(columns, int), np.zeros(columns, int)
