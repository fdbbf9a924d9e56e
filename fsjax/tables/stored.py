"""A table on disk in place of the array X, whose rows are read when they are used. No JAX."""

from __future__ import annotations

import functools
import math
import mmap
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from fsjax.errors import DataError
from fsjax.tables.sparse import check_size

#: Entries of the rows that are in memory at once.
BLOCK = 2**22

#: A run of consecutive rows of at least this many bytes is read by its own system call.
_RUN = 2**16

#: The alignment in bytes that XLA requires to use an array on a CPU without a copy.
_ALIGNMENT = 64


class Summary(NamedTuple):
    """Statistics from one pass over (N, D) rows.

    Attributes:
      lowest, highest: ``(D,)``.
      total: ``(D,)`` float64, the sums of the columns.
      overall: the sum of all entries.
    """

    lowest: np.ndarray
    highest: np.ndarray
    total: np.ndarray
    overall: float


@dataclass(frozen=True, eq=False)
class StoredTable:
    """Rows ``(N, D)`` of a ``.npy`` file, or a selection of them, which stay on disk.

    Rows are read, not memory-mapped permanently, so that they do not count as memory of the
    process.

    Attributes:
      path: the file.
      dtype: the type of its values.
      offset: bytes before the first row.
      columns: the number of columns in the file.
      rows: ``(N,)`` int64, the row numbers in the file.
      without: a column of the file that is left out because it is the target, or ``None``.
      finite: whether all values are known to be finite.
    """

    path: Path
    dtype: np.dtype
    offset: int
    columns: int
    rows: np.ndarray
    without: int | None = None
    finite: bool = False

    #: As for an array.
    ndim = 2

    @property
    def shape(self) -> tuple[int, int]:
        """``(N, D)``."""
        return len(self.rows), self.columns - (self.without is not None)

    @property
    def size(self) -> int:
        """Number of entries."""
        return self.shape[0] * self.shape[1]

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, rows: Any) -> StoredTable:
        """Select rows by a slice, indices or a mask ``(N,)``, without reading them."""
        if isinstance(rows, tuple):
            raise TypeError(
                "rows of a table on disk are indexed by whole numbers, a mask or a slice only"
            )
        return replace(self, rows=np.atleast_1d(self.rows[rows]))

    def read(self, rows: np.ndarray | slice = slice(None)) -> np.ndarray:
        """Read rows as a new array ``(B, D)``, by indices that may repeat, or by a slice.

        Raises:
          DataError: if the file has become shorter, or cannot be read.
        """
        rows = self.rows[rows]
        values = aligned((len(rows), self.columns), self.dtype)
        starts = np.flatnonzero(np.diff(rows, prepend=-2) != 1)
        width = self.columns * self.dtype.itemsize
        try:
            if len(rows) * width >= _RUN * len(starts):
                with self.path.open("rb", buffering=0) as file:
                    for start, end in pairwise([*starts, len(rows)]):
                        position = self.offset + int(rows[start]) * width
                        self._read_run(file.fileno(), values[start:end], position)
            elif len(rows):
                self._gather(values, rows)
        except OSError as error:
            raise DataError(f"{self.path} cannot be read: {error.strerror}") from None
        return values if self.without is None else np.delete(values, self.without, axis=1)

    def take(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Some columns of some rows, both given by index, as a new array ``(B, M)``."""
        values = np.empty((len(rows), len(columns)), self.dtype)
        step = rows_of_block(self.shape[1])
        for start in range(0, len(rows), step):
            values[start : start + step] = self.read(rows[start : start + step])[:, columns]
        return values

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """The whole table as an array; DataError if it takes more than half of the free memory."""
        check_size(self.shape, self.dtype)
        return np.asarray(self.read(), dtype)

    @functools.cached_property
    def summary(self) -> Summary:
        """Limits and sums of the columns, computed once."""
        lowest: np.ndarray | None = None
        highest: np.ndarray | None = None
        total, row_sums = np.zeros(self.shape[1]), []
        for block in row_blocks(self):
            low, high = block.min(axis=0), block.max(axis=0)
            lowest = low if lowest is None else np.minimum(lowest, low)
            highest = high if highest is None else np.maximum(highest, high)
            rows = block.astype(np.float64)
            row_sums.append(rows.sum(axis=1))
            total = added(total, rows)
        if lowest is None or highest is None:
            raise DataError(f"{self.path}: no rows are selected; select at least one")
        return Summary(lowest, highest, total, float(np.concatenate(row_sums).sum()))

    def _read_run(self, file: int, into: np.ndarray, position: int) -> None:
        left = into.data.cast("B")
        while len(left):
            count = os.preadv(file, [left], position)
            if not count:
                raise DataError(f"{self.path} is shorter than when it was opened; write it again")
            left, position = left[count:], position + count

    def _gather(self, into: np.ndarray, rows: np.ndarray) -> None:
        """Read short scattered rows in the order of the file."""
        entries = (int(rows.max()) + 1) * self.columns
        end = self.offset + entries * self.dtype.itemsize
        try:
            with self.path.open("rb") as file:
                pages = mmap.mmap(file.fileno(), end, access=mmap.ACCESS_READ)
        except ValueError:
            raise DataError(
                f"{self.path} is shorter than when it was opened; write it again"
            ) from None
        table = np.frombuffer(pages, self.dtype, entries, self.offset).reshape(-1, self.columns)
        order = np.argsort(rows, kind="stable")
        step = rows_of_block(self.columns)
        for start in range(0, len(rows), step):
            block = order[start : start + step]
            into[block] = table[rows[block]]
            # Pages that were read would count as memory of the process.
            pages.madvise(mmap.MADV_DONTNEED)


def open_table(path: Path) -> StoredTable:
    """Open the table ``(N, D)`` of a ``.npy`` file.

    Raises:
      DataError: if it is not a table of real numbers, or is stored column by column.
    """
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}") from None
    except ValueError as error:
        raise DataError(
            f"{path} cannot be read as a NumPy file: {error}; it may be truncated, or not hold "
            "numbers: save a numeric array with numpy.save"
        ) from None
    if not isinstance(array, np.memmap) or array.ndim != 2:
        shape = getattr(array, "shape", None)
        raise DataError(f"{path} has shape {shape}; give a table of (rows, columns)")
    if 0 in array.shape:
        raise DataError(f"{path} is empty: {array.shape[0]} rows and {array.shape[1]} columns")
    if array.dtype.kind not in "fiu" or not array.dtype.isnative:
        raise DataError(f"{path} has type {array.dtype.str}; save real numbers, such as float32")
    if not array.flags.c_contiguous:
        raise DataError(
            f"{path} is stored column by column, so that its rows cannot be read one by one; save "
            "it with numpy.save(path, numpy.ascontiguousarray(X))"
        )
    return StoredTable(
        path.absolute(), array.dtype, array.offset, array.shape[1], np.arange(len(array))
    )


def rows_of_block(columns: int) -> int:
    """The number of rows that are in memory at once, at least one."""
    return max(BLOCK // columns, 1)


def row_blocks(X: np.ndarray | StoredTable) -> Iterator[np.ndarray]:
    """Iterate over the rows of a table in blocks."""
    step = rows_of_block(X.shape[1])
    for start in range(0, X.shape[0], step):
        rows = slice(start, start + step)
        yield X.read(rows) if isinstance(X, StoredTable) else X[rows]


def added(total: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Add float64 rows to column sums ``(D,)``; the rows are overwritten.

    Rows are added one after the other, so that the sum does not depend on the blocks.
    """
    rows[0] += total
    return rows.sum(axis=0)


def aligned(shape: tuple[int, ...], dtype: np.typing.DTypeLike) -> np.ndarray:
    """``np.empty(shape, dtype)`` with the alignment that XLA requires on a CPU."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    memory = np.empty(size + _ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % _ALIGNMENT
    return memory[start : start + size].view(dtype).reshape(shape)
