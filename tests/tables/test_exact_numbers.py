"""Numbers that float32 cannot distinguish keep their precision until they are shifted."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array, save_npz
from sklearn.datasets import dump_svmlight_file

import fsjax
from fsjax.tables.readers.formats import compact
from fsjax.tables.readers.target_columns import encode_target


@pytest.mark.parametrize("suffix", ["csv", "parquet", "npz"])
def test_seconds_since_1970_stay_apart(suffix: str, tmp_path: Path) -> None:
    rng, rows = np.random.default_rng(0), 60
    y = np.resize([0, 1], rows)
    # The class depends on the minute; float32 numbers of this size have steps of 128 seconds.
    seconds = 1.7e9 + 60 * y + rng.permutation(rows) / 2
    frame = pd.DataFrame({"a": rng.normal(size=rows), "seconds": seconds, "c": 0.3})
    path = tmp_path / f"table.{suffix}"
    if suffix == "csv":
        frame.assign(label=y).to_csv(path, index=False)
    elif suffix == "parquet":
        frame.assign(label=y).to_parquet(path)
    else:
        np.savez(path, X=frame.to_numpy(), y=y)
    table = fsjax.data.load(path, target=None if suffix == "npz" else "label")
    assert table.X.dtype == np.float64 and len(np.unique(table.X[:, 1])) == rows
    method = fsjax.methods.fisher_score(1)
    of_file = fsjax.fit(method, table, scaling="standard")
    of_arrays = fsjax.fit(method, (frame.to_numpy(), y), scaling="standard")
    np.testing.assert_array_equal(of_file.selected, [[1]])
    np.testing.assert_array_equal(of_file.scores, of_arrays.scores)


@pytest.mark.parametrize("offset", [0.0, 50.0])
def test_ordinary_numbers_are_float32(offset: float, tmp_path: Path) -> None:
    X = offset + np.random.default_rng(0).normal(size=(40, 3))
    X[3, 1] = np.nan
    pd.DataFrame(X, columns=list("abc")).assign(y=np.resize([0, 1], 40)).to_csv(
        tmp_path / "t.csv", index=False
    )
    table = fsjax.data.load(tmp_path / "t.csv", target="y", impute="mean")
    assert table.X.dtype == np.float32


@pytest.mark.parametrize("rule", ["mean", "class_mean"])
def test_seconds_stay_apart_if_other_cells_are_filled(rule: str) -> None:
    X = np.column_stack([1.7e9 + 7 * np.arange(20), np.arange(20)])
    X[3, 1] = np.nan
    filled = fsjax.data.impute(X, np.resize([0, 1], 20), rule, "table")
    np.testing.assert_array_equal(filled[:, 0], X[:, 0])
    assert filled.dtype == X.dtype and np.isfinite(filled).all()


@pytest.mark.parametrize("suffix", ["libsvm", "npz"])
def test_seconds_in_sparse_files_stay_apart(suffix: str, tmp_path: Path) -> None:
    path, y = tmp_path / f"table.{suffix}", np.resize([0, 1], 30)
    for first, expected in ((1_700_000_000, np.float64), (100, np.float32)):
        X = csr_array(np.column_stack([first + 7 * np.arange(30), y, 0 * y]).astype(float))
        if suffix == "libsvm":
            dump_svmlight_file(X, y, str(path))
        else:
            save_npz(path, X)
        for dense in (False, True):
            read = fsjax.data.load(path, dense=dense).X
            assert read.dtype == expected and (read if dense else read.toarray())[3, 0] == X[3, 0]


def test_zeros_count_into_the_range_of_a_sparse_column() -> None:
    X = csr_array(1.7e9 + 7 * np.arange(30).reshape(-1, 1))
    assert compact(X).dtype == np.float64
    X.data[3] = np.nan
    assert compact(X).dtype == np.float64
    assert compact(csr_array(np.vstack([X.toarray(), [[0.0]]]))).dtype == np.float32


def test_labels_beyond_the_whole_numbers_of_floats_are_classes_of_their_own() -> None:
    y, names = encode_target(np.array([2**53, 2**53 + 1, 2**53]), "the target")
    assert y.tolist() == [0, 1, 0] and names == ("9007199254740992", "9007199254740993")
