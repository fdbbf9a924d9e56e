"""Values that may stand for missing ones: codes of numbers, and dates such as 9999-12-31."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd

#: Codes that statistics packages, sensors and netCDF write for missing values.
_MISSING_CODES = (
    *(sign * code for code in (9, 99, 999, 9999, 99999, 999999) for sign in (1, -1)),
    -1.0, -32768.0, 32767.0, -2147483648.0, 2147483647.0,
    9.969209968386869e36, -1e30, 1e30, 1e20, -1e20, 1e36,
)  # fmt: skip

#: Dates that databases and spreadsheets write for missing ones or for "until further notice".
_MISSING_DATES = frozenset(
    {
        "0001-01-01", "1582-10-15", "1677-09-21", "1753-01-01", "1899-12-30", "1899-12-31",
        "1900-01-01", "1970-01-01", "2099-12-31", "2100-01-01", "2199-12-31",
        "2262-04-11", "2999-12-31", "3000-01-01", "3999-12-31", "9999-01-01", "9999-12-31",
    }
)  # fmt: skip

#: Fewest other different values from which one can be said to be far away.
_MIN_OTHERS = 5

#: Fewest rows with a value that may stand for a missing one, and its distance from the others as a
#: multiple of their range: for any value, and for known codes.
_REPEATS, _FAR, _FAR_OF_CODE = 3, 10.0, 1.0


class Sentinel(NamedTuple):
    """A value that may stand for a missing one.

    Attributes:
      value: as it is in the column.
      known: whether it is a code or date that is commonly written for missing values.
      remark: its number of rows and its distance from the others.
    """

    value: float
    known: bool
    remark: str


def sentinel(values: np.ndarray) -> Sentinel | None:
    """A repeated value that is far from all others, or ``None``.

    A known code is far from a distance of the range of the other values on, any other value from
    ten times that range on.

    Args:
      values: ``(N,)``, NaN where missing.
    """
    distinct, counts = np.unique(values[~np.isnan(values)], return_counts=True)
    if len(distinct) <= _MIN_OTHERS:
        return None
    for place, others in ((0, distinct[1:]), (-1, distinct[:-1])):
        value, count = float(distinct[place]), int(counts[place])
        nearest = others[0] if place == 0 else others[-1]
        gap = abs(nearest / 2 - value / 2)
        extent = others[-1] / 2 - others[0] / 2
        if count < _REPEATS or gap <= _FAR_OF_CODE * extent:
            continue
        known = bool(np.isclose(value, _MISSING_CODES, rtol=1e-6).any())
        if gap > _FAR * extent or known:
            return Sentinel(
                value,
                known,
                f"has {value:.7g} in {count} of {len(values)} rows, far from all other values "
                f"({others[0]:.4g} to {others[-1]:.4g})",
            )
    return None


def without_sentinel_dates(dates: pd.Series) -> tuple[pd.Series, str]:
    """Dates without known codes for missing ones, and a remark on these, or an empty one.

    Known dates at either end that are further from the others than the range of these are taken as
    missing.

    Args:
      dates: ``(N,)`` with a time zone, NaT where missing.
    """
    remarks = []
    # Twice, because one code may hide another.
    for latest in (False, True, False, True):
        known = dates.dropna().sort_values()
        if known.empty:
            break
        day = known.iloc[-1 if latest else 0].date()
        others = known[known.dt.date != day]
        if others.nunique() <= _MIN_OTHERS or day.isoformat() not in _MISSING_DATES:
            continue
        first, last = others.iloc[0], others.iloc[-1]
        gap = known.iloc[-1] - last if latest else first - known.iloc[0]
        if gap <= _FAR_OF_CODE * (last - first):
            continue
        remarks.append(
            f"has the date {day} in {len(known) - len(others)} of {len(dates)} rows, far from all "
            f"others ({first.date()} to {last.date()}); taken as missing (impute=None keeps it)"
        )
        dates = dates.where(dates.dt.date != day)
    return dates, "; ".join(remarks)
