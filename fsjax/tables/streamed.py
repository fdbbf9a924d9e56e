"""A table whose rows are read while they are used, in place of the array X. No JAX."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import issparse

from fsjax.engine.environment.memory_limits import limit_of
from fsjax.errors import DataError
from fsjax.tables.base import Pair, Table, added, moments_of, row_blocks, whole_moments_of
from fsjax.tables.sparse import check_size


class Summary(NamedTuple):
    """Statistics from one pass over (N, D) rows.

    Attributes:
      lowest, highest: ``(D,)``.
      total: ``(D,)`` float64, the sums of the columns.
      overall: the sum of all entries, float64.
    """

    lowest: np.ndarray
    highest: np.ndarray
    total: np.ndarray
    overall: np.float64


@dataclass(frozen=True, eq=False)
class StreamedTable(Table):
    """Rows ``(N, D)`` of a source, or a selection of them, which are read while they are used.

    Attributes:
      source: anything with ``shape``, ``dtype`` and ``[rows]``, where rows are a slice or ascending
        numbers, such as a ``numpy.memmap`` or an array of h5py, zarr or Dask.
      rows: ``(N,)`` int64, the row numbers in the source.
      without: a column of the source that is left out because it is the target, or ``None``.
    """

    source: Any
    rows: np.ndarray
    without: int | None = None

    #: As for an array.
    ndim = 2

    on_disk = True
    batches_only = (
        "it cannot stay on disk; read it with data.dense=true (fsjax.data.load(..., dense=True)), "
        "or choose a method that trains by batches, such as binmask, stg or wast"
    )

    @property
    def shape(self) -> tuple[int, int]:
        """``(N, D)``."""
        return len(self.rows), self.source.shape[1] - (self.without is not None)

    @property
    def dtype(self) -> np.dtype:
        """The type of the values."""
        return self.source.dtype

    @property
    def size(self) -> int:
        """Number of entries."""
        return self.shape[0] * self.shape[1]

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, rows: Any) -> StreamedTable:
        """Select rows by a slice, indices or a mask ``(N,)``, without reading them."""
        if isinstance(rows, tuple):
            raise TypeError(
                "rows of a table on disk are indexed by whole numbers, a mask or a slice only"
            )
        return replace(self, rows=np.atleast_1d(self.rows[rows]))

    def read(self, rows: np.ndarray | slice = slice(None)) -> np.ndarray:
        """Read rows ``(B, D)``, by indices that may repeat, or by a slice."""
        numbers, order = np.unique(self.rows[rows], return_inverse=True)
        is_run = len(numbers) > 0 and numbers[-1] - numbers[0] + 1 == len(numbers)
        places = slice(numbers[0], numbers[-1] + 1) if is_run else numbers
        values = np.asarray(self.source[places])
        if not np.array_equal(order, np.arange(len(values))):
            values = values[order]
        return values if self.without is None else np.delete(values, self.without, axis=1)

    def blocks(self) -> Iterator[np.ndarray]:
        """Read all rows in blocks."""
        return map(self.read, row_blocks(self.shape))

    @functools.cached_property
    def summary(self) -> Summary:
        """Limits and sums of the columns, computed once."""
        if not len(self):
            raise DataError("no rows of a table on disk are selected; select at least one")
        first = self.read(slice(1))[0]
        lowest, highest = first, first
        total, row_sums = np.zeros(self.shape[1]), []
        for block in self.blocks():
            lowest = np.minimum(lowest, block.min(axis=0))
            highest = np.maximum(highest, block.max(axis=0))
            rows = block.astype(np.float64)
            row_sums.append(rows.sum(axis=1))
            total = added(total, rows)
        return Summary(lowest, highest, total, np.concatenate(row_sums).sum())

    def limits(self) -> Pair:
        return self.summary.lowest, self.summary.highest

    def moments(self) -> Pair:
        return moments_of(self.blocks(), len(self), self.summary.total)

    def whole_moments(self) -> tuple[float, float]:
        return whole_moments_of(self.blocks(), self.size, self.summary.overall)

    def not_finite(self) -> Pair:
        missing, infinite = np.zeros((2, self.shape[1]), int)
        if not np.isfinite(self.limits()).all():
            for block in self.blocks():
                missing += np.isnan(block).sum(axis=0)
                infinite += np.isinf(block).sum(axis=0)
        return missing, infinite

    def block(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        values = np.empty((len(rows), len(columns)), self.dtype)
        for part in row_blocks((len(rows), self.shape[1])):
            values[part] = self.read(rows[part])[:, columns]
        return values

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """The whole table as an array; DataError if it takes more than half of the free memory."""
        check_size(self.shape, self.dtype)
        return np.array(self.read(), dtype)


def streamed(source: Any) -> StreamedTable:
    """All rows of a source ``(N, D)``."""
    return StreamedTable(source, np.arange(source.shape[0]))


def streamed_if_large(X: Any) -> Any:
    """``X``, as a streamed table if its rows are elsewhere and more than half of the free memory.

    Such an ``X`` is a ``numpy.memmap``, or an array of another library (see
    :class:`StreamedTable`).
    """
    dtype, shape = getattr(X, "dtype", None), getattr(X, "shape", ())
    is_held = type(X) is np.ndarray or isinstance(X, Table) or issparse(X)
    if is_held or not isinstance(dtype, np.dtype) or len(shape) != 2:
        return X
    return streamed(X) if math.prod(shape) * dtype.itemsize > limit_of(None) else X


@dataclass(frozen=True)
class NpyFile:
    """The array ``(N, D)`` of a ``.npy`` file, as a source of rows.

    It is opened each time, so that its pages do not count as memory of the process.
    """

    path: Path
    shape: tuple[int, int]
    dtype: np.dtype

    def __getitem__(self, rows: Any) -> np.ndarray:
        """Some rows; DataError if the file has changed since it was opened."""
        array = _mapped(self.path)
        if (array.shape, array.dtype) != (self.shape, self.dtype):
            raise DataError(f"{self.path} has changed since it was opened; load it again")
        return array[rows]


def open_npy(path: Path) -> StreamedTable:
    """Open the table ``(N, D)`` of a ``.npy`` file.

    Raises:
      DataError: if it is not a table of real numbers, or is stored column by column.
    """
    array = _mapped(path)
    if array.ndim != 2:
        raise DataError(f"{path} has shape {array.shape}; give a table of (rows, columns)")
    if 0 in array.shape:
        raise DataError(f"{path} is empty: {array.shape[0]} rows and {array.shape[1]} columns")
    if array.dtype.kind not in "fiu" or not array.dtype.isnative:
        raise DataError(f"{path} has type {array.dtype.str}; save real numbers, such as float32")
    if not array.flags.c_contiguous:
        raise DataError(
            f"{path} is stored column by column, so that its rows cannot be read one by one; save "
            "it with numpy.save(path, numpy.ascontiguousarray(X))"
        )
    return streamed(NpyFile(path.absolute(), array.shape, array.dtype))


def _mapped(path: Path) -> np.ndarray:
    try:
        return np.lib.format.open_memmap(path, mode="r")
    except (OSError, ValueError) as error:
        raise DataError(
            f"{path} cannot be read as a NumPy file: {error}; it may be truncated, or not hold "
            "numbers: save a numeric array with numpy.save"
        ) from None
