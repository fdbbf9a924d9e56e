"""Users' arrays and frames as data sets.

Covers ``fsjax.tasks.from_arrays``, ``fsjax.tables.user_arrays``, ``fsjax.tables.user_arrays``.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from bad_calls import bad_calls, refuses

from fsjax.data import Dataset, as_dataset
from fsjax.errors import DataError
from fsjax.tasks.from_arrays import check_task


def test_labels_of_any_kind() -> None:
    x = np.zeros((6, 2))
    for labels in ([3.0, 5.0] * 3, [3, 5] * 3, [True, False] * 3, ["a", "b"] * 3):
        dataset = as_dataset(x, np.array(labels))
        assert dataset.num_classes == 2
        assert set(dataset.y.tolist()) == {0, 1}
    assert as_dataset(x, np.arange(6), task="regression").y.dtype == np.float64
    assert as_dataset(x, np.arange(6) / 4).y.tolist() == [0, 0.25, 0.5, 0.75, 1, 1.25]


def test_truth_values_are_classes() -> None:
    dataset = Dataset("t", np.eye(20), np.arange(20) % 2 == 0)
    assert dataset.num_classes == 2 and check_task(dataset, "classification") is dataset


def test_frames_keep_their_names() -> None:
    dataset = as_dataset(FRAME, pd.Series([0, 1]))
    assert dataset.feature_names == ("a", "b")
    assert dataset.y.tolist() == [0, 1]


FRAME = pd.DataFrame({"a": [0.5, 1.5], "b": [1, 2]})
TEXT = "1 of 2 columns "
DAYS = pd.to_timedelta([3, None], unit="D")


@bad_calls(
    ((FRAME.assign(c=["x", "y"]), [0, 1]), "X has 1 of 3 columns", "'c' ", "'x'", "get_dummies"),
    ((pd.DataFrame([[1, "x"], [2, "y"]], columns=["a", "a"]),), TEXT, "'a' ", "'x'"),
    ((np.array([["x", 1.0], [2.0, 3.0]], object), [0, 1]), TEXT, "column 0 ", "'x'", "select"),
    ((np.array([["x", "1"], ["2", "3"]]), [0, 1]), TEXT, "column 0 ", "'x'", "select"),
    ((np.zeros(3),), "(rows, columns)"),
    ((np.zeros((2, 2)), np.zeros(3)), "2 rows but y has 3"),
    ((np.zeros((2, 2)), pd.Series(["a", ""], dtype=object)), "y has 1 missing value"),
    ((np.zeros((2, 2)), np.array(["NaT", 5], "m8[D]"), "regression"), "y has 1 missing value"),
    ((np.zeros((2, 2)), pd.DataFrame({"time": DAYS, "event": 1}), "survival"), "1 missing value"),
)
def test_bad_calls(bad: tuple) -> None:
    refuses(lambda: as_dataset(*bad[0]), *bad[1:])


@pytest.mark.parametrize("kind", ["numpy_nullable", "pyarrow"])
def test_nullable_and_arrow_columns(kind: str) -> None:
    plain = pd.DataFrame({"a": [0.5, 1.5], "b": [1, 2], "c": [True, False]})
    frame = plain.convert_dtypes(dtype_backend=kind)
    dataset = as_dataset(frame, frame["b"])
    np.testing.assert_array_equal(dataset.X, [[0.5, 1, 1], [1.5, 2, 0]])
    assert dataset.X.dtype == np.float64 and dataset.y.tolist() == [0, 1]
    frame.loc[0, :] = pd.NA
    np.testing.assert_array_equal(as_dataset(frame).X, [[np.nan] * 3, [1.5, 2, 0]])
    for task in ("classification", "regression"):
        with pytest.raises(DataError, match="y has 1 missing value"):
            as_dataset(plain, frame["b"], task=task)
