"""Values that may stand for missing ones: codes of numbers, and dates such as 9999-12-31."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

#: Codes that statistics packages, sensors and netCDF write for missing values.
_MISSING_CODES = (
    *(sign * code for code in (9, 99, 999, 9999, 99999, 999999) for sign in (1, -1)),
    -1.0, -32768.0, 32767.0, -2147483648.0, 2147483647.0,
    9.969209968386869e36, -1e30, 1e30, 1e20, -1e20, 1e36,
)  # fmt: skip

#: Codes that stand beside these, such as 97 and 98 for two kinds of missing values.
_BESIDE = [
    sign * code
    for power in (100, 1000, 10_000, 100_000, 1_000_000)
    for code in (*range(power - 4, power - 1), power // 9 * 7, power // 9 * 8)
    for sign in (1, -1)
]

#: Dates that databases and spreadsheets write for missing ones or for "until further notice".
_MISSING_DATES = np.array(
    [
        "0001-01-01", "1582-10-15", "1677-09-21", "1753-01-01", "1899-12-30", "1899-12-31",
        "1900-01-01", "1970-01-01", "2099-12-31", "2100-01-01", "2199-12-31",
        "2262-04-11", "2999-12-31", "3000-01-01", "3999-12-31", "9999-01-01", "9999-12-31",
    ],
    "datetime64[D]",
).astype(np.float64)  # fmt: skip

#: Fewest other different values from which one can be said to be far away.
_MIN_OTHERS = 5

#: Fewest rows with values that may stand for missing ones, and the distance of values that are no
#: known codes from the others as a multiple of the range of these.
_REPEATS, _FAR = 3, 10.0


class Sentinel(NamedTuple):
    """Values that may stand for missing ones.

    Attributes:
      values: as they are in the column.
      known: whether they are codes or dates that are commonly written for missing values.
      remark: their number of rows and their distance from the others.
    """

    values: list[float]
    known: bool
    remark: str


def sentinels(
    values: np.ndarray,
    codes: ArrayLike = _MISSING_CODES,
    repeats: int = _REPEATS,
    show: Callable[[float, int], str] = lambda value, digits: f"{value:.{digits}g}",
) -> list[Sentinel]:
    """Known codes, and the lowest and the highest other value, as far as they may mean missing.

    Known codes are beyond the range of the others by more than that range, other values by more
    than ten times that range and repeated.

    Args:
      values: ``(N,)``, NaN where missing.
      codes: commonly written for missing values.
      repeats: the fewest rows.
      show: writes a value with so many digits.
    """
    distinct, counts = np.unique(values[~np.isnan(values)], return_counts=True)
    with np.errstate(over="ignore"):
        known = np.isin(distinct.astype(np.float32), np.asarray(codes, np.float32))
    beside = np.isin(distinct, _BESIDE)
    known |= known.any() & beside
    suspect = known | beside
    suspect[np.flatnonzero(~known)[:1]] = suspect[np.flatnonzero(~known)[-1:]] = True
    suspect &= known | (counts >= repeats)
    # Halves, because the range of large numbers may overflow.
    halves, least = distinct / 2, np.where(known, 1.0, _FAR)
    while suspect.any() and not suspect.all():
        others = halves[~suspect]
        gaps = np.maximum(others[0] - halves, halves - others[-1])
        far = suspect & (gaps / least > others[-1] - others[0])
        if len(others) < _MIN_OTHERS:
            far = suspect & (gaps > gaps[suspect].min())
        if (far == suspect).all():
            break
        suspect = far
    found = []
    for is_known in (True, False):
        part = suspect & (known == is_known)
        rows = counts[part].sum()
        if rows >= repeats and not suspect.all():
            shown = ", ".join(show(value, 7) for value in distinct[part])
            limits = " to ".join(show(value, 4) for value in distinct[~suspect][[0, -1]])
            remark = f"has {shown} in {rows} of {len(values)} rows, far from all other values"
            found.append(Sentinel(distinct[part].tolist(), is_known, f"{remark} ({limits})"))
    return found


def without_sentinel_dates(dates: pd.Series) -> tuple[pd.Series, str]:
    """Dates without known codes for missing ones, and a remark on these, or an empty one."""
    days = dates.to_numpy().astype("datetime64[D]").astype(np.float64)
    days[dates.isna()] = np.nan
    far = sentinels(days, _MISSING_DATES, 1, lambda day, _: str(np.datetime64(int(day), "D")))
    for code in far:
        if code.known:
            known = f"{code.remark}; taken as missing (impute=None, or --impute=none, keeps it)"
            return dates.where(~np.isin(days, code.values)), known
    return dates, ""
