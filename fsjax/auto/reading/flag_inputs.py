"""What flags of ``fsjax select`` name: ``--order``, ``--groups``, ``--weights``, ``--costs``."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from pandas.api.types import is_bool_dtype, is_datetime64_any_dtype, is_timedelta64_dtype

from fsjax import ConfigError, DataError
from fsjax.auto.reading.pandas_columns import holds_numbers
from fsjax.auto.reading.written_dates import read_dates, read_durations
from fsjax.auto.reading.written_numbers import read_numbers

#: Columns of a file of costs.
HEADER = ["column", "cost"]


class RowOrder(NamedTuple):
    """The rows from the earliest to the latest.

    Attributes:
      rows: ``(N,)`` numbers of rows; ties keep their order.
      remark: how the times were read, if that was ambiguous; otherwise empty.
    """

    rows: np.ndarray
    remark: str


def row_order(name: str, column: pd.Series) -> RowOrder:
    """The rows in order of their times: numbers, dates or durations, also written as text.

    Args:
      column: ``(N,)``.

    Raises:
      DataError: for rows without a value, and values that are neither numbers nor dates.
    """
    _check_complete(name, column, "order", "their place in the order is unknown")
    if is_bool_dtype(column):
        raise DataError(
            f"order: column {name!r} holds true and false; name a column of numbers or dates"
        )
    times, remark = column, ""
    has_times = is_datetime64_any_dtype(column) or is_timedelta64_dtype(column)
    if not (has_times or holds_numbers(column)):
        times, remark = _read_times(name, column.astype(str).str.strip())
    return RowOrder(np.argsort(times.to_numpy(), kind="stable"), remark)


def row_groups(name: str, column: pd.Series) -> np.ndarray:
    """``(N,)`` the number of each row's group.

    Args:
      column: ``(N,)`` labels of any kind.

    Raises:
      DataError: for rows without a label, which would become one group.
    """
    _check_complete(name, column, "groups", "rows without a label would become one group")
    return pd.factorize(column)[0]


def row_weights(name: str, column: pd.Series) -> np.ndarray:
    """``(N,)`` the weight of each row.

    Args:
      column: ``(N,)`` numbers, at least 0.

    Raises:
      DataError: for rows without a weight, and for values that are not numbers of at least 0.
    """
    _check_complete(name, column, "weights", "its weight is unknown")
    numbers = column if holds_numbers(column) else None
    if numbers is None and (read := read_numbers(column.astype(str).str.strip())) is not None:
        numbers = read.values
    if numbers is None:
        raise DataError(
            f"weights: column {name!r} holds no numbers (such as {column.iloc[0]!r}); name a "
            "column of numbers of at least 0"
        )
    return numbers.to_numpy(np.float64)


def column_costs(path: Path, frame: pd.DataFrame) -> dict[str, float]:
    """The cost of each column that a table of costs names.

    Args:
      path: of the table, for messages.
      frame: the table.

    Raises:
      ConfigError: if it has other columns, names a column twice, or has a cost that is not a number
        above 0.
    """
    if list(frame.columns) != HEADER:
        raise ConfigError(
            f"costs: {path} has the columns {list(frame.columns)}; give two, called column and cost"
        )
    names = frame["column"].astype(str)
    if names.duplicated().any():
        raise ConfigError(f"costs: {path} names {names[names.duplicated()].iloc[0]!r} twice")
    costs = frame["cost"].to_numpy(np.float64) if holds_numbers(frame["cost"]) else None
    if costs is None or not (np.isfinite(costs) & (costs > 0)).all():
        raise ConfigError(f"costs: {path} has a cost that is not a number above 0; correct it")
    return dict(zip(names.tolist(), costs.tolist(), strict=True))


def _read_times(name: str, texts: pd.Series) -> tuple[pd.Series, str]:
    numbers = read_numbers(texts)
    if numbers is not None and numbers.values.notna().all():
        return numbers.values, "; ".join(filter(None, [numbers.remark, numbers.warning]))
    dates = read_dates(texts)
    if dates is not None:
        unread = texts[dates.values.isna()]
        if len(unread):
            raise DataError(
                f"order: column {name!r} has {len(unread)} of {len(texts)} values that are not "
                f"dates (first: {unread.iloc[0]!r} in row {unread.index[0]}, counted from 0); "
                "correct them, or drop these rows"
            )
        return dates.values, dates.remark
    durations = read_durations(texts)
    if durations is not None:
        return durations, ""
    raise DataError(
        f"order: column {name!r} holds neither numbers nor dates (such as {texts.iloc[0]!r}); "
        "write dates as YYYY-MM-DD"
    )


def _check_complete(name: str, column: pd.Series, what: str, why: str) -> None:
    missing = (column.isna() | (column.astype(str).str.strip() == "")).to_numpy()
    if missing.any():
        raise DataError(
            f"{what}: column {name!r} has no value in {int(missing.sum())} of {len(column)} rows "
            f"(first: row {int(missing.argmax())}, counted from 0), and {why}; fill them in, or "
            "drop these rows"
        )
