"""Dates and durations in text; the order of day and month is inferred from all values."""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np
import pandas as pd
from pandas.api.types import is_datetime64_any_dtype

#: The least share of texts that have to be dates for a column of dates.
MIN_DATE_SHARE = 0.95

#: Formats of dates, in the order in which they are tried; numeric dates come after them.
_FORMATS = ("%Y-%m-%d", "%Y/%m/%d", "%d %b %Y", "%d-%b-%Y", "%d %B %Y", "%b %d, %Y", "%B %d, %Y")

_NUMERIC_DATE = (
    r"(?P<first>\d{1,2})(?P<mark>[./-])(?P<second>\d{1,2})(?P=mark)(?P<year>\d{4}|\d{2})"
)
#: A date with a time of the day, which may be of 12 hours.
_DATE_AND_TIME = (
    r"(?P<date>.+?)(?:,?[ T]+(?P<clock>\d{1,2}:\d{2}(?::\d{2}(?:\.\d+)?)?)"
    r"(?:\s?(?P<half>[AaPp])\.?[Mm]\.?)?)?$"
)
#: Hours and minutes of the local clock before UTC, after a time of the day.
_OFFSET = r"[T ]\d\d[\d:.,]*\s?([+-]\d\d):?(\d\d)?$"
_DURATION = re.compile(r"[+-]?(?:\d+ days?(?:,? [+-]?\d{1,2}:\d{2}:\d{2}(?:\.\d+)?)?)")

_SECONDS_OF_DAY = 86400.0


class WrittenDates(NamedTuple):
    """Dates that were read from texts.

    Attributes:
      values: in UTC, with the index of the texts; NaT where a text is not a date.
      remark: what was assumed, or empty.
    """

    values: pd.Series
    remark: str


def read_dates(texts: pd.Series) -> WrittenDates | None:
    """The dates in texts, or ``None`` if fewer than 95 % are dates.

    In numeric dates (``3/4/2024``), the number that exceeds 12 in some text is the day. If none
    does, the day is first with points and hyphens, and the month is first with slashes; ``remark``
    says so.

    Args:
      texts: stripped, without missing values.
    """
    dates = pd.to_datetime(texts, format="ISO8601", errors="coerce", utc=True)
    if dates.notna().mean() >= MIN_DATE_SHARE:
        return WrittenDates(dates, "")
    parts = texts.str.extract(_DATE_AND_TIME)
    clock, half = parts["clock"], parts["half"].str.upper()
    clock = clock.where(clock.str.count(":") != 1, clock + ":00").fillna("00:00:00")
    time = pd.to_timedelta(clock, errors="coerce")
    morning = time % pd.Timedelta(hours=12)
    time = time.where(half.isna(), morning + pd.to_timedelta(12 * (half == "P"), unit="h"))
    for form in _FORMATS:
        dates = pd.to_datetime(parts["date"], format=form, errors="coerce", utc=True) + time
        if dates.notna().mean() >= MIN_DATE_SHARE:
            return WrittenDates(dates, "")
    return _read_numeric_dates(parts["date"].fillna(""), time)


def local_clock(dates: pd.Series, column: pd.Series) -> pd.Series:
    """Dates in UTC by the clock of the column that they were read from, without a time zone."""
    if is_datetime64_any_dtype(column):
        return column.dt.tz_localize(None)
    offsets = column.astype(str).str.strip().str.extract(_OFFSET)
    clock = offsets[0] + ":" + offsets[1].fillna("00") + ":00"
    return dates.dt.tz_localize(None) + pd.to_timedelta(clock).fillna(pd.Timedelta(0))


def _read_numeric_dates(texts: pd.Series, time: pd.Series) -> WrittenDates | None:
    parts = texts.str.extract(f"^{_NUMERIC_DATE}$")
    numeric = parts["first"].notna()
    if numeric.mean() < MIN_DATE_SHARE:
        return None
    parts = parts[numeric]
    first, second = parts["first"].astype(int), parts["second"].astype(int)
    first_is_day, second_is_day = bool((first > 12).any()), bool((second > 12).any())
    day_first, remark = first_is_day, ""
    if first_is_day and second_is_day:
        day_first = bool((first > 12).sum() >= (second > 12).sum())
        remark = f"has days above 12 in both places; taken as {_order(day_first)}"
    elif not first_is_day and not second_is_day:
        day_first = bool((parts["mark"] != "/").mean() > 0.5)
        example = texts[numeric].iloc[0]
        remark = (
            f"has dates such as {example!r} in which the day is ambiguous; taken as "
            f"{_order(day_first)}"
        )
    day, month = (first, second) if day_first else (second, first)
    short, years = parts["year"].str.len() == 2, parts["year"].astype(int)
    years += 2000 * short
    years -= 100 * (short & (years > pd.Timestamp.now().year + 10))
    iso = years.astype(str).str.zfill(4) + "-" + month.astype(str) + "-" + day.astype(str)
    dates = pd.to_datetime(iso, format="%Y-%m-%d", errors="coerce", utc=True)
    dates = (dates + time[numeric]).reindex(texts.index)
    if dates.notna().mean() < MIN_DATE_SHARE:
        return None
    return WrittenDates(dates, remark)


def _order(day_first: bool) -> str:
    return "day, month, year" if day_first else "month, day, year"


def read_durations(texts: pd.Series) -> pd.Series | None:
    """Durations such as ``3 days 04:00:00`` in days; ``None`` unless all texts are durations."""
    if not texts.str.fullmatch(_DURATION.pattern).all():
        return None
    return days_of(pd.to_timedelta(texts.str.replace(",", "", regex=False)))


def days_of(durations: pd.Series) -> pd.Series:
    """Durations in days, float64; NaN where missing."""
    return (durations.dt.total_seconds() / _SECONDS_OF_DAY).astype(np.float64)
