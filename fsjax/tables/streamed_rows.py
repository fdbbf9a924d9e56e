"""Scaled rows of a streamed table: the type of ``data.x`` if the table is not in memory.

Compiled code knows only their shape; the engine reads and scales them on the host, a few batches
ahead of the device (:mod:`fsjax.engine.streamed`).
"""

from __future__ import annotations

from typing import Any, NoReturn

import jax
import numpy as np

from fsjax.errors import ConfigError
from fsjax.tables.scaling import Scaler, apply
from fsjax.tables.streamed import StreamedTable

#: The error message for methods that use all training rows at once.
NOT_HELD = (
    "the method uses all training rows at once, but the table is on disk and not in memory; read "
    "it with data.dense=true (fsjax.data.load(..., dense=True)), or choose a method that trains by "
    "batches alone, such as stg, binmask or wast"
)


@jax.tree_util.register_pytree_node_class
class StreamedRows:
    """Scaled rows ``(N, D)`` float32: a pytree without leaves, which keeps only its shape.

    Attributes:
      shape: ``(N, D)``; rows after those of the table are padding and are 0.
      table: the table that they are read from, and
      scaler: their scaling; compiled code has neither.
    """

    ndim = 2
    dtype = np.dtype(np.float32)

    def __init__(
        self,
        shape: tuple[int, int],
        table: StreamedTable | None = None,
        scaler: Scaler | None = None,
    ) -> None:
        self.shape, self._table, self._scaler = shape, table, scaler

    @property
    def table(self) -> StreamedTable:
        if self._table is None:
            raise ConfigError(NOT_HELD)
        return self._table

    @property
    def scaler(self) -> Scaler:
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
        return (), self.shape

    @classmethod
    def tree_unflatten(cls, shape: tuple[int, int], leaves: Any) -> StreamedRows:
        return cls(shape)

    def filled(self, length: int) -> StreamedRows:
        """The rows padded to a length."""
        return StreamedRows((length, self.shape[1]), self.table, self.scaler)

    def none(self) -> StreamedRows:
        """The same columns without rows."""
        return StreamedRows((0, self.shape[1]), self.table[:0], self.scaler)

    def read(self, rows: np.ndarray | slice = slice(None)) -> np.ndarray:
        """Read scaled rows ``(B, D)`` by their indices, on the host."""
        places = np.arange(len(self))[rows]
        is_real = places < len(self.table)
        values = apply(self.scaler, self.table.read(places[is_real]))
        if is_real.all():
            return values
        filled = np.zeros((len(places), self.shape[1]), np.float32)
        filled[is_real] = values
        return filled

    def limits(self) -> np.ndarray:
        """The smallest and the largest value of each column, ``(2, D)``."""
        return apply(self.scaler, np.stack(self.table.limits()))

    def content(self) -> list[np.ndarray]:
        """Arrays that identify these rows: row numbers, scaling, limits and sums."""
        return [self.table.rows, *self.scaler, *map(np.asarray, self.table.summary)]
