"""One rule for classes or numbers: select, the loaders, fit and the estimators agree."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import fsjax
from fsjax.auto.reading.target import read_target
from fsjax.data import as_dataset, check_task, load
from fsjax.errors import DataError
from fsjax.estimators import FisherScore
from fsjax.tables.readers.target_columns import encode_target
from fsjax.tasks.classes_or_numbers import kind_of_target
from fsjax.tasks.targets import read_exactly, read_survival

#: 60 different whole numbers in 100 rows.
MANY = np.resize(np.arange(60), 100)


@pytest.mark.parametrize(
    ("values", "classes", "said"),
    [
        (MANY, False, True),
        (MANY.astype(float), False, True),
        (MANY.astype(str), True, False),
        (np.resize([0, 1], 4), True, False),
        (np.array([1.5, 2.0, 2.5, 2.0]), False, False),
        (np.arange(3), False, True),
        (np.array([1, 2]), True, False),
        (np.repeat(np.arange(12), 9), True, True),
        (np.repeat(np.arange(10), 9), True, False),
        (np.repeat(np.arange(40), 10), True, True),
        (np.repeat(np.arange(40), 4), False, True),
        (np.repeat(np.arange(30), 4), True, True),
        (np.array([True, False]), True, False),
    ],
)
def test_the_rule(values: np.ndarray, classes: bool, said: bool) -> None:
    found = kind_of_target(values)
    assert found.classes is classes and bool(found.remark) is said


def test_the_same_target_is_the_same_everywhere(tmp_path: Path) -> None:
    frame = pd.DataFrame({"a": np.arange(100.0), "b": np.arange(100.0) ** 2, "y": MANY})
    frame.to_csv(tmp_path / "t.csv", index=False)
    loaded = load(str(tmp_path / "t.csv"), target="y")
    found = read_target(MANY, None, 100)
    assert loaded.y.dtype == np.float32 and found.task == "regression"
    assert found.notes[0].text == (
        "60 different whole numbers in 100 rows are taken as numbers; task='classification' "
        "overrides this"
    )
    for task in ("classification", "regression"):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            of_file = check_task(loaded, task)
            of_arrays = check_task(as_dataset(frame[["a", "b"]], MANY, task), task)
        np.testing.assert_array_equal(of_file.y, of_arrays.y)
        assert of_file.class_names == of_arrays.class_names
        # Each of them says that numbers become classes.
        told = [str(one.message) for one in caught]
        assert len(told) == 2 * (task == "classification")
        assert all("60 different numbers in 100 rows" in message for message in told)


def test_a_task_overrides_the_rule() -> None:
    many = np.resize(np.arange(60), 300)
    assert read_target(many, "classification", 300).classes is not None
    assert read_target(np.resize([0, 1], 300), "regression", 300).classes is None
    with pytest.raises(DataError, match="60 different values in 100"):
        read_target(MANY, "classification", 100)


def test_a_text_among_the_numbers_of_a_target_does_not_make_them_classes() -> None:
    numbers = np.round(np.random.default_rng(0).normal(5, 1, 120), 1).astype(str).astype(object)
    numbers[3] = "<3.0"
    found = read_target(numbers, None, 120)
    assert found.task == "regression" and found.values[3] == 1.5 and "limit" in found.notes[0].text
    numbers[3] = "?"
    with pytest.raises(DataError, match="'\\?' in 1 of 120 rows"):
        read_target(numbers, None, 120)
    days = pd.Series(pd.date_range("2024-01-01", periods=40)).astype(str)
    with pytest.raises(DataError, match="40 different texts or dates in 40 rows"):
        read_target(days, None, 40)
    # Grades, one of which is no number, are classes.
    assert read_target(np.resize(["1", "2", "3", "x"], 120), None, 120).classes == tuple("123x")


@pytest.mark.slow
def test_estimators_of_classes_make_classes_and_warn() -> None:
    X = np.random.default_rng(0).normal(size=(132, 3))
    y = np.arange(132) // 4
    with pytest.warns(UserWarning, match="y holds 33 different"):
        found = FisherScore(1, hidden=(2,), num_epochs=1).fit(X, y)
    assert len(found.classes_) == 33


def test_whole_numbers_that_float32_cannot_tell_apart_stay_apart() -> None:
    y, _ = encode_target(2**40 + np.resize(np.arange(60), 100), "the target")
    data = fsjax.data.Dataset("t", np.ones((100, 2)), y)
    with pytest.warns(UserWarning, match="60 different numbers"):
        assert len(np.unique(check_task(data, "classification").y)) == 60


def test_targets_written_with_units_are_numbers() -> None:
    y = np.array([f"€{value},5" for value in range(20)], dtype=object)
    found = read_target(y, None, 20)
    assert found.task == "regression" and found.values[3] == 3.5
    assert "has numbers such as '€0,5', taken as 0.5" in found.notes[0].text
    assert read_target(np.resize(["1", "2"], 20), None, 20).task == "classification"


def test_masked_values_are_refused() -> None:
    mask = np.zeros(20, bool)
    mask[3] = True
    y = np.ma.array(np.resize([0, 1], 20), mask=mask)
    X = np.ma.array(np.random.default_rng(0).normal(size=(20, 2)), mask=np.column_stack([mask] * 2))
    with pytest.raises(DataError, match="y has 1 masked values"):
        fsjax.select(X.data, y)
    with pytest.raises(DataError, match="X has 2 masked values"):
        fsjax.select(X, y.data)


@pytest.mark.parametrize("outputs", ["frame", "array"])
def test_texts_among_several_outputs_are_named(outputs) -> None:
    y = pd.DataFrame({"time": [1.0, 2.0], "state": ["alive", "dead"]})
    with pytest.raises(DataError, match=r"'alive' in column ('state'|1).*task='survival'"):
        read_exactly(y if outputs == "frame" else y.to_numpy())
    days = y.assign(state=pd.to_datetime(["2020-01-01", "2020-01-02"])).astype(object)
    with pytest.raises(DataError, match="'2020-01-01 00:00:00' in column 'state'"):
        read_exactly(days)
    with pytest.raises(DataError, match=r"column 'state' holds Timestamp\('2020-01-01"):
        read_survival(days)
