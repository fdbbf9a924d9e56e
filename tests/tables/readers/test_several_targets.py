"""Several target columns of a table, and the targets of data sets for each task."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from bad_calls import refuses

from fsjax.data import Dataset, as_dataset, check_task, load, load_table, make_split
from fsjax.errors import DataError
from fsjax.tables.readers.table_files import load_frame
from fsjax.tasks import TABLE


@pytest.fixture
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "a": rng.normal(size=40),
            "weeks": rng.integers(1, 9, 40),
            "b": rng.normal(size=40),
            "relapse": rng.random(40) < 0.5,
        }
    )


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".npz"])
def test_time_and_event(frame: pd.DataFrame, tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"table{suffix}"
    if suffix == ".csv":
        frame.to_csv(path, index=False)
    elif suffix == ".parquet":
        frame.to_parquet(path)
    else:
        np.savez(path, X=frame[["a", "b"]], weeks=frame["weeks"], relapse=frame["relapse"])
    expected = frame[["weeks", "relapse"]].to_numpy(float)
    for target in ("weeks,relapse", " weeks, relapse", ["weeks", "relapse"]):
        dataset = load(str(path), target=target)
        np.testing.assert_array_equal(dataset.y, expected)
        assert dataset.X.shape == (40, 2)
        assert check_task(dataset, "survival") is dataset
    if suffix == ".csv":
        assert dataset.feature_names == ("a", "b")
        np.testing.assert_array_equal(load(str(path), target=(1, -1)).y, expected)
        with pytest.raises(DataError, match="did you mean 'relapse'"):
            load_table(str(path), target="weeks,relaps")


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".npz"])
def test_frames_as_they_are(frame: pd.DataFrame, tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"table{suffix}"
    frame["b"] = np.where(frame["b"] > 0, "high", "low")
    if suffix == ".csv":
        frame.to_csv(path, index=False)
    elif suffix == ".parquet":
        frame.to_parquet(path)
    else:
        np.savez(path, X=frame[["a"]], weeks=frame["weeks"], relapse=frame["relapse"])
    for target in ("weeks,relapse", ["weeks", "relapse"]):
        rest, y, _, _ = load_frame(str(path), target)
        np.testing.assert_array_equal(y.astype(float), frame[["weeks", "relapse"]].to_numpy(float))
        if suffix != ".npz":
            pd.testing.assert_frame_equal(rest, frame[["a", "b"]])
    rest, y, _, _ = load_frame(str(path), "weeks")
    np.testing.assert_array_equal(y, frame["weeks"])
    with pytest.raises(DataError, match="relaps"):
        load_frame(str(path), "weeks,relaps")
    with pytest.raises(DataError, match="target=weeks,weeks names a column twice"):
        load_frame(str(path), "weeks,weeks")


def test_several_targets_of_a_sparse_file(frame: pd.DataFrame, tmp_path: Path) -> None:
    x = sp.random_array((40, 6), density=0.3, rng=0, format="csr")
    parts = {"data": x.data, "indices": x.indices, "indptr": x.indptr, "shape": x.shape}
    targets = {"weeks": frame["weeks"], "relapse": frame["relapse"]}
    np.savez(tmp_path / "t.npz", format=b"csr", **parts, **targets)
    expected = frame[["weeks", "relapse"]].to_numpy(float)
    dataset = load(str(tmp_path / "t.npz"), target="weeks,relapse")
    assert sp.issparse(dataset.X)
    np.testing.assert_array_equal(dataset.y, expected)
    rest, y, _, _ = load_frame(str(tmp_path / "t.npz"), "weeks,relapse")
    np.testing.assert_array_equal(rest.sparse.to_coo().toarray(), x.toarray())
    np.testing.assert_array_equal(y, expected)
    np.savez(tmp_path / "t.npz", format=b"csr", **parts, y=expected)
    np.testing.assert_array_equal(load(str(tmp_path / "t.npz")).y, expected)


def test_a_column_whose_name_has_a_comma(frame: pd.DataFrame, tmp_path: Path) -> None:
    frame.rename(columns={"weeks": "weeks,all"}).to_csv(tmp_path / "t.csv", index=False)
    assert load(str(tmp_path / "t.csv"), target="weeks,all").y.ndim == 1


def test_a_column_is_named_once(frame: pd.DataFrame, tmp_path: Path) -> None:
    frame.to_csv(tmp_path / "t.csv", index=False)
    for target in ("weeks,1", ["relapse", -1]):
        with pytest.raises(DataError, match="names a column twice"):
            load_table(str(tmp_path / "t.csv"), target=target)
    assert load_table(str(tmp_path / "t.csv"), target=np.int64(1)).feature_names[1] == "b"


def test_arrays_of_several_columns(tmp_path: Path) -> None:
    y = np.eye(3)[np.arange(12) % 3]
    np.savez(tmp_path / "t.npz", X=np.random.default_rng(0).normal(size=(12, 2)), y=y)
    dataset = load(str(tmp_path / "t.npz"))
    np.testing.assert_array_equal(dataset.y, y)
    assert check_task(dataset, "multilabel") is dataset


def test_values_that_are_missing_or_text(frame: pd.DataFrame, tmp_path: Path) -> None:
    frame.assign(weeks=frame["weeks"].where(frame.index > 0)).to_csv(tmp_path / "t.csv")
    with pytest.raises(DataError, match=r"no usable value in 1 of 40 rows \(first: row 0"):
        load(str(tmp_path / "t.csv"), target="weeks,relapse")
    frame.assign(relapse="yes").to_csv(tmp_path / "t.csv")
    with pytest.raises(DataError, match="values that are not numbers"):
        load(str(tmp_path / "t.csv"), target="weeks,relapse")


def test_counts_that_were_read_as_classes(tmp_path: Path) -> None:
    y = np.array([0, 2, 2, 7, 0, 2])
    pd.DataFrame({"x": np.arange(6.0), "y": y}).to_csv(tmp_path / "t.csv", index=False)
    dataset = load(str(tmp_path / "t.csv"), target="y")
    assert dataset.class_names == ("0", "2", "7")
    np.testing.assert_array_equal(check_task(dataset, "counts").y, y)
    pd.DataFrame({"x": np.arange(6.0), "y": y - 1}).to_csv(tmp_path / "t.csv", index=False)
    with pytest.raises(DataError, match="negative numbers in 2 entries"):
        check_task(load(str(tmp_path / "t.csv"), target="y"), "counts")


def test_a_split_takes_whole_numbers_as_classes() -> None:
    # For a table without a named task they would be numbers.
    y, sizes = np.repeat(np.arange(40.0), 4), (0.25, 0.25, 0.5)
    numbers, integers = (Dataset("t", np.eye(160), part) for part in (y, y.astype(np.int32)))
    classes = make_split(integers, "stratified", fractions=sizes)
    with pytest.warns(UserWarning, match="40 different numbers"):
        split = make_split(numbers, "stratified", fractions=sizes)
    np.testing.assert_array_equal(split.test, classes.test)
    with pytest.raises(DataError, match="stratified split needs classes.*a numeric target"):
        make_split(Dataset("t", np.eye(160), y / 3), "stratified")


def test_splits_keep_the_share_of_events() -> None:
    y = np.column_stack([np.arange(1.0, 101), np.arange(100) % 10 == 0])
    dataset = as_dataset(np.random.default_rng(0).normal(size=(100, 3)), y, task="survival")
    split = make_split(dataset, "stratified", task="survival")
    assert [int(y[part, 1].sum()) for part in split] == [6, 2, 2]
    y[:, 1] = np.arange(100) == 0
    dataset = as_dataset(dataset.X, y, task="survival")
    with pytest.raises(DataError, match=r"class 'event' .* has 1 row"):
        make_split(dataset, "stratified", task="survival")


@pytest.mark.parametrize("task", ["multilabel", "counts", "survival"])
def test_what_data_sets_may_not_hold(task: str) -> None:
    x = np.zeros((4, 2))
    classes = np.array([0, 1, 0, 1], np.int32)
    text = Dataset("table", x, classes, class_names=("a", "b"))
    tables = [Dataset("table", x, y) for y in (np.full((4, 2), -1.0), np.zeros((4, 3)) + 0.25)]
    for table in (*tables, Dataset("table", x, None), text):
        refuses(lambda table=table: check_task(table, task), f"task={task} needs")


def test_times_are_places_of_which_float32_keeps_all() -> None:
    y = np.array([[1.7e9 + 1, 1], [1.7e9, 0], [1.7e9 + 1, 0], [1.7e9 + 2, 1]])
    rows = TABLE["survival"].target.as_rows(y)
    assert rows.dtype == np.float32
    assert rows.tolist() == [[2, 1], [1, 0], [2, 0], [3, 1]]
