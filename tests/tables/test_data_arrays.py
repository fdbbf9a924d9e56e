"""Users' arrays and frames as data sets.

Covers ``fsjax.tasks.from_arrays``, ``fsjax.tables.user_arrays``, ``fsjax.tables.user_arrays``.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from fsjax.data import as_dataset
from fsjax.errors import ConfigError, DataError


def test_labels_of_any_kind() -> None:
    x = np.zeros((6, 2))
    for labels in ([3.0, 5.0] * 3, [3, 5] * 3, [True, False] * 3, ["a", "b"] * 3):
        dataset = as_dataset(x, np.array(labels))
        assert dataset.num_classes == 2
        assert set(dataset.y.tolist()) == {0, 1}
    assert as_dataset(x, np.arange(6), task="regression").y.dtype == np.float64
    assert as_dataset(x, np.arange(6) / 4).y.tolist() == [0, 0.25, 0.5, 0.75, 1, 1.25]


def test_frames_keep_their_names_and_text_is_refused() -> None:
    frame = pd.DataFrame({"a": [0.5, 1.5], "b": [1, 2]})
    dataset = as_dataset(frame, pd.Series([0, 1]))
    assert dataset.feature_names == ("a", "b")
    assert dataset.y.tolist() == [0, 1]
    with pytest.raises(DataError, match="X has 1 of 3 columns .* 'c' .such as 'x'.*get_dummies"):
        as_dataset(frame.assign(c=["x", "y"]), [0, 1])
    with pytest.raises(DataError, match="X has 1 of 2 columns .* 'a' .such as 'x'"):
        as_dataset(pd.DataFrame([[1, "x"], [2, "y"]], columns=["a", "a"]))


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


def test_text_in_arrays() -> None:
    for x in (np.array([["x", 1.0], [2.0, 3.0]], object), np.array([["x", "1"], ["2", "3"]])):
        with pytest.raises(DataError, match="1 of 2 columns .*: column 0 .such as 'x'.*select"):
            as_dataset(x, [0, 1])


def test_shapes() -> None:
    with pytest.raises(ConfigError, match="rows, columns"):
        as_dataset(np.zeros(3))
    with pytest.raises(ConfigError, match="2 rows but y has 3"):
        as_dataset(np.zeros((2, 2)), np.zeros(3))
