"""Turns a table of text, dates, truth values and missing values into numbers, column by column.

Each usable column of the table becomes a *unit*: one numeric column, or the several columns that
encode a category, a date, or a number with missing values. Units are selected as a whole.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence, Sized
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from pandas.api.types import (
    is_bool_dtype,
    is_datetime64_any_dtype,
    is_numeric_dtype,
    is_timedelta64_dtype,
)
from sklearn.preprocessing import OneHotEncoder

from fsjax import ConfigError, DataError
from fsjax.auto.reading.column_operations import Columns
from fsjax.auto.reading.missing_codes import sentinels, without_sentinel_dates
from fsjax.auto.reading.notes import LEFT_OUT, Note
from fsjax.auto.reading.pandas_columns import dense_column, holds_numbers
from fsjax.auto.reading.text_columns import Remark, decimal_of_frame, numbers_among, read_text
from fsjax.auto.reading.written_dates import days_of, local_clock
from fsjax.data import is_constant
from fsjax.errors import name_some, nearest

#: Allowed values of ``impute``.
RULES = ("mean", "median")

#: Most columns that a categorical column becomes; its rarest categories share one.
MAX_CATEGORIES = 20

#: The category of missing values.
MISSING = "(missing)"

#: More different texts than this, in more than half of the rows, are not categories.
_MANY_TEXTS = 30

#: Whole numbers beyond this are rounded by float64.
_EXACT = 2**53

#: Names of columns that identify the rows, and names that may also count something.
_IDENTIFIER = re.compile(
    r"(^|[^a-z])(id|identifier|uuid|guid|rowid|rownum)([^a-z]|$)|(^|[^a-z])key$|^(row|index|idx)$"
)
_RUNNING_NUMBER = re.compile(r"(^|[^a-z])(nr|no|number)[^a-z0-9]*$")
#: The largest of codes of similar size, as a multiple of their median.
_SIMILAR = 4.0


@dataclass(frozen=True, eq=False)
class Design:
    """The numbers that selectors see.

    Attributes:
      X: ``(N, D)`` float64, NaN where a number is missing; of a sparse table CSR rows without
        missing values, whose units are single columns.
      names: D names, for example ``colour=red``.
      groups: ``(D,)`` the unit of each column, numbered from 0 to G - 1 in order.
      units: G names, those of the columns of the table.
      notes: what was done with columns, and noticed in them.
      impute: statistic of the training rows that replaces missing values, or ``None``.
    """

    X: Columns
    names: tuple[str, ...]
    groups: np.ndarray
    units: tuple[str, ...]
    notes: tuple[Note, ...]
    impute: str | None = None

    @property
    def num_units(self) -> int:
        """G, the number of units to choose from."""
        return len(self.units)

    @property
    def indicators(self) -> np.ndarray:
        """``(D,)`` bool, the columns that indicate missing values."""
        return np.array(
            [
                name == _indicator(self.units[unit])
                for name, unit in zip(self.names, self.groups, strict=True)
            ],
            bool,
        )

    def columns_of(self, units: Sequence[int] | np.ndarray) -> np.ndarray:
        """The columns of X that belong to some units, ascending."""
        return np.flatnonzero(np.isin(self.groups, units))


class _ColumnPart(NamedTuple):
    """One unit: its columns ``(N, d)``, and their names."""

    values: np.ndarray
    names: list[str]


def design(frame: pd.DataFrame, impute: str | None = None, keep: Collection[str] = ()) -> Design:
    """Turns the columns of a table into numbers.

    Numbers and truth values stay one column. A categorical column becomes one column per category,
    or a single one for two categories; beyond :data:`MAX_CATEGORIES` the rarest share a column.
    Dates become days since the first, month, weekday and hour, as far as these vary. Columns that
    are constant, empty, the same as an earlier one, free text, or a number or name of each row are
    left out, with a note.

    Args:
      frame: ``(N, columns)``.
      impute: ``'mean'`` or ``'median'`` of the training rows for missing numbers; each such unit
        gets a column that indicates where values were missing. A missing category is a category.
      keep: names of columns that are offered also if their numbers identify the rows.

    Raises:
      ConfigError: for another ``impute``.
      DataError: for missing numbers without ``impute``, infinite ones, repeated names, or if no
        column is left.
    """
    check_impute(impute)
    names = [str(name) for name in frame.columns]
    check_distinct_names(names)
    notes: list[Note] = []
    parts: list[_ColumnPart] = []
    units: list[str] = []
    seen: dict[bytes, str] = {}
    decimal = decimal_of_frame(frame)
    for name, (_, column) in zip(names, frame.items(), strict=True):
        part = _part(name, column, notes, decimal, impute is not None)
        if part is None:
            continue
        is_number = part.names == [name] and name not in keep
        if is_number and (label := row_label(name, part.values[:, 0])):
            notes.append(label)
            if label.kind in LEFT_OUT:
                continue
        content = part.values.tobytes()
        if content in seen:
            notes.append(Note(name, "duplicate", f"has the same values as {seen[content]!r}"))
            continue
        seen[content] = name
        parts.append(part)
        units.append(name)
    check_some_left(parts, notes)
    _check_missing(parts, units, impute)
    parts = [
        _with_indicator(part, unit, impute, notes) for part, unit in zip(parts, units, strict=True)
    ]
    return Design(
        X=np.concatenate([part.values for part in parts], axis=1),
        names=tuple(name for part in parts for name in part.names),
        groups=np.repeat(np.arange(len(parts)), [len(part.names) for part in parts]),
        units=tuple(units),
        notes=tuple(notes),
        impute=impute,
    )


def check_impute(impute: str | None) -> None:
    """ConfigError for a rule that there is not."""
    if impute not in (*RULES, None):
        advice = "or none (in Python None), which refuses missing numbers"
        raise ConfigError(f"impute={impute!r}: {nearest(str(impute), RULES)}; {advice}")


def check_distinct_names(names: Sequence[str]) -> None:
    """Raises DataError for repeated names of columns, and names that no file can hold."""
    for name in names:
        if any("\ud800" <= character <= "\udfff" for character in name):
            raise DataError(
                f"the column name {ascii(name)} holds half of a surrogate pair, which is not a "
                "character; rename the column"
            )
    repeated = sorted(name for name, count in Counter(names).items() if count > 1)
    if repeated:
        raise DataError(
            f"the table has column names more than once: {name_some(repeated)}; give every column "
            "its own name"
        )


def check_some_left(kept: Sized, notes: Sequence[Note]) -> None:
    """Raises DataError, with the reasons for the first columns, if none is kept."""
    if not len(kept):
        reasons = "; ".join(f"{note.column!r} {note.text}" for note in notes[:5])
        raise DataError(f"no column is left to choose from: {reasons or 'the table has none'}")


def design_of_array(X: np.ndarray, names: Sequence[str] | None, impute: str | None) -> Design:
    """:func:`design` of ``(N, D)`` numbers, whose columns are called x0, x1, ... without names."""
    names = [f"x{i}" for i in range(X.shape[1])] if names is None else list(names)
    return design(pd.DataFrame(X, columns=names), impute)


def _part(
    name: str, column: pd.Series, notes: list[Note], decimal: str | None, imputed: bool
) -> _ColumnPart | None:
    """The unit of a column, or ``None`` with a note that says why."""
    if not column.notna().any():
        notes.append(Note(name, "empty", "has no value at all"))
        return None
    typed, remarks = _typed(column, decimal)
    notes += [Note(name, kind, text) for kind, text in remarks]
    if not typed.notna().any():
        notes.append(Note(name, "empty", "has no value besides texts that stand for missing ones"))
        return None
    if is_bool_dtype(typed) or is_numeric_dtype(typed):
        return _number_part(name, typed, notes, imputed)
    if typed.nunique(dropna=False) < 2:
        notes.append(Note(name, "constant", _one_value_only(typed.iloc[0])))
        return None
    if is_datetime64_any_dtype(typed):
        return _date_part(name, column, typed, notes, imputed)
    return _category_part(name, typed, notes)


def _one_value_only(value: Any) -> str:
    return f"has one value only ({str(value)[:30]!r})"


def _typed(column: pd.Series, decimal: str | None) -> tuple[pd.Series, list[Remark]]:
    """A column as numbers, truth values, dates or text, and remarks on how it was read."""
    column = dense_column(column)
    if is_timedelta64_dtype(column):
        return days_of(column), [("number", "is a duration, taken as days")]
    if holds_numbers(column):
        return column, _rounded(column)
    if is_datetime64_any_dtype(column):
        return column, []
    return read_text(column, decimal)


def _rounded(column: pd.Series) -> list[Remark]:
    """A remark on whole numbers that become equal as float64."""
    if getattr(column.dtype, "kind", "O") not in "iu" or column.isna().all():
        return []
    if max(abs(float(column.max())), abs(float(column.min()))) <= _EXACT:
        return []
    lost = column.nunique() - column.astype(np.float64).nunique()
    if not lost:
        return []
    text = (
        f"holds whole numbers beyond 2^53, of which {lost} become equal to others as float64; if "
        "they are labels, drop the column or write them as text"
    )
    return [("precision", text)]


def _number_part(
    name: str, column: pd.Series, notes: list[Note], imputed: bool
) -> _ColumnPart | None:
    # Columns, and rows, are compared by their bytes: zeros of both signs become equal.
    values = column.to_numpy(dtype=np.float64, na_value=np.nan) + 0.0
    infinite = int(np.isinf(values).sum())
    if infinite:
        remedy = "value; replace it" if infinite == 1 else "values; replace them"
        raise DataError(
            f"column {name!r} has {infinite} infinite {remedy}, or leave the cells empty and "
            "choose how missing values are imputed (impute='median')"
        )
    known = values[~np.isnan(values)]
    if len(known) == len(values) and is_constant(known.min(), known.max(), known.dtype):
        notes.append(Note(name, "constant", _one_value_only(column.iloc[0])))
        return None
    for code in sentinels(values):
        as_missing = code.known and imputed
        advice = (
            "taken as missing (impute=None, or --impute=none, keeps it)"
            if as_missing
            else "if it stands for a missing value, leave these cells empty"
        )
        notes.append(Note(name, "sentinel", f"{code.remark}; {advice}"))
        if as_missing:
            values = np.where(np.isin(values, code.values), np.nan, values)
    return _ColumnPart(values[:, None], [name])


def row_label(name: str, values: np.ndarray) -> Note | None:
    """A note on the numbers ``(N,)`` of a column that identify the rows, or may do so.

    Its kind is ``'identifier'`` for consecutive numbers, and where the name says so and the values
    are evenly spaced, or of similar size and, unless the name is clear, ascending.
    """
    known = values[~np.isnan(values)]
    integral = bool(np.all(known == np.round(known)))
    if not integral or len(np.unique(known)) < len(values) or len(values) <= 2:
        return None
    if known.max() - known.min() == len(known) - 1:
        return Note(name, "identifier", "counts the rows")
    words = re.sub("(?<=[a-z])(?=[A-Z])", " ", name).lower()
    clear, text = _IDENTIFIER.search(words), "has a different whole number in every row"
    if not clear and not _RUNNING_NUMBER.search(words):
        return None
    steps, similar = np.diff(np.sort(known)), known.max() <= _SIMILAR * np.median(known)
    if steps.min() == steps.max() or (similar and (clear or (np.diff(known) > 0).all())):
        return Note(name, "identifier", text)
    return Note(name, "maybe identifier", f"{text}; if these only name the rows, drop the column")


def _category_part(name: str, column: pd.Series, notes: list[Note]) -> _ColumnPart | None:
    text = column.astype(object).where(column.notna(), MISSING).astype(str)
    count, rows = text.nunique(), len(text)
    unique = count == rows and rows > 2
    if unique or (count > _MANY_TEXTS and count > rows / 2):
        free = f"is free text: {count} different texts in {rows} rows"
        told = ("identifier", "has a different text in every row") if unique else ("text", free)
        notes.append(Note(name, *told))
        notes += [Note(name, "mixed", remark)] if (remark := numbers_among(text)) else []
        return None
    # Of one value and missing ones the column says where these are.
    drop = (
        [text[text != MISSING].iloc[0]] if count == 2 and (text == MISSING).any() else "if_binary"
    )
    encoder = OneHotEncoder(
        drop=drop, max_categories=MAX_CATEGORIES, sparse_output=False, dtype=np.float64
    )
    values = encoder.fit_transform(text.to_numpy().reshape(-1, 1))
    categories = [label.removeprefix("x0_") for label in encoder.get_feature_names_out()]
    names = [
        f"{name}={'(others)' if category == 'infrequent_sklearn' else category}"
        for category in categories
    ]
    rare = f", the {count - MAX_CATEGORIES + 1} rarest together" if count > MAX_CATEGORIES else ""
    notes.append(Note(name, "category", f"has {count} categories{rare}"))
    return _ColumnPart(values, names)


def _date_part(
    name: str, column: pd.Series, typed: pd.Series, notes: list[Note], imputed: bool
) -> _ColumnPart:
    """Days between dates in UTC, and month, weekday and hour of the local clock."""
    utc = pd.to_datetime(typed, utc=True)
    dates = local_clock(utc, column)
    if imputed:
        dates, remark = without_sentinel_dates(dates)
        utc = utc.where(dates.notna())
        if remark:
            notes.append(Note(name, "sentinel", remark))
    parts = {
        "days": (utc - utc.min()).dt.total_seconds() / 86400,
        "month": dates.dt.month,
        "weekday": dates.dt.day_of_week,
        "hour": dates.dt.hour,
    }
    # With a single date and missing ones, the days are all 0, beside the indicator of missing ones.
    kept = {kind: values for kind, values in parts.items() if values.nunique() > 1} or {
        "days": parts["days"]
    }
    notes.append(
        Note(name, "date", f"is a date from {dates.min().date()} to {dates.max().date()}, taken as "
             + ", ".join(kept))
    )  # fmt: skip
    values = [part.to_numpy(np.float64, na_value=np.nan) for part in kept.values()]
    return _ColumnPart(np.stack(values, axis=1), [f"{name}: {kind}" for kind in kept])


def _check_missing(parts: Sequence[_ColumnPart], units: Sequence[str], impute: str | None) -> None:
    """Raises DataError for missing numbers if ``impute`` is not given."""
    counts = [int(np.isnan(part.values[:, 0]).sum()) for part in parts]
    if impute is not None or not any(counts):
        return
    incomplete = [unit for unit, count in zip(units, counts, strict=True) if count]
    raise DataError(
        f"{sum(counts)} values are missing in {len(incomplete)} of {len(units)} columns: "
        f"{name_some(incomplete)}; choose how they are imputed (impute='median', on the command "
        "line --impute=median), or drop these columns or rows"
    )


def _with_indicator(
    part: _ColumnPart, unit: str, impute: str | None, notes: list[Note]
) -> _ColumnPart:
    missing = np.isnan(part.values).any(axis=1)
    if not missing.any():
        return part
    count = int(missing.sum())
    text = f"has {count} of {len(missing)} values missing, replaced by the training rows' {impute}"
    notes.append(Note(unit, "missing", text))
    return _ColumnPart(
        np.column_stack([part.values, missing.astype(np.float64)]), [*part.names, _indicator(unit)]
    )


def _indicator(unit: str) -> str:
    """Name of the column that indicates where values of a unit were missing."""
    return f"{unit} missing"
