"""Numbers beside other texts, limits, spellings, sentinel dates and codes in columns of text.

Covers ``fsjax.auto.reading.missing_codes``, ``fsjax.auto.reading.text_columns``,
``fsjax.tables.readers.spelling``.
"""

from __future__ import annotations

import datetime

import numpy as np
import pandas as pd
import pytest

from fsjax.auto.reading.columns import Design, design
from fsjax.auto.reading.target import read_target
from fsjax.errors import DataError
from fsjax.tasks.targets import read_classes

ROWS = 60


def read(values: object, **others: object) -> Design:
    """The design of a column c, beside another one of numbers."""
    other = np.random.default_rng(1).normal(size=len(values))
    return design(pd.DataFrame({"other": other, "c": values, **others}), "median")


def column(result: Design) -> list[float]:
    return result.X[:, result.names.index("c")].tolist()


def notes(result: Design, kind: str) -> str:
    return "; ".join(note.text for note in result.notes if note.kind == kind and note.column == "c")


def numbers(*others: str) -> list[str]:
    """60 different numbers, of which the first are replaced."""
    return [*others, *(f"{value / 8 + 1:.3f}" for value in range(len(others), ROWS))]


def test_other_texts_in_a_column_of_numbers_are_missing_and_named() -> None:
    result = read(
        numbers("hello", "world", "#DIV/0!", "k.A.", "\\N", "n.d.", "--", "12 EUR", "1'234")
    )
    values = column(result)
    assert np.isnan(values[:7]).all() and values[7:10] == [12, 1234, 2.125]
    warning = notes(result, "notation")
    assert (
        "other texts among its numbers ('hello', 'world'), taken as missing in 2 of 60" in warning
    )
    assert "has 5 texts such as '#DIV/0!', 'k.A.'" in notes(result, "number")
    assert "warning" in {note.level for note in result.notes if note.kind == "notation"}


def test_values_beyond_a_limit() -> None:
    result = read(numbers("<0.5", "< 0.2", "\u22640.1", ">100", ">=50", "<1,000.5"))
    assert column(result)[:6] == [0.25, 0.1, 0.05, 100, 50, 500.25]
    assert "half the limit for <, and as the limit for >" in notes(result, "notation")
    limits_only = read(np.resize(["<18", ">65", "18-65"], ROWS))
    assert "3 categories" in notes(limits_only, "category")


@pytest.mark.parametrize(
    "codes",
    [
        ["A1", "12", "B7", "13"],
        ["36", "37", "38", "L", "M", "S"],
        ["1", "2", "3", "x"],
        ["0", "1", "2", "3+"],
        [f"{'ST' * (i % 3 == 0)}{i}" for i in range(20)],
    ],
)
def test_mixtures_stay_categories(codes: list[str]) -> None:
    assert f"{len(codes)} categories" in notes(read(np.resize(codes, ROWS)), "category")


def test_numbers_in_free_text_are_counted() -> None:
    result = read([f"{'T' * (i % 3 == 0)}{max(i, 1)}" for i in range(ROWS)])
    assert result.units == ("other",)
    assert "has 40 numbers and 20 other texts ('T1', 'T3'" in notes(result, "mixed")
    texts = ["unknown", *(f"{40.5 + i} kg" for i in range(ROWS - 1))]
    assert "looks like numbers with a unit ('kg'), and is left out" in notes(read(texts), "mixed")
    texts = [f"{i % 24}:{i % 60:02d}" for i in range(ROWS)]
    assert "looks like times of day" in notes(read(texts), "mixed")
    texts = [f"{i} {'kg' * (1 + i % 3)}" for i in range(ROWS)]
    assert not notes(read(texts), "mixed")


@pytest.mark.parametrize(
    ("written", "values"),
    [
        (["2.551", "809"], [2.551, 809]),
        (["0,572", "809"], [0.572, 809]),
        (["0,572", "6,437"], [0.572, 6.437]),
        (["1.234.567", "2.551"], [1234567, 2551]),
        (["1,234,567", "6,437"], [1234567, 6437]),
        (["1'234", "-1\u2019000"], [1234, -1000]),
        (["12\u202f345", "1\u00a0000"], [12345, 1000]),
        (["1,23,456", "12,34,567"], [123456, 1234567]),
        (["(12)", "13-"], [-12, -13]),
        (["CHF 1'234.50", "7 CHF"], [1234.5, 7]),
        (["\u0663\u066b\u0665", "\uff11\uff12"], [3.5, 12]),
        (["1.5", "2,75", "3.25"], [1.5, 2.75, 3.25]),
    ],
)
def test_notations(written: list[str], values: list[float]) -> None:
    assert column(read(np.resize(written, ROWS)))[: len(values)] == values


def test_a_comma_among_whole_numbers_is_said_loudly() -> None:
    result = read(np.resize(["6,437", "809"], ROWS))
    assert column(result)[:2] == [6437, 809]
    assert "'6,437', taken as 6437 with a comma of thousands" in notes(result, "notation")


def test_decimal_commas_of_one_column_hold_for_all() -> None:
    commas = np.resize(["1,5", "0,2", "3,1"], ROWS)
    assert column(read(np.resize(["2.551", "809"], ROWS), d=commas))[:2] == [2551, 809]
    result = read(np.resize(["6,437", "809"], ROWS), d=commas)
    assert column(result)[:2] == [6.437, 809] and not notes(result, "notation")
    # A point that cannot be a thousands mark is a decimal point.
    assert column(read(np.resize(["0.572", "2.551"], ROWS), d=commas))[:2] == [0.572, 2.551]


DATES = [str(day.date()) for day in pd.date_range("2024-01-01", periods=55)]


@pytest.mark.parametrize("date", ["9999-12-31", "1900-01-01", "0001-01-01", "2099-12-31"])
@pytest.mark.parametrize(
    "kind",
    [
        str,
        datetime.date.fromisoformat,
        datetime.datetime.fromisoformat,
        lambda text: "{2}.{1}.{0}".format(*text.split("-")),
    ],
)
def test_sentinel_dates_are_missing(date: str, kind: object) -> None:
    result = read(pd.Series([kind(text) for text in [date] * 5 + DATES], dtype=object))
    days = result.X[:, result.names.index("c: days")]
    assert np.isnan(days[:5]).all() and days[5:].tolist() == list(range(55))
    assert f"has {date} in 5 of 60 rows, far from all other values" in notes(result, "sentinel")


def test_dates_near_the_others_are_no_sentinels() -> None:
    dates = pd.date_range("1969-12-01", periods=ROWS)
    assert not notes(read(dates), "sentinel")


def test_codes_of_numbers_are_missing_where_missing_values_are_imputed() -> None:
    values = np.random.default_rng(0).normal(size=ROWS)
    values[:5] = -999
    result = read(values)
    assert np.isnan(column(result)[:5]).all() and "c missing" in result.names
    assert "has -999 in 5 of 60 rows" in notes(result, "sentinel")
    kept = design(pd.DataFrame({"c": values}))
    assert kept.X[0, 0] == -999


@pytest.mark.parametrize(
    "codes", [(97, 98, 99), (998, 999), (77, 88, 99), (-99, -98), (-999, 9999), (-999, 999), (99,)]
)
def test_several_codes_are_missing(codes: tuple[int, ...]) -> None:
    values = np.resize(np.arange(7.0), ROWS)
    values[: 4 * len(codes)] = np.repeat(codes, 4)
    result = read(values)
    assert np.isnan(column(result)).nonzero()[0].tolist() == list(range(4 * len(codes)))
    shown = ", ".join(map(str, codes))
    assert f"has {shown} in {4 * len(codes)} of 60 rows" in notes(result, "sentinel")


def test_an_unknown_value_beyond_a_code_is_named_and_does_not_hide_it() -> None:
    values = np.resize([*range(7), -999.0, -12345.0, 9.0], ROWS)
    result = read(values)
    np.testing.assert_array_equal(np.isnan(column(result)), values == -999)
    assert "has -12345 in 6 of 60 rows" in notes(result, "sentinel")


@pytest.mark.parametrize(
    "pair",
    [
        ("yes", "yes "),
        ("\u00e9", "e\u0301"),
        ("a b", "a\u00a0b"),
        ("ab", "\uff41\uff42"),
        ("ab", "a\u200bb"),
    ],
)
def test_spellings_are_merged_in_columns_and_targets(pair: tuple[str, str]) -> None:
    values = np.resize([*pair, "no"], ROWS)
    result = read(values)
    assert "2 categories" in notes(result, "category")
    assert "differ only by spaces or Unicode form" in notes(result, "spelling")
    for y in (values, values.astype(object), pd.Series(values)):
        target = read_target(y, None, ROWS)
        assert len(target.classes) == 2 and target.notes[0].level == "warning"
    with pytest.raises(DataError, match="only one value"):
        read_target(np.resize(pair, ROWS), None, ROWS)


def test_case_is_kept_and_said() -> None:
    values = np.resize(["Yes", "yes", "no"], ROWS)
    result = read(values)
    assert "3 categories" in notes(result, "category")
    assert "differ only by case ('Yes' and 'yes')" in notes(result, "spelling")
    target = read_target(values, "classification", ROWS)
    assert len(target.classes) == 3 and "only by case" in target.notes[0].text


def test_estimators_warn_of_labels_that_differ_by_case_or_unicode_form() -> None:
    for pair, what in (
        (("Yes", "yes"), "case"),
        (("ab", "\uff41\uff42"), "spaces or Unicode form"),
    ):
        with pytest.warns(UserWarning, match=f"differ only by {what}"):
            assert len(read_classes(np.resize([*pair, "no"], ROWS))[1]) == 3


def test_whole_numbers_that_merge_as_float64_are_said() -> None:
    result = read(2**60 + np.random.default_rng(0).permutation(ROWS) * 200)
    assert "whole numbers beyond 2^53, of which" in notes(result, "precision")
    assert not notes(read(2**60 + 1024 * np.random.default_rng(0).permutation(ROWS)), "precision")


def test_lone_surrogates() -> None:
    values = pd.Series(np.resize(["a\ud800", "b"], ROWS), dtype=object)
    assert "c=b" in read(values).names
    assert read_target(values, None, ROWS).classes == ("a\ufffd", "b")
    frame = pd.DataFrame(np.eye(3), columns=pd.Index(["a\ud800", "b", "c"], dtype=object))
    with pytest.raises(DataError, match="half of a surrogate pair"):
        design(frame)
