"""Rows of a table that are not data: units, the column names again, a total at the end."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd

from fsjax.errors import name_some
from fsjax.tables.readers.decimal_commas import numbers_with_commas

_TOTAL = re.compile(
    r"(grand |sub)?(total|sum|mean|average|summe|gesamt|insgesamt|mittelwert|somme|moyenne|suma|"
    r"totaal|totale|media)s?:?",
    re.IGNORECASE,
)

#: Fewest rows of a table in which stray rows are looked for.
_MIN_ROWS = 4


def without_stray_rows(
    frame: pd.DataFrame, decimal: str = "."
) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """The frame without such rows, its columns as numbers where only they were text, and remarks.

    Args:
      frame: ``(N, columns)`` as read from a file, with text where a column is not all numbers.
      decimal: mark of numbers in text.
    """
    text = [place for place in range(frame.shape[1]) if _holds_text(frame.iloc[:, place])]
    if not text or len(frame) < _MIN_ROWS:
        return frame, ()
    cells = {place: frame.iloc[:, place].astype(object) for place in text}
    remarks, stray = [], np.zeros(len(frame), bool)
    repeated = np.logical_and.reduce(
        [cells[place].astype(str).str.strip() == str(frame.columns[place]) for place in text]
    ) & (len(text) == frame.shape[1])
    if repeated.any():
        stray |= repeated
        remarks.append(f"it has its column names again in {_rows(repeated)}, which are left out")
    if not stray[0] and (units := _units(frame, cells, stray, decimal)):
        stray[0] = True
        remarks.append(f"the row below its column names holds units ({units}) and is left out")
    if not stray[-1] and (remark := next(filter(None, map(total_in, cells.values())), "")):
        stray[-1] = True
        remarks.append(remark)
    if not stray.any():
        return frame, ()
    rest = frame[~stray].reset_index(drop=True)
    for place in text:
        numbers = _numbers(rest.iloc[:, place], decimal)
        if numbers is not None:
            rest.isetitem(place, numbers)
    return rest, tuple(remarks)


def _holds_text(column: pd.Series) -> bool:
    return pd.api.types.is_object_dtype(column) or pd.api.types.is_string_dtype(column)


def _rows(marked: np.ndarray) -> str:
    count = int(marked.sum())
    return f"{count} row{'s' * (count != 1)} (first: row {int(marked.argmax())}, counted from 0)"


def _numbers(column: pd.Series, decimal: str) -> pd.Series | None:
    """The numbers of a column without other texts, or ``None``."""
    if decimal == ",":
        return numbers_with_commas(column)
    numbers = pd.to_numeric(column.astype(object), errors="coerce")
    return numbers if column.notna().any() and numbers.notna().eq(column.notna()).all() else None


def _units(
    frame: pd.DataFrame, cells: dict[int, pd.Series], stray: np.ndarray, decimal: str
) -> str:
    """Units in the first row, or empty: its cells are no numbers where all others are."""
    first = frame.iloc[0]
    if any(pd.notna(first.iloc[place]) for place in range(frame.shape[1]) if place not in cells):
        return ""
    later = np.flatnonzero(~stray)[1:]
    units = []
    for column in cells.values():
        if pd.isna(column.iloc[0]):
            continue
        if _numbers(column.iloc[:1], decimal) is not None:
            return ""
        rest = column.iloc[later]
        # The last row may be a total.
        if _numbers(rest, decimal) is not None or _numbers(rest.iloc[:-1], decimal) is not None:
            units.append(str(column.iloc[0]))
    return name_some(units) if units else ""


def total_in(column: pd.Series) -> str:
    """The remark on a total that only the last row ``(N,)`` of a column has, or empty."""
    word = column.iloc[-1]
    if len(column) < _MIN_ROWS or not isinstance(word, str) or not _TOTAL.fullmatch(word.strip()):
        return ""
    others = column.iloc[:-1].astype(str).str.strip()
    repeated = (others == word.strip()).any()
    return "" if repeated else f"its last row holds a total ({word.strip()!r}) and is left out"
