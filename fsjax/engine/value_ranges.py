"""Ranges of scaled values: what float32 holds, and what losses and metrics can square."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fsjax.data.checks import name_some
from fsjax.data.dataset import Dataset
from fsjax.data.scaling import Scaler, apply
from fsjax.engine.loop import HostTable
from fsjax.errors import DataError
from fsjax.sparse_rows import SparseRows
from fsjax.stored_rows import StoredRows

#: Largest scaled value: losses and metrics square it, in float32.
_LARGEST = np.float32(1e18)

#: Smallest scaled value: the device takes what is closer to 0 for 0.
_SMALLEST = np.finfo(np.float32).tiny

#: What is said of the columns of :func:`_columns_beyond`.
_BEYOND = f"values beyond {_LARGEST:g}"


def check_range(x: HostTable, part: str, dataset: Dataset, kind: str) -> None:
    """Raises DataError for scaled values whose squares float32 does not hold."""
    beyond = _columns_beyond(x)
    if beyond.size:
        raise DataError(
            f"{dataset.name}: {_named(beyond, dataset.feature_names)} has {_BEYOND} in the {part} "
            f"rows after the scaling {kind!r}; choose the scaling 'standard', divide such columns, "
            "or leave out the rows at fault"
        )


def _columns_beyond(x: HostTable) -> np.ndarray:
    """The columns of scaled rows ``(N, D)`` with NaN, or values whose squares exceed float32."""
    if not len(x):
        return np.zeros(0, int)
    if isinstance(x, StoredRows):
        return np.flatnonzero(~_fits(*x.limits()))
    if isinstance(x, SparseRows):
        values, of_zero = np.asarray(x.values), np.asarray(x.base)
        stored, base = _fits(values, values), _fits(of_zero, of_zero)
        return np.unique([*x.columns[~stored], *np.flatnonzero(~base)]).astype(int)
    return np.flatnonzero(~_fits(x.min(axis=0), x.max(axis=0)))


def check_new_rows(x: np.ndarray, names: Sequence[str] | None, where: str) -> None:
    """Raises DataError for scaled rows ``(N, D)`` that ``fit`` would not take; ``names`` are D."""
    beyond = _columns_beyond(x)
    if beyond.size:
        raise DataError(
            f"{where}: {_named(beyond, names)} has {_BEYOND} after the scaling that fit learnt; "
            "correct or leave out the rows at fault"
        )


def check_nonzero(
    scaler: Scaler,
    extremes: tuple[np.ndarray, np.ndarray],
    varies: np.ndarray,
    dataset: Dataset,
    kind: str,
) -> None:
    """Raises DataError for columns that vary, but are 0 in float32 once they are scaled.

    Args:
      extremes: smallest and largest training value of each column, ``(D,)`` both.
      varies: ``(D,)`` bool.
    """
    scaled = apply(scaler, np.stack(extremes))
    lost = np.flatnonzero(varies & (np.abs(scaled).max(axis=0) < _SMALLEST))
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


def _fits(lowest: np.ndarray, highest: np.ndarray) -> np.ndarray:
    # False for NaN.
    return (lowest >= -_LARGEST) & (highest <= _LARGEST)
