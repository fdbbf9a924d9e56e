"""Rows of a table on disk: the type of ``data.x`` if the table is not in memory.

Compiled code knows only their shape; the engine reads and scales them on the host, a few batches
ahead of the device (:mod:`fsjax.engine.streamed`).
"""

from __future__ import annotations

from typing import Any, NoReturn

import jax
import numpy as np

from fsjax.errors import ConfigError
from fsjax.tables.base import as_table
from fsjax.tables.scaling import Scaler, apply
from fsjax.tables.stored import StoredTable, aligned, row_blocks

#: The error message for methods that use all training rows at once.
NOT_HELD = (
    "the method uses all training rows at once, but the table is on disk and not in memory; read "
    "it with data.dense=true (fsjax.data.load(..., dense=True)), or choose a method that trains by "
    "batches alone, such as stg, binmask or wast"
)


@jax.tree_util.register_pytree_node_class
class StoredRows:
    """Scaled rows ``(N, D)`` float32 on disk: a pytree without leaves, which keeps only its shape.

    Attributes:
      shape: ``(N, D)``; rows after those of the table are padding and are 0.
      table: the table that they are read from.
      scaler: their scaling.

    In compiled code, using ``table`` or ``scaler`` is a ConfigError.
    """

    ndim = 2
    dtype = np.dtype(np.float32)

    def __init__(
        self,
        shape: tuple[int, int],
        table: StoredTable | None = None,
        scaler: Scaler | None = None,
    ) -> None:
        self.shape, self._table, self._scaler = (shape[0], shape[1]), table, scaler

    @property
    def table(self) -> StoredTable:
        """The table that the rows are read from."""
        if self._table is None:
            raise ConfigError(NOT_HELD)
        return self._table

    @property
    def scaler(self) -> Scaler:
        """The scaling of the rows."""
        if self._scaler is None:
            raise ConfigError(NOT_HELD)
        return self._scaler

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Any) -> NoReturn:
        raise ConfigError(NOT_HELD)

    def __jax_array__(self) -> NoReturn:
        raise ConfigError(NOT_HELD)

    def tree_flatten(self) -> tuple[tuple, tuple[int, int]]:
        """Return no leaves, and the shape."""
        return (), self.shape

    @classmethod
    def tree_unflatten(cls, shape: tuple[int, int], leaves: Any) -> StoredRows:
        """Make rows that only have a shape."""
        return cls(shape)

    def filled(self, length: int) -> StoredRows:
        """The rows padded to a length."""
        return StoredRows((length, self.shape[1]), self.table, self.scaler)

    def none(self) -> StoredRows:
        """The same columns without rows."""
        return StoredRows((0, self.shape[1]), self.table[:0], self.scaler)

    def read(self, rows: np.ndarray) -> np.ndarray:
        """Read scaled rows ``(B, D)`` by their indices, on the host."""
        real = np.asarray(rows) < len(self.table)
        if real.all():
            return apply(self.scaler, self.table.read(rows), in_place=True)
        values = aligned((len(rows), self.shape[1]), np.float32)
        values[~real] = 0.0
        values[real] = apply(self.scaler, self.table.read(rows[real]), in_place=True)
        return values

    def limits(self) -> np.ndarray:
        """The smallest and the largest value of each column, ``(2, D)``."""
        return np.concatenate(
            [apply(self.scaler, values[None]) for values in as_table(self.table).limits()]
        )

    def content(self) -> list[np.ndarray]:
        """Arrays that identify these rows: row numbers, scaling, limits and sums."""
        summary = self.table.summary
        return [self.table.rows, *self.scaler, summary.lowest, summary.highest, summary.total]


def loaded_rows(x: np.ndarray | StoredRows) -> np.ndarray:
    """Scaled rows ``(N, D)`` in memory."""
    if not isinstance(x, StoredRows):
        return x
    blocks = [apply(x.scaler, block, in_place=True) for block in row_blocks(x.table)]
    return np.concatenate([*blocks, np.zeros((len(x) - len(x.table), x.shape[1]), np.float32)])
