"""Rows of a table on disk: what ``data.x`` is where the table is not held in memory.

Compiled code knows their shape alone; the engine reads and scales them on the host, a few batches
ahead of the device (:mod:`fsjax.engine.streamed`).
"""

from __future__ import annotations

from typing import Any, NoReturn

import jax
import numpy as np

from fsjax.errors import ConfigError
from fsjax.tables.aligned_arrays import aligned
from fsjax.tables.base import as_table
from fsjax.tables.scaling import Scaler, apply
from fsjax.tables.stored import StoredTable, row_blocks

#: What a method is told that looks at the training rows as a whole.
NOT_HELD = (
    "the method looks at all training rows at once, which a table on disk does not have in memory; "
    "read it with data.dense=true (fsjax.data.load(..., dense=True)), or choose a method that "
    "trains by batches alone, such as stg, binmask or wast"
)


@jax.tree_util.register_pytree_node_class
class StoredRows:
    """Scaled rows ``(N, D)`` float32 on disk; a tree without leaves, which keeps its shape only.

    Attributes:
      shape: ``(N, D)``; the rows behind those of the table only fill up and are 0.
      table: where they come from.
      scaler: their scaling.

    Compiled code has neither of the two: to ask for them there is a ConfigError.
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
        """Where the rows come from."""
        if self._table is None:
            raise ConfigError(NOT_HELD)
        return self._table

    @property
    def scaler(self) -> Scaler:
        """How they are scaled."""
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
        """No leaves, and the shape."""
        return (), self.shape

    @classmethod
    def tree_unflatten(cls, shape: tuple[int, int], leaves: Any) -> StoredRows:
        """Rows that only have a shape."""
        return cls(shape)

    def filled(self, length: int) -> StoredRows:
        """With rows that only fill up."""
        return StoredRows((length, self.shape[1]), self.table, self.scaler)

    def none(self) -> StoredRows:
        """The same columns without rows."""
        return StoredRows((0, self.shape[1]), self.table[:0], self.scaler)

    def read(self, rows: np.ndarray) -> np.ndarray:
        """Scaled rows ``(B, D)`` by their numbers, on the host."""
        real = np.asarray(rows) < len(self.table)
        if real.all():
            return apply(self.scaler, self.table.read(rows), in_place=True)
        values = aligned((len(rows), self.shape[1]), np.float32)
        values[~real] = 0.0
        values[real] = apply(self.scaler, self.table.read(rows[real]), in_place=True)
        return values

    def limits(self) -> np.ndarray:
        """``(2, D)``: the smallest and the largest value of every column."""
        return np.concatenate(
            [apply(self.scaler, values[None]) for values in as_table(self.table).limits()]
        )

    def content(self) -> list[np.ndarray]:
        """What tells these rows from others: their numbers, scaling, limits and sums."""
        summary = self.table.summary
        return [self.table.rows, *self.scaler, summary.lowest, summary.highest, summary.total]


def all_rows(x: np.ndarray | StoredRows) -> np.ndarray:
    """Scaled rows ``(N, D)`` in memory."""
    if not isinstance(x, StoredRows):
        return x
    blocks = [apply(x.scaler, block, in_place=True) for block in row_blocks(x.table)]
    return np.concatenate([*blocks, np.zeros((len(x) - len(x.table), x.shape[1]), np.float32)])
