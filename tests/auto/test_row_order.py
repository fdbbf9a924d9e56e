"""The order of rows by times, and groups of rows."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from fsjax.auto.reading.flag_inputs import row_groups, row_order
from fsjax.errors import DataError

DAYS = pd.date_range("2023-11-20", periods=60, freq="3D")


@pytest.mark.parametrize(
    "written",
    [
        DAYS.strftime("%d.%m.%Y"),
        DAYS.strftime("%m/%d/%Y"),
        DAYS.strftime("%d/%m/%y"),
        DAYS.strftime("%Y-%m-%d %H:%M:%S"),
        DAYS.strftime("%d %b %Y"),
        DAYS,
        pd.Index([f"{number}" for number in range(60)]),
        pd.Index([f"{number},5" for number in range(60)]),
        pd.Index([f"{number} days" for number in range(60)]),
        pd.to_timedelta(np.arange(60), unit="h"),
        pd.Index(np.arange(60) - 7.5),
    ],
)
def test_times_are_ordered_as_times(written: pd.Index) -> None:
    shuffled = np.random.default_rng(0).permutation(60)
    order = row_order("day", pd.Series(written[shuffled]))
    np.testing.assert_array_equal(shuffled[order.rows], np.arange(60))


def test_open_dates_are_said_and_ties_keep_their_order() -> None:
    order = row_order("day", pd.Series(["2/3/2024", "3/2/2024", "2/3/2024"]))
    np.testing.assert_array_equal(order.rows, [0, 2, 1])
    assert "'2/3/2024' in which the day is ambiguous; taken as month, day, year" in order.remark
    assert row_order("day", pd.Series(["2024-03-02", "2024-03-01"])).remark == ""


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([1.0, np.nan, 2.0], "'t' has no value in 1 of 3 rows .first: row 1"),
        (["2024-01-01", " ", None], "'t' has no value in 2 of 3 rows"),
        (["early", "late", "later"], "neither numbers nor dates .such as 'early'"),
        ([True, False, True], "true and false"),
        (
            ["2024-01-01"] * 39 + ["soon"],
            "1 of 40 values .* .first: 'soon' in row 39",
        ),
    ],
)
def test_rows_whose_time_is_unknown_are_refused(values: list, message: str) -> None:
    with pytest.raises(DataError, match=message):
        row_order("t", pd.Series(values))


def test_rows_without_a_group_are_refused() -> None:
    np.testing.assert_array_equal(row_groups("g", pd.Series(["b", "a", "b"])), [0, 1, 0])
    for gap in (None, "", "  ", np.nan):
        with pytest.raises(DataError, match="groups: column 'g' has no value in 2 of 4 rows"):
            row_groups("g", pd.Series(["b", gap, "a", gap]))
