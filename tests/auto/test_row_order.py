"""The order of rows by times, and groups of rows."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from bad_calls import bad_calls, refuses

from fsjax.auto.reading.flag_inputs import row_groups, row_order

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


@bad_calls(
    (row_order, [1.0, np.nan, 2.0], "'t' has no value in 1 of 3 rows ", "row 1"),
    (row_order, ["2024-01-01", " ", None], "'t' has no value in 2 of 3 rows"),
    (row_order, ["early", "late", "later"], "neither numbers nor dates ", "'early'"),
    (row_order, [True, False, True], "true and false"),
    (row_order, ["2024-01-01"] * 39 + ["soon"], "1 of 40 values", "'soon' in row 39"),
    (row_groups, ["b", None, "a", ""], "groups: column 't' has no value in 2 of 4 rows"),
    (row_groups, ["b", "  ", "a", np.nan], "groups: column 't' has no value in 2 of 4 rows"),
)
def test_bad_calls(bad: tuple) -> None:
    refuses(lambda: bad[0]("t", pd.Series(bad[1])), *bad[2:])


def test_groups_are_numbered() -> None:
    np.testing.assert_array_equal(row_groups("g", pd.Series(["b", "a", "b"])), [0, 1, 0])
