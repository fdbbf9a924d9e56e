"""Numbers, dates and durations as people write them, codes for missing values, tiny variation.

Covers ``fsjax.auto.reading.columns``, ``fsjax.auto.reading.written_dates``,
``fsjax.auto.reading.written_numbers``, ``fsjax.auto.reading.pandas_columns``.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from fsjax.auto.certainty.leaks import leaks
from fsjax.auto.contest.rankers.parts import standardise
from fsjax.auto.reading.columns import Design, design, design_of_array
from fsjax.tables.checks import constant_columns

ROWS = 60


def notes_of(result: Design, name: str) -> str:
    return "; ".join(note.text for note in result.notes if note.column == name)


def column(values: list | np.ndarray | pd.Index, impute: str | None = None) -> Design:
    """The design of a column, beside another one."""
    frame = pd.DataFrame({"other": np.random.default_rng(1).normal(size=len(values))})
    frame["c"] = values
    return design(frame, impute)


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("€{},5", 7.5),
        ("$1,{:03d}.25", 1007.25),
        ("{}%", 7.0),
        ("1.0{:02d},5", 1007.5),
        ("-{} kg", None),
        ("(1,0{:02d})", -1007.0),
    ],
)
def test_numbers_with_units(written: str, value: float | None) -> None:
    result = column([written.format(number % 30) for number in range(ROWS)])
    if value is None:
        assert "categories" in notes_of(result, "c")
        return
    assert result.X[7, 1] == value and result.names == ("other", "c")
    assert f"has numbers such as {written.format(0)!r}" in notes_of(result, "c")


def test_plain_numbers_as_text_need_no_note_and_mixed_units_are_categories() -> None:
    assert notes_of(column([str(number % 30) for number in range(ROWS)]), "c") == ""
    assert "categories" in notes_of(column([f"{'$€'[n % 2]}{n % 9}" for n in range(ROWS)]), "c")


def days(start: str, periods: int = ROWS) -> pd.DatetimeIndex:
    return pd.date_range(start, periods=periods, freq="D")


@pytest.mark.parametrize(
    ("written", "form", "note"),
    [
        (days("2024-01-01"), "%d/%m/%Y", ""),
        (days("2024-01-01"), "%m/%d/%Y", ""),
        (days("2024-01-01", 10), "%m/%d/%Y", "taken as month, day, year"),
        (days("2024-01-01", 10), "%d.%m.%Y", "taken as day, month, year"),
        (days("2024-01-01"), "%d-%m-%y", ""),
    ],
)
def test_which_part_of_a_date_is_the_day(written: pd.DatetimeIndex, form: str, note: str) -> None:
    result = column(written.strftime(form))
    np.testing.assert_array_equal(result.X[:, 1], np.arange(len(written)))
    assert result.names[1] == "c: days"
    assert ("the day is ambiguous" in notes_of(result, "c")) is bool(note)
    assert note in notes_of(result, "c")


def test_one_day_above_12_settles_which_part_is_the_day() -> None:
    result = column([*(f"{day:02d}/03/2024" for day in range(1, 13)), "13/03/2024"] * 4)
    assert result.names[1] == "c: days" and notes_of(result, "c").startswith(
        "is a date from 2024-03"
    )
    np.testing.assert_array_equal(result.X[:13, 1], np.arange(13))


@pytest.mark.parametrize("form", ["%m/%d/%Y", "%Y-%m-%d", "%b %d, %Y"])
@pytest.mark.parametrize("clock", ["%I:%M:%S %p", " %I:%M%p", "%H:%M"])
def test_the_time_of_the_day(form: str, clock: str) -> None:
    written = pd.date_range("2024-01-02", periods=ROWS, freq="6h")
    result = column(written.strftime(f"{form} {clock}"))
    np.testing.assert_array_equal(result.X[:, 1], np.arange(ROWS) / 4)
    np.testing.assert_array_equal(result.X[:, result.names.index("c: hour")], written.hour)


local = pd.Series(pd.date_range("2024-03-08 23:30", periods=ROWS, freq="h", tz="America/New_York"))


@pytest.mark.parametrize("values", [local, local.astype(str), local.map(pd.Timestamp.isoformat)])
def test_parts_of_a_date_are_those_of_the_local_clock(values: pd.Series) -> None:
    result = column(values)
    assert result.names[1:] == ("c: days", "c: weekday", "c: hour")
    np.testing.assert_array_equal(result.X[:, 1], np.arange(ROWS) / 24)
    clock = np.column_stack([local.dt.day_of_week, local.dt.hour])
    np.testing.assert_array_equal(result.X[:, 2:], clock)
    assert "is a date from 2024-03-08 to 2024-03-11" in notes_of(result, "c")


def test_texts_that_are_no_dates_are_counted() -> None:
    written = [*days("2024-01-01", 59).strftime("%Y-%m-%d"), "soon"]
    result = column(written, impute="median")
    assert "has 1 texts that are not dates, taken as missing" in notes_of(result, "c")


def test_one_date_and_gaps() -> None:
    result = column(np.resize(["2024-01-01", None], ROWS), impute="median")
    assert result.names == ("other", "c: days", "c missing")
    np.testing.assert_array_equal(result.X[:4, 2], [0, 1, 0, 1])


@pytest.mark.parametrize(
    "values",
    [
        pd.to_timedelta(12 * np.arange(ROWS), unit="h"),
        pd.Index([f"{number // 2} days {12 * (number % 2):02d}:00:00" for number in range(ROWS)]),
    ],
)
def test_durations_become_days(values: pd.Index) -> None:
    result = column(values)
    np.testing.assert_array_equal(result.X[:, 1], np.arange(ROWS) / 2)
    assert "is a duration, taken as days" in notes_of(result, "c")


@pytest.mark.parametrize(
    ("code", "told"),
    [
        (-999.0, "has -999 in 6 of 60 rows"),
        (9.969209968386869e36, "has 9.96921e+36 in 6 of 60 rows"),
        (-12345.0, "has -12345 in 6 of 60 rows"),
        (3.0, ""),
    ],
)
def test_codes_for_missing_values_are_named_and_kept(code: float, told: str) -> None:
    values = np.random.default_rng(0).normal(size=ROWS)
    values[:6] = code
    result = column(values)
    assert told in notes_of(result, "c") and bool(notes_of(result, "c")) is bool(told)
    np.testing.assert_array_equal(result.X[:, 1], values)


def test_one_far_value_is_no_code() -> None:
    values = np.random.default_rng(0).normal(size=ROWS)
    values[0] = -999
    assert notes_of(column(values), "c") == ""


@pytest.mark.parametrize(
    "scaled",
    [
        lambda v: 1e13 + v,
        lambda v: 1e-200 * v,
        lambda v: 1e200 * v,
        lambda v: 1e-310 * v,
        lambda v: 1.7e18 + 1e9 * np.round(v, 3),
        lambda v: 1e300 * v,
    ],
)
def test_what_varies_around_a_large_number_or_little_is_not_constant(scaled) -> None:
    y = np.resize([0, 1], ROWS)
    plain = np.random.default_rng(0).normal(size=ROWS) + 9 * y
    X = np.column_stack([scaled(plain), plain])
    result = design_of_array(X, ("extreme", "plain"), None)
    assert result.units == ("extreme", "plain") and not constant_columns(X).any()
    (z,) = standardise(result.X)
    np.testing.assert_allclose(z[:, 0], z[:, 1], atol=0.02)
    assert [note.column for note in leaks(result, y, "classification")] == ["extreme", "plain"]


def test_what_rounding_makes_vary_is_constant_for_all() -> None:
    X = np.column_stack([np.resize([0.1 + 0.2, 0.3], ROWS), np.arange(ROWS) ** 2.0])
    assert constant_columns(X).tolist() == [True, False]
    assert design_of_array(X, ("same", "b"), None).units == ("b",)
    (z,) = standardise(X)
    assert not z[:, 0].any()
