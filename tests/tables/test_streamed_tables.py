"""Streamed tables have the same rows, statistics and messages as tables in memory.

Covers ``fsjax.tables.readers.on_disk``, ``fsjax.tables.streamed``, ``fsjax.tables.streamed_rows``.
"""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from bad_calls import bad_calls, refuses
from hypothesis import given, settings
from hypothesis import strategies as st

from fsjax.data import KINDS, as_dataset, convert, fit_scaler, load
from fsjax.engine.environment import memory_limits
from fsjax.tables import base
from fsjax.tables.streamed import StreamedTable, open_npy


def saved(folder: Path, X: np.ndarray, y: np.ndarray | None = None) -> Path:
    """Write ``table.npy`` to a folder, with its target beside it."""
    np.save(folder / "table.npy", X)
    if y is not None:
        np.save(folder / "table.y.npy", y)
    return folder / "table.npy"


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> tuple[StreamedTable, np.ndarray]:
    X = np.random.default_rng(0).integers(0, 9, (97, 31)).astype(np.float32)
    return open_npy(saved(tmp_path_factory.mktemp("rows"), X)), X


@given(
    rows=st.lists(st.integers(0, 96), max_size=40),
    block=st.sampled_from([1, 100, 2**22]),
    without=st.sampled_from([None, 0, 30]),
)
@settings(max_examples=60, deadline=None)
def test_rows_are_those_of_the_array(
    table: tuple[StreamedTable, np.ndarray], rows: list[int], block: int, without: int | None
) -> None:
    whole, X = table
    view = whole[::2] if not rows else whole
    wanted = np.array(rows, int) if rows else slice(3, 20)
    expected = (X[::2] if not rows else X)[wanted]
    if without is not None:
        view = replace(view, without=without)
        expected = np.delete(expected, without, axis=1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(base, "BLOCK", block)
        np.testing.assert_array_equal(view.read(wanted), expected)
        numbers = np.arange(len(view))[wanted]
        np.testing.assert_array_equal(view.block(numbers, np.array([4, 1])), expected[:, [4, 1]])
    assert view[wanted].shape == expected.shape
    assert view.read(np.zeros(0, int)).shape == (0, expected.shape[1])


def test_a_large_array_of_another_library_is_streamed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    array = pytest.importorskip("dask.array")
    X, y = np.random.default_rng(0).normal(size=(40, 5)).astype(np.float32), np.arange(40) % 2
    mapped = np.load(saved(tmp_path, X), mmap_mode="r")
    large = (mapped, array.from_array(X, chunks=(7, 5)))
    for source in large:
        assert isinstance(as_dataset(source, y).X, np.ndarray)
    monkeypatch.setattr(memory_limits, "free_memory", lambda: 2 * X.nbytes - 2)
    for source in large:
        dataset = as_dataset(source, y)
        assert isinstance(dataset.X, StreamedTable)
        np.testing.assert_array_equal(dataset.X.read(np.array([9, 2, 2])), X[[9, 2, 2]])
        assert as_dataset(dataset.X, y).X is dataset.X
    assert isinstance(as_dataset(X, y).X, np.ndarray)


@given(
    kind=st.sampled_from([kind for kind in KINDS if "mnist" not in kind]),
    rows=st.integers(1, 40),
    columns=st.integers(2, 9),
    block=st.sampled_from([1, 7, 64]),
    dtype=st.sampled_from([np.float32, np.float64, np.uint8]),
    seed=st.integers(0, 99),
)
@settings(max_examples=60, deadline=None)
def test_a_scaling_is_the_same_bits_by_blocks(
    tmp_path_factory: pytest.TempPathFactory,
    kind: str,
    rows: int,
    columns: int,
    block: int,
    dtype: type,
    seed: int,
) -> None:
    X = np.random.default_rng(seed).uniform(2, 200, (rows, columns)).astype(dtype)
    X[:, 0] = 5
    table = open_npy(saved(tmp_path_factory.mktemp("scaling"), X))
    in_memory = fit_scaler(kind, X)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(base, "BLOCK", block)
        on_disk = fit_scaler(kind, table)
    np.testing.assert_array_equal(in_memory.shift, on_disk.shift)
    np.testing.assert_array_equal(in_memory.scale, on_disk.scale)
    if kind == "standard":
        np.testing.assert_allclose(in_memory.shift, X.mean(axis=0, dtype=np.float64), rtol=1e-12)
        inverse = in_memory.scale[1:] * X.astype(np.float64).std(axis=0)[1:]
        np.testing.assert_allclose(inverse[in_memory.scale[1:] > 0], 1.0, rtol=1e-9)
    if kind == "scalar":
        # A constant column outside the range of the others does not count.
        counts = in_memory.scale > 0 if in_memory.scale.ndim else slice(None)
        mean = X[:, counts].mean(dtype=np.float64)
        np.testing.assert_allclose(in_memory.shift, mean, rtol=1e-12)


def test_the_target_is_a_file_beside_another_file_or_a_column(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, 5)).astype(np.float32), np.array(["b", "a"] * 10)
    X[:, 4] = np.arange(20) % 3
    path = saved(tmp_path, X, y)
    np.save(tmp_path / "other.npy", rng.normal(size=(20, 2)))
    dataset = load(path)
    assert isinstance(dataset.X, StreamedTable)
    assert dataset.class_names == ("a", "b")
    np.testing.assert_array_equal(dataset.y, (y == "b").astype(int))
    assert load(path, target="other.npy").y.shape == (20, 2)
    np.save(tmp_path / "one_column.npy", y[:, None])
    np.testing.assert_array_equal(load(path, target="one_column.npy").y, dataset.y)
    column = load(path, target=-1)
    np.testing.assert_array_equal(column.y, X[:, 4].astype(int))
    np.testing.assert_array_equal(np.asarray(column.X), X[:, :4])
    dense = load(path, dense=True)
    assert isinstance(dense.X, np.ndarray)
    np.testing.assert_array_equal(dense.X, X)
    again = pickle.loads(pickle.dumps(dataset))
    np.testing.assert_array_equal(again.X.read(), X)


@bad_calls(
    (np.asfortranarray(np.ones((4, 3))), {}, "column by column"),
    (np.ones(4), {}, "shape (4,)"),
    (np.ones((0, 3)), {}, "is empty: 0 rows"),
    (np.array([["a", "b"]]), {}, "save real numbers"),
    (np.array([[1.0, np.nan], [1.0, np.inf]]), {}, "1 missing value ", " in 1 of 2 columns"),
    (np.ones((4, 3)), {"target": "label"}, "is neither a .npy file nor a column"),
    (np.ones((4, 3)), {"target": 3}, "a number from 0 to 2"),
    (np.ones((4, 3)), {"target": "short.npy"}, "4 rows but 3 targets"),
    (np.ones((4, 3)), {"target": "text.npy"}, "text.npy cannot be read as a NumPy file"),
    (np.ones((4, 3)), {"impute": "mean"}, "impute='mean' is for tables in memory"),
    (np.ones((4, 3)), {"target": [0, 1]}, "takes one column or file"),
    (np.ones((4, 1)), {"target": 0}, "no columns besides the target"),
)
def test_what_cannot_be_used_is_told(bad: tuple, tmp_path: Path) -> None:
    np.save(tmp_path / "short.npy", np.array([0, 1, 0]))
    (tmp_path / "text.npy").write_bytes(b"1, 2, 3, 4")
    refuses(lambda: load(saved(tmp_path, bad[0]), **bad[1]), *bad[2:])


def test_files_that_change(tmp_path: Path) -> None:
    path = saved(tmp_path, np.ones((4, 3)))
    contents = path.read_bytes()
    path.write_bytes(contents[:-8])
    refuses(lambda: load(path), "cannot be read as a NumPy file")
    path.write_bytes(contents)
    table = load(path).X
    path.write_bytes(contents[:-8])
    refuses(table.read, "cannot be read as a NumPy file")
    np.save(path, np.ones((5, 3)))
    refuses(table.read, "has changed since it was opened")
    (tmp_path / "t.csv").write_text("a,b\n1,2\n3,4\n")
    folder = convert(tmp_path / "t.csv", progress=False)
    np.save(folder / "X.npy", np.ones((4, 1), np.float32))
    refuses(lambda: load(folder), "2 feature names for 1 columns")
