"""Scaled rows in each form that the engine trains on: arrays, sparse rows, and rows on disk."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias, overload

import jax
import numpy as np

from fsjax.tables.base import DiskTable, SparseTable, Table
from fsjax.tables.scaling import Scaler, apply, apply_sparse
from fsjax.tables.sparse_rows import (
    SparseRows,
    filled_sparse,
    is_sparse,
    no_rows,
    only_columns,
    stacked,
)
from fsjax.tables.stored_rows import StoredRows, all_rows

#: Scaled rows ``(N, D)`` on the host.
HostTable: TypeAlias = np.ndarray | SparseRows | StoredRows

#: The same in compiled code.
DeviceTable: TypeAlias = jax.Array | SparseRows | StoredRows

#: The fewest rows that fill up, as a rule: tables shorter by less share their programs.
_UNIT = 8


def scaled(table: Table, scaler: Scaler) -> HostTable:
    """The rows ``(N, D)`` of a table as the engine takes them."""
    if isinstance(table, DiskTable):
        return StoredRows(table.shape, table.raw, scaler)
    if not isinstance(table, SparseTable):
        return apply(scaler, table.raw)
    X = table.raw
    values, base = apply_sparse(scaler, X)
    starts, counts = X.indptr[:-1].astype(np.int32), np.diff(X.indptr).astype(np.int32)
    return SparseRows(values, X.indices.astype(np.int32), starts, counts, base)


def filled_length(count: int) -> int:
    """The number of rows with those that fill up: at most a sixteenth more, or 7.

    Tables of nearly the same length, such as the folds of a cross-validation, then share their
    programs.
    """
    unit = max(_UNIT, 1 << max(count.bit_length() - 5, 0))
    return -(-count // unit) * unit


@overload
def filled_rows(x: np.ndarray) -> np.ndarray: ...


@overload
def filled_rows(x: StoredRows) -> StoredRows: ...


@overload
def filled_rows(x: HostTable) -> HostTable: ...


def filled_rows(x: HostTable) -> HostTable:
    """``(N, ...)`` with zeros, or empty sparse rows, up to :func:`filled_length`."""
    if isinstance(x, StoredRows):
        return x.filled(filled_length(len(x)))
    if isinstance(x, SparseRows):
        return filled_sparse(x, filled_length(len(x)), filled_length(max(x.values.size, 1)))
    missing = filled_length(len(x)) - len(x)
    return np.pad(x, ((0, missing), *((0, 0),) * (x.ndim - 1)))


def without_rows(x: HostTable) -> HostTable:
    """The same columns without rows."""
    if isinstance(x, StoredRows):
        return x.none()
    return no_rows(x) if isinstance(x, SparseRows) else x[:0]


def with_columns(x: HostTable, columns: np.ndarray, zero_others: bool) -> HostTable:
    """Rows in memory with the columns ``(M,)`` alone, or with zeros in place of the others."""
    if isinstance(x, SparseRows):
        return only_columns(x, columns, zero_others)
    rows = all_rows(x)
    if not zero_others:
        return rows[:, columns]
    kept = np.zeros(rows.shape[1], bool)
    kept[columns] = True
    return np.where(kept, rows, np.float32(0))


def dense_rows(x: HostTable) -> np.ndarray:
    """``(N, D)`` scaled rows as an array."""
    return np.asarray(x[:]) if isinstance(x, SparseRows) else all_rows(x)


def stack_rows(trees: Sequence[Any]) -> Any:
    """Trees of rows in memory with a leading seed axis."""
    return jax.tree.map(
        lambda *rows: stacked(rows) if isinstance(rows[0], SparseRows) else np.stack(rows),
        *trees,
        is_leaf=is_sparse,
    )


def columns_beyond(x: HostTable, largest: float) -> np.ndarray:
    """The columns of scaled rows with NaN, or with values beyond plus or minus ``largest``."""
    if not len(x):
        return np.zeros(0, int)
    if isinstance(x, SparseRows):
        values, base = (~(np.abs(np.asarray(part)) <= largest) for part in (x.values, x.base))
        return np.unique([*np.asarray(x.columns)[values], *np.flatnonzero(base)]).astype(int)
    lowest, highest = x.limits() if isinstance(x, StoredRows) else (x.min(axis=0), x.max(axis=0))
    # Comparisons with NaN are false.
    return np.flatnonzero(~((lowest >= -largest) & (highest <= largest)))


def leaves_of(rows: Any) -> list[np.ndarray]:
    """The arrays of scaled rows, of those on disk the limits of their columns."""
    return [rows.limits()] if isinstance(rows, StoredRows) else jax.tree.leaves(rows)


def content_of(rows: HostTable) -> list[np.ndarray]:
    """What tells rows on disk from others; nothing for rows in memory, which tell by themselves."""
    return rows.content() if isinstance(rows, StoredRows) else []
