"""Checks that scaled values, and the squares that losses and metrics take, fit into float32."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fsjax.errors import DataError
from fsjax.tables.checks import name_some
from fsjax.tables.dataset import Dataset
from fsjax.tables.scaled import HostTable, columns_beyond
from fsjax.tables.scaling import Scaler, apply

#: Largest scaled value: losses and metrics square it, in float32.
_LARGEST = 1e18

#: Smallest scaled value: the device rounds smaller ones to 0.
_SMALLEST = np.finfo(np.float32).tiny

#: How messages describe the columns of :func:`fsjax.tables.scaled.columns_beyond`.
_BEYOND = f"values beyond {_LARGEST:g}"


def check_range(x: HostTable, part: str, dataset: Dataset, kind: str) -> None:
    """Raises DataError for scaled values whose squares overflow float32."""
    beyond = columns_beyond(x, _LARGEST)
    if beyond.size:
        raise DataError(
            f"{dataset.name}: {_named(beyond, dataset.feature_names)} has {_BEYOND} in the {part} "
            f"rows after the scaling {kind!r}; choose the scaling 'standard', divide such columns "
            "by a constant, or leave out the rows with such values"
        )


def check_new_rows(x: np.ndarray, names: Sequence[str] | None, where: str) -> None:
    """Raises DataError for scaled rows ``(N, D)`` that ``fit`` would refuse; ``names`` are D."""
    beyond = columns_beyond(x, _LARGEST)
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
      scaler: the fitted scaler.
      extremes: smallest and largest training value of each column, ``(D,)`` each.
      varies: ``(D,)`` bool, whether a column varies in the training rows.
      dataset: the data set, for its names in the message.
      kind: the kind of scaling.
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
