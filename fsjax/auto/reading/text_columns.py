"""Columns of text that hold numbers, dates, durations or categories, and how they are read."""

from __future__ import annotations

import pandas as pd

from fsjax.auto.reading.pandas_columns import dense_column, holds_numbers
from fsjax.auto.reading.written_dates import MIN_DATE_SHARE, read_dates, read_durations
from fsjax.auto.reading.written_numbers import MISSING, decimal_of, read_numbers
from fsjax.data import one_spelling
from fsjax.errors import name_some

#: Kind of a note (:data:`fsjax.auto.reading.notes.LEVELS`), and its text.
Remark = tuple[str, str]

#: Key of ``DataFrame.attrs`` under which the reader of a file puts its decimal mark.
_DECIMAL = "decimal"

#: Rows of each column in which decimal commas are looked for.
_ROWS = 2000

#: The least share of numbers in free text that is worth a remark.
_WORTH_SAYING = 0.25

#: Numbers of free text with a unit, times of day, and the least share of either that is named.
_NUMBER_AND_UNIT = r"^[+-]?\d[\d.,]*\s*([^\d\s][^\d]*)$"
_TIME_OF_DAY = r"\d{1,2}:\d{2}(?::\d{2})?(?:\s*[AaPp]\.?[Mm]\.?)?"
_NEARLY_ALL = 0.9


def decimal_of_frame(frame: pd.DataFrame) -> str | None:
    """The decimal mark of the file, or a comma if any column has decimal commas, or ``None``."""
    if _DECIMAL in frame.attrs:
        return str(frame.attrs[_DECIMAL])
    texts = (column for _, column in frame.items() if _may_hold_text(column))
    return decimal_of(_known(_stripped(column.head(_ROWS))) for column in texts)


def read_text(column: pd.Series, decimal: str | None) -> tuple[pd.Series, list[Remark]]:
    """Text that holds numbers, dates or durations as such, and remarks.

    Args:
      decimal: mark of the rest of the table, or ``None``.
    """
    if isinstance(column.dtype, pd.CategoricalDtype) and holds_numbers(
        column.cat.categories.to_series()
    ):
        return column.astype(str).where(column.notna(), None), []
    text = _stripped(column)
    distinct = _known(text)
    known = text[text.isin(distinct)]
    missing = int(text.notna().sum() - len(known))
    if not len(distinct):
        return text.where(text != "", None), []
    remarks: list[Remark] = []
    values: pd.Series | None = None
    numbers = read_numbers(distinct, decimal)
    if numbers is not None:
        values = numbers.values
        remarks = [("number", numbers.remark), ("notation", numbers.warning)]
        if missing:
            shown = name_some(text[text.notna() & ~text.isin(distinct)].unique().tolist())
            words = f"has {missing} texts such as {shown} among its numbers, taken as missing"
            remarks.append(("number", words))
    elif (dates := read_dates(distinct)) is not None:
        values, remarks = dates.values, [("date", dates.remark)]
    elif (durations := read_durations(distinct)) is not None:
        values, remarks = durations, [("number", "is a duration, taken as days")]
    if values is None:
        return _categories(column)
    # Each distinct text was read once.
    read = known.map(pd.Series(values.to_numpy(), index=distinct))
    unread = int(read.isna().sum())
    if numbers is not None and unread:
        remarks[1] = ("notation", f"{numbers.warning} in {unread} of {len(column)} rows")
    elif numbers is None:
        if unread > (1 - MIN_DATE_SHARE) * len(known):
            return _categories(column)
        if unread:
            remarks.append(("date", f"has {unread} texts that are not dates, taken as missing"))
    return read.reindex(column.index), [remark for remark in remarks if remark[1]]


def numbers_among(texts: pd.Series) -> str:
    """A remark on numbers in a column of free text that is left out, or an empty one."""
    distinct = texts.drop_duplicates()
    units = distinct.str.extract(_NUMBER_AND_UNIT)[0].value_counts() / len(distinct)
    if len(units) and units.iloc[0] >= _NEARLY_ALL:
        advice = "write the numbers alone, all in one unit"
        return f"looks like numbers with a unit ({units.index[0]!r}), and is left out; {advice}"
    if distinct.str.fullmatch(_TIME_OF_DAY).mean() >= _NEARLY_ALL:
        return "looks like times of day, and is left out; write them as numbers, such as hours"
    numbers = pd.to_numeric(distinct, errors="coerce").notna()
    if numbers.mean() < _WORTH_SAYING:
        return ""
    others = distinct[~numbers].tolist()
    return (
        f"has {int(numbers.sum())} numbers and {len(others)} other texts ({name_some(others)}) "
        "among its different values, and is left out; replace these texts by numbers or empty cells"
    )


def _may_hold_text(column: pd.Series) -> bool:
    return (
        pd.api.types.is_object_dtype(column)
        or pd.api.types.is_string_dtype(column)
        or isinstance(column.dtype, pd.CategoricalDtype)
    )


def _stripped(column: pd.Series) -> pd.Series:
    column = dense_column(column)
    return _as_text(column).str.strip().where(column.notna(), None)


def _as_text(column: pd.Series) -> pd.Series:
    """A column as text; lone surrogates, which cannot be written to any file, become U+FFFD."""
    try:
        return column.astype(str)
    except UnicodeEncodeError:
        texts = [
            str(value).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
            for value in column
        ]
        return pd.Series(texts, index=column.index)


def _known(text: pd.Series) -> pd.Series:
    """The different texts that do not stand for a missing value."""
    return text[text.notna() & ~text.str.lower().isin(MISSING)].drop_duplicates()


def _categories(column: pd.Series) -> tuple[pd.Series, list[Remark]]:
    """Categories in one spelling, missing where a cell is blank."""
    text = _as_text(column)
    spelling = one_spelling(text.where(column.notna() & (text.str.strip() != ""), None))
    remarks = [("spelling", text) for text in (spelling.merged, spelling.case) if text]
    return spelling.texts, remarks
