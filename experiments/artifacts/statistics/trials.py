"""Tables of trials, and means over trials with their confidence intervals."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pandas as pd
from scipy import stats

from fsjax.errors import DataError

#: One row for each trial of each setting.
Rows: TypeAlias = pd.DataFrame | Sequence[Mapping[str, Any]]


class Means(NamedTuple):
    """Means over trials at increasing places, and half widths of their intervals, ``(n,)`` each.

    A half width is NaN if there is a single trial.
    """

    places: np.ndarray
    means: np.ndarray
    halves: np.ndarray


def mean_interval(values: Iterable[float]) -> tuple[float, float]:
    """Mean over trials and half the width of its 95 % confidence interval (Student's t).

    Args:
      values: one for each trial; those that are not finite do not count.

    Returns:
      The mean, NaN if no value is finite, and the half width, NaN for fewer than two values.
    """
    array = np.asarray(list(values), np.float64)
    array = array[np.isfinite(array)]
    if array.size < 2:
        return float(array[0]) if array.size else np.nan, np.nan
    quantile = stats.t.ppf(0.975, array.size - 1)
    return float(array.mean()), float(quantile * array.std(ddof=1) / np.sqrt(array.size))


def to_table(
    rows: Rows, names: Sequence[str], numbers: Sequence[str], optional: Sequence[str] = ()
) -> pd.DataFrame:
    """Copies rows into a table and checks its columns.

    Args:
      names: required columns that stay as they are.
      numbers: required columns that become float64; ``None`` becomes NaN.
      optional: columns of numbers; a missing one is filled with NaN.

    Raises:
      DataError: if there are no rows, a column is missing, or a value is not a number.
    """
    table = pd.DataFrame(rows)
    missing = [name for name in (*names, *numbers) if name not in table.columns]
    if missing or table.empty:
        what = "no rows" if table.empty else f"no column {missing[0]!r}"
        raise DataError(f"the table has {what}; give {', '.join((*names, *numbers))}")
    columns = {name: table.get(name, np.nan) for name in (*numbers, *optional)}
    try:
        return table.assign(**columns).astype(dict.fromkeys(columns, np.float64))
    except (TypeError, ValueError) as error:
        raise DataError(f"{', '.join(columns)} must be numbers: {error}") from error


def means_by(table: pd.DataFrame, place: str, value: str) -> Means:
    """Mean and 95 % interval of a column at each value of another one, without those at NaN."""
    by_place = {key: mean_interval(rows[value]) for key, rows in table.groupby(place)}
    intervals = np.array(list(by_place.values()), np.float64).reshape(-1, 2)
    return Means(np.array(list(by_place), np.float64), *intervals.T)


def rows_of_setting(table: pd.DataFrame, method: str, strength: float) -> pd.DataFrame:
    """The rows of a method at one strength, which is NaN if the method has none."""
    if table.empty:
        return table
    # Numbers that were read from a file may differ in the last bit.
    strengths = table["strength"].to_numpy(np.float64)
    same = np.isclose(strengths, strength, rtol=1e-9, atol=0.0, equal_nan=True)
    return table[(table["method"] == method) & same]


def interval_text(
    mean: float | None, half: float | None, digits: int = 2, scale: float = 1.0
) -> str:
    """``0.84 +- 0.01``; ``0.84`` without an interval; ``-`` without a mean."""
    if mean is None or not np.isfinite(mean):
        return "-"
    text = f"{round(scale * mean, digits) + 0.0:.{digits}f}"  # no -0.00
    return text if half is None or not np.isfinite(half) else f"{text} +- {scale * half:.{digits}f}"
