"""Rows that only fill up: tables of nearly the same length share their programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, overload

import jax
import numpy as np

from fsjax.sparse_rows import SparseRows, filled_sparse, is_sparse, stacked
from fsjax.stored_rows import StoredRows

#: The fewest rows that fill up, as a rule: tables shorter by less share their programs.
_UNIT = 8


def filled_length(count: int) -> int:
    """The number of rows with those that fill up: at most a sixteenth more, or 7.

    Tables of nearly the same length, such as the folds of a cross-validation, then have the same.
    """
    unit = max(_UNIT, 1 << max(count.bit_length() - 5, 0))
    return -(-count // unit) * unit


@overload
def filled_rows(x: np.ndarray) -> np.ndarray: ...


@overload
def filled_rows(x: StoredRows) -> StoredRows: ...


@overload
def filled_rows(
    x: np.ndarray | SparseRows | StoredRows,
) -> np.ndarray | SparseRows | StoredRows: ...


def filled_rows(
    x: np.ndarray | SparseRows | StoredRows,
) -> np.ndarray | SparseRows | StoredRows:
    """``(N, ...)`` with zeros, or empty sparse rows, up to :func:`filled_length`."""
    if isinstance(x, StoredRows):
        return x.filled(filled_length(len(x)))
    if isinstance(x, SparseRows):
        return filled_sparse(x, filled_length(len(x)), filled_length(max(x.values.size, 1)))
    missing = filled_length(len(x)) - len(x)
    return np.pad(x, ((0, missing), *((0, 0),) * (x.ndim - 1)))


def stack_rows(trees: Sequence[Any]) -> Any:
    """Trees of rows with a leading seed axis."""
    return jax.tree.map(
        lambda *rows: stacked(rows) if isinstance(rows[0], SparseRows) else np.stack(rows),
        *trees,
        is_leaf=is_sparse,
    )
