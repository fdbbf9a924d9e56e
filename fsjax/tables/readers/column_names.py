"""Checks of the line of column names, and columns without a name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pandas as pd

from fsjax.errors import DataError, name_some


def without_nameless_columns(frame: pd.DataFrame, start: int = 0) -> pd.DataFrame:
    """The frame without nameless columns that only count the rows, or have no values.

    Args:
      start: number of rows before them.

    Raises:
      DataError: for a nameless column with other values.
    """
    kept = []
    for place, name in enumerate(frame.columns):
        column = frame.iloc[:, place]
        if name == "" and (column.isna().all() or (place == 0 and _counts_rows(column, start))):
            continue
        kept.append(place)
    nameless = [place for place in kept if frame.columns[place] == ""]
    if nameless:
        raise DataError(
            f"column {nameless[0] + 1} (the first is 1) has values but no name; the first line "
            "has to give every column its own name"
        )
    return frame.iloc[:, kept]


def _counts_rows(column: pd.Series, start: int) -> bool:
    """Whether a column counts the rows from 0 or from 1, where ``start`` rows are before it."""
    if not len(column) or column.dtype.kind not in "iu":
        return False
    values = column.to_numpy()
    counts = values[0] + np.arange(len(values))
    return bool(values[0] - start in (0, 1) and np.array_equal(values, counts))


def check_header(header: Sequence[str]) -> None:
    """DataError for column names that are numbers, and for repeated ones."""
    named = [name for name in header if name]
    repeated = [name for name, count in Counter(named).items() if count > 1]
    if _all_numbers(header) and (repeated or not all(name.isdigit() for name in header)):
        raise DataError(
            f"the first line holds numbers ({name_some(header)}); add a first line with column "
            "names"
        )
    if repeated:
        raise DataError(
            f"it has column names more than once: {name_some(repeated)}; give every column its own "
            "name"
        )


def doubts_about(header: Sequence[str]) -> tuple[str, ...]:
    """A sentence if the names, whole numbers in no order, may be a row of a table without names."""
    numbers = [int(name) for name in header if name.isdecimal()]
    if len(numbers) < len(header) or numbers == sorted(numbers):
        return ()
    return (
        f"its first line holds numbers ({name_some(header)}), which are read as column names; if "
        "they are a row, add a first line with column names",
    )


def _all_numbers(header: Sequence[str]) -> bool:
    try:
        return bool([float(name) for name in header])
    except ValueError:
        return False
