"""Scaled rows in every form that the engine trains on: arrays, sparse rows and streamed rows.

Checks that the values, and the squares that losses and metrics take, fit into float32 are here too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import jax
import numpy as np

from fsjax.errors import DataError, name_some
from fsjax.tables.base import DenseTable, SparseTable, Table
from fsjax.tables.dataset import Dataset
from fsjax.tables.scaling import Scaler, apply, apply_sparse
from fsjax.tables.sparse_rows import (
    SparseRows,
    filled_sparse,
    is_sparse,
    no_rows,
    only_columns,
    stacked,
)
from fsjax.tables.streamed import StreamedTable
from fsjax.tables.streamed_rows import StreamedRows

#: Scaled rows ``(N, D)`` on the host.
HostTable: TypeAlias = np.ndarray | SparseRows | StreamedRows

#: Scaled rows ``(N, D)`` in compiled code.
DeviceTable: TypeAlias = jax.Array | SparseRows | StreamedRows

#: Lengths are rounded up to a multiple of at least this many rows.
_UNIT = 8

#: Largest scaled value: losses and metrics square it, in float32.
_MAX_SCALED = 1e18

#: Smallest scaled value: the device rounds smaller ones to 0.
_MIN_SCALED = np.finfo(np.float32).tiny

#: How messages describe the columns of :func:`columns_beyond`.
_BEYOND = f"values beyond {_MAX_SCALED:g}"


def scaled(table: Table, scaler: Scaler) -> HostTable:
    """The scaled rows ``(N, D)`` of a table in the form that the engine trains on."""
    if isinstance(table, StreamedTable):
        return StreamedRows(table.shape, table, scaler)
    if isinstance(table, DenseTable):
        return apply(scaler, table.raw)
    assert isinstance(table, SparseTable)
    X = table.raw
    values, base = apply_sparse(scaler, X)
    starts, counts = X.indptr[:-1].astype(np.int32), np.diff(X.indptr).astype(np.int32)
    return SparseRows(values, X.indices.astype(np.int32), starts, counts, base)


def filled_length(count: int) -> int:
    """The number of rows with padding, at most a sixteenth or 7 rows more.

    Tables of nearly the same length, such as the folds of a cross-validation, then share their
    compiled programs.
    """
    unit = max(_UNIT, 1 << max(count.bit_length() - 5, 0))
    return -(-count // unit) * unit


def filled_rows(x: HostTable) -> Any:
    """``(N, ...)`` padded to :func:`filled_length` with zeros or, if sparse, with empty rows."""
    if isinstance(x, StreamedRows):
        return x.filled(filled_length(len(x)))
    if isinstance(x, SparseRows):
        return filled_sparse(x, filled_length(len(x)), filled_length(max(x.values.size, 1)))
    missing = filled_length(len(x)) - len(x)
    return np.pad(x, ((0, missing), *((0, 0),) * (x.ndim - 1)))


def without_rows(x: HostTable) -> HostTable:
    """The same columns without rows."""
    if isinstance(x, StreamedRows):
        return x.none()
    return no_rows(x) if isinstance(x, SparseRows) else x[:0]


def with_columns(x: HostTable, columns: np.ndarray, zero_others: bool) -> HostTable:
    """Rows in memory with only the columns ``(M,)``, or with zeros in place of the others."""
    if isinstance(x, SparseRows):
        return only_columns(x, columns, zero_others)
    rows = dense_rows(x)
    if not zero_others:
        return rows[:, columns]
    kept = np.zeros(rows.shape[1], bool)
    kept[columns] = True
    return np.where(kept, rows, np.float32(0))


def dense_rows(x: HostTable) -> np.ndarray:
    """Scaled rows ``(N, D)`` as an array."""
    return x.read() if isinstance(x, StreamedRows) else np.asarray(x[:])


def stack_rows(trees: Sequence[Any]) -> Any:
    """Stack trees of rows in memory along a leading seed axis."""
    return jax.tree.map(
        lambda *rows: stacked(rows) if isinstance(rows[0], SparseRows) else np.stack(rows),
        *trees,
        is_leaf=is_sparse,
    )


def columns_beyond(x: HostTable, largest: float) -> np.ndarray:
    """The columns of scaled rows that hold NaN or absolute values above ``largest``."""
    if not len(x):
        return np.zeros(0, int)
    if isinstance(x, SparseRows):
        values, base = (~(np.abs(np.asarray(part)) <= largest) for part in (x.values, x.base))
        return np.unique([*np.asarray(x.columns)[values], *np.flatnonzero(base)]).astype(int)
    lowest, highest = x.limits() if isinstance(x, StreamedRows) else (x.min(axis=0), x.max(axis=0))
    # Comparisons with NaN are false.
    return np.flatnonzero(~((lowest >= -largest) & (highest <= largest)))


def leaves_of(rows: Any) -> list[np.ndarray]:
    """The arrays of scaled rows; for streamed rows, the limits of their columns."""
    return [rows.limits()] if isinstance(rows, StreamedRows) else jax.tree.leaves(rows)


def content_of(rows: HostTable) -> list[np.ndarray]:
    """Arrays that identify streamed rows; none for rows in memory, whose arrays identify them."""
    return rows.content() if isinstance(rows, StreamedRows) else []


def check_range(x: HostTable, part: str, dataset: Dataset, kind: str) -> None:
    """Raises DataError for scaled values whose squares overflow float32."""
    beyond = columns_beyond(x, _MAX_SCALED)
    if beyond.size:
        raise DataError(
            f"{dataset.name}: {_named(beyond, dataset.feature_names)} has {_BEYOND} in the {part} "
            f"rows after the scaling {kind!r}; choose the scaling 'standard', divide such columns "
            "by a constant, or leave out the rows with such values"
        )


def check_new_rows(x: np.ndarray, names: Sequence[str] | None, where: str) -> None:
    """Raises DataError for scaled rows ``(N, D)`` that ``fit`` would refuse; ``names`` are D."""
    beyond = columns_beyond(x, _MAX_SCALED)
    if beyond.size:
        raise DataError(
            f"{where}: {_named(beyond, names)} has {_BEYOND} after the scaling that fit learnt; "
            "correct or leave out the rows with such values"
        )


def check_nonzero(
    scaler: Scaler,
    extremes: tuple[np.ndarray, np.ndarray],
    varies: np.ndarray,
    dataset: Dataset,
    kind: str,
) -> None:
    """Raises DataError for columns that vary but are 0 in float32 after scaling.

    Args:
      extremes: smallest and largest training value of each column, ``(D,)`` each.
    """
    scaled = apply(scaler, np.stack(extremes))
    lost = np.flatnonzero(varies & (np.abs(scaled).max(axis=0) < _MIN_SCALED))
    if not lost.size:
        return
    lowest, highest = (values[lost[0]] for values in extremes)
    advice = "multiply or divide such columns by a constant"
    if kind != "standard":
        advice = f"choose the scaling 'standard', or {advice}"
    raise DataError(
        f"{dataset.name}: {_named(lost, dataset.feature_names)} has values from {lowest:g} to "
        f"{highest:g}, all of which are 0 in float32 after the scaling {kind!r}; {advice}"
    )


def _named(columns: np.ndarray, names: Sequence[str] | None) -> str:
    return name_some([f"column {index}" if names is None else names[index] for index in columns])
