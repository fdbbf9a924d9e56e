"""Tables as people have them, turned into numbers column by column."""

import numpy as np
import pandas as pd
import pytest
from bad_calls import bad_calls, refuses

from fsjax.auto.certainty.leaks import alike, leaders, leaks
from fsjax.auto.contest.folds import Fold, parts
from fsjax.auto.reading.columns import MAX_CATEGORIES, design, design_of_array
from fsjax.auto.reading.notes import LEFT_OUT
from fsjax.errors import ConfigError, DataError

ROWS = 60


@pytest.fixture
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    number = rng.normal(size=ROWS)
    return pd.DataFrame(
        {
            "number": number,
            "copy": number,
            "colour": np.resize(["red", "green", "blue"], ROWS),
            "member": np.resize([True, False, False, False], ROWS),
            "answer": np.resize(["yes", "no"], ROWS),
            "day": pd.date_range("2024-01-01", periods=ROWS, freq="D").strftime("%Y-%m-%d"),
            "customer_id": rng.permutation(ROWS) * 7 + 3,
            "row": np.arange(100, 100 + ROWS),
            "name": [f"person {i}" for i in range(ROWS)],
            "remark": [f"text {i % 50}" for i in range(ROWS)],
            "same": 3.0,
            "nothing": None,
        }
    )


def test_every_kind_of_column(frame):
    result = design(frame)
    assert result.units == ("number", "colour", "member", "answer", "day")
    assert result.names == (
        "number", "colour=blue", "colour=green", "colour=red", "member", "answer=yes",
        "day: days", "day: month", "day: weekday",
    )  # fmt: skip
    np.testing.assert_array_equal(result.groups, [0, 1, 1, 1, 2, 3, 4, 4, 4])
    kinds = {note.column: note.kind for note in result.notes if note.kind in LEFT_OUT}
    assert kinds == {
        "copy": "duplicate",
        "customer_id": "identifier",
        "row": "identifier",
        "name": "identifier",
        "remark": "text",
        "same": "constant",
        "nothing": "empty",
    }
    np.testing.assert_array_equal(result.X[:4, 6], [0, 1, 2, 3])
    np.testing.assert_array_equal(result.X[:3, 7:], [[1, 0], [1, 1], [1, 2]])
    np.testing.assert_array_equal(result.X[:3, 1:4], [[0, 0, 1], [0, 1, 0], [1, 0, 0]])
    np.testing.assert_array_equal(result.columns_of([1, 4]), [1, 2, 3, 6, 7, 8])


def test_ordinary_whole_numbers_are_no_identifiers():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"income": rng.permutation(ROWS) * 13 + 5, "age": rng.integers(18, 80, 60)}
    )
    assert design(frame).units == ("income", "age")


def test_numbers_of_the_rows_are_left_out_and_counts_are_not():
    rng = np.random.default_rng(0)
    left_out = ["PatientID", "order_key", "index", "case no.", "row number"]
    doubtful = ["emissions no", "site id"]
    counts = ["number of inhabitants", "NO (ppb)", "NO2", "price in row"]
    names = [*left_out, *doubtful, *counts]
    frame = pd.DataFrame({name: rng.permutation(9000)[:ROWS] + 1000 for name in names})
    frame["case no."] = np.sort(frame["case no."])
    frame["row number"] = 2 * rng.permutation(ROWS)
    frame["site id"] = np.round(np.exp(rng.normal(10, 1, ROWS)))
    result = design(frame)
    assert list(result.units) == [*doubtful, *counts]
    assert [note.column for note in result.notes if note.level == "warning"] == doubtful
    assert list(design(frame, keep=left_out).units) == names


def test_zeros_of_both_signs_are_equal():
    copy = design(pd.DataFrame({"a": [0.0, 1.0, 2.5], "b": [-0.0, 1.0, 2.5]}))
    assert copy.units == ("a",) and copy.notes[-1].kind == "duplicate"


def test_gaps_are_filled_from_the_training_rows_alone():
    X = np.array([[1.0, 5.0], [np.nan, 6.0], [3.0, 7.0], [100.0, 8.0], [np.nan, 9.5]])
    with pytest.raises(DataError, match=r"2 values are missing in 1 of 2 columns: 'x0'.*impute"):
        design_of_array(X, None, None)
    result = design_of_array(X, None, "median")
    assert result.names == ("x0", "x0 missing", "x1")
    np.testing.assert_array_equal(result.groups, [0, 0, 1])
    np.testing.assert_array_equal(result.X[:, 1], [0, 1, 0, 0, 1])
    train, test = parts(result, np.arange(5), Fold(np.array([0, 1, 2]), np.array([3, 4])))
    # Filled with 2, the median of 1 and 3: the centre of the training rows.
    np.testing.assert_allclose(train.X[:, 0], np.array([-1, 0, 1]) / np.sqrt(2 / 3))
    np.testing.assert_allclose(test.X[:, 0], np.array([98, 0]) / np.sqrt(2 / 3))
    np.testing.assert_array_equal(test.y, [3, 4])
    with pytest.raises(ConfigError, match="impute='medain': did you mean 'median'"):
        design_of_array(X, None, "medain")


def test_missing_categories_are_a_category_and_texts_like_question_marks_are_gaps():
    frame = pd.DataFrame(
        {
            "size": np.resize(["s", "m", None, "l"], ROWS),
            "dose": np.resize(["1.5", "2", "?", "4"], ROWS),
        }
    )
    result = design(frame, "mean")
    assert result.names == (
        "size=(missing)", "size=l", "size=m", "size=s", "dose", "dose missing",
    )  # fmt: skip
    told = {(note.column, note.kind) for note in result.notes}
    assert told >= {("dose", "number"), ("dose", "missing"), ("size", "category")}


def test_rare_categories_share_a_column():
    values = [f"c{i}" for i in range(40) for _ in range(2 + (i < 25))]
    result = design(
        pd.DataFrame({"code": values, "x": np.random.default_rng(0).random(len(values))})
    )
    assert len(result.names) == MAX_CATEGORIES + 1
    assert result.names[MAX_CATEGORIES - 1] == "code=(others)"


@bad_calls(
    ({"a": [1.0, 1.0], "b": [2.0, 2.0]}, "no column is left", "'a' has one value only"),
    (pd.DataFrame([[1, 2], [3, 4]], columns=["a", "a"]), "more than once: 'a'"),
    ({"a": [1.0, np.inf, 2.0]}, "'a' has 1 infinite value; replace it"),
)
def test_bad_tables(bad):
    refuses(lambda: design(pd.DataFrame(bad[0])), *bad[1:])


def test_leaks_and_what_could_stand_for_what():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 200)
    X = rng.normal(size=(200, 4))
    X[:, 1] = y * 10 + rng.random(200)  # thresholds tell the three classes apart
    X[:, 3] = X[:, 0] ** 3
    result = design_of_array(X, ("a", "leak", "b", "a cubed"), None)
    (note,) = leaks(result, y, "classification")
    assert note.column == "leak" and "likely leak" in note.text
    assert [n.column for n in leaks(result, X[:, 0] * 2 + 1, "regression")] == ["a", "a cubed"]
    order = np.array([3, 2, 0, 1])
    likeness = alike(result, order)
    np.testing.assert_allclose(likeness[0, [0, 3]], 1.0)
    assert likeness[0, [1, 2]].max() < 0.5
    np.testing.assert_array_equal(leaders(likeness, order), [3, 1, 2, 3])


def test_a_column_and_its_negative_are_alike():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 3))
    X[:, 2] = -X[:, 0] + 0.01 * rng.normal(size=100)
    likeness = alike(design_of_array(X, None, None), np.array([0]))[0]
    assert likeness[2] > 0.99 > 0.4 > likeness[1]
