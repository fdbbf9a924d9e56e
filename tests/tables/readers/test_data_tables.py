"""Users' tables: every format, and a clear message for every kind of bad input.

Covers ``fsjax.tables.readers.file_type``, ``fsjax.tables.readers.matlab``,
``fsjax.tables.readers.parquet``, ``fsjax.tables.imputation``.
"""

import gzip
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.io
from bad_calls import bad_calls, refuses

from fsjax import data
from fsjax.tables.readers.table_files import load_frame

PNG = b"\x89PNG\r\n\x1a\n" + bytes(100)


@pytest.fixture
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(12, 3)), columns=["age", "height", "mass"])
    return table.assign(count=np.arange(12) // 4, label=["ill", "well"] * 6)


def test_csv_tsv_and_parquet(tmp_path, frame) -> None:
    frame.to_csv(tmp_path / "a.csv", index=False)
    frame.to_csv(tmp_path / "a.tsv", index=False, sep="\t")
    frame.to_csv(tmp_path / "a.txt", index=False, sep=";")
    frame.to_parquet(tmp_path / "a.parquet")
    for suffix in ("csv", "tsv", "txt", "parquet"):
        loaded = data.load(str(tmp_path / f"a.{suffix}"), target="label")
        assert loaded.name == f"a.{suffix}"
        assert loaded.feature_names == ("age", "height", "mass", "count")
        assert loaded.class_names == ("ill", "well")
        assert loaded.X.dtype == np.float32 and loaded.y.dtype == np.int32
        np.testing.assert_allclose(loaded.X, frame.iloc[:, :4].to_numpy(), rtol=1e-6)
        assert loaded.y.tolist() == [0, 1] * 6


@pytest.mark.parametrize("target", ["label", 4, -1, "4", "-1"])
def test_target_by_name_or_number(tmp_path, frame, target) -> None:
    frame.to_csv(tmp_path / "a.csv", index=False)
    assert data.load(str(tmp_path / "a.csv"), target=target).num_classes == 2


@pytest.mark.parametrize("target", [None, ""])
def test_target_is_optional(tmp_path, frame, target) -> None:
    frame.drop(columns="label").to_csv(tmp_path / "a.csv", index=False)
    loaded = data.load(str(tmp_path / "a.csv"), target=target)
    assert loaded.y is None and loaded.num_classes == 0
    assert data.check_task(loaded, "reconstruction") is loaded


def test_relative_path_below_the_data_dir(tmp_path, frame, monkeypatch) -> None:
    frame.to_csv(tmp_path / "a.csv", index=False)
    assert data.load("a.csv", data_dir=tmp_path, target="label").num_samples == 12
    monkeypatch.setenv("FSJAX_DATA", str(tmp_path))
    assert data.load("a.csv", target="label").num_samples == 12


def test_row_numbers_saved_by_pandas_are_no_feature(tmp_path, frame) -> None:
    frame.to_csv(tmp_path / "a.csv")
    assert "age" == data.load(str(tmp_path / "a.csv"), target="label").feature_names[0]


def test_numeric_targets(tmp_path, frame) -> None:
    frame.drop(columns="label").to_csv(tmp_path / "a.csv", index=False)
    path = str(tmp_path / "a.csv")
    real = data.load(path, target="age")
    assert real.y.dtype == np.float32
    assert data.check_task(real, "regression") is real
    whole = data.load(path, target="count")
    assert whole.y.dtype == np.int32
    numbers = data.check_task(whole, "regression").y
    assert numbers.dtype == np.float32 and numbers.tolist() == [0] * 4 + [1] * 4 + [2] * 4


def test_npz_mat_and_libsvm(tmp_path) -> None:
    X = np.arange(20, dtype=np.uint8).reshape(5, 4)
    y = np.array([-1, 1, -1, 1, 1])
    np.savez(tmp_path / "a.npz", X=X, y=y, split=[0, 0, 0, 1, 1], other=y * 2)
    scipy.io.savemat(tmp_path / "a.mat", {"X": X.astype(float), "Y": y[:, None]})
    lines = [
        f"{t} " + " ".join(f"{j + 1}:{v}" for j, v in enumerate(row))
        for t, row in zip(y, X, strict=True)
    ]
    (tmp_path / "a.libsvm").write_text("\n".join(lines))
    (tmp_path / "a.txt").write_text("\n".join(lines))
    for suffix in ("npz", "mat", "libsvm", "txt"):
        sparse = {"dense": True} if suffix in ("libsvm", "txt") else {}
        loaded = data.load(str(tmp_path / f"a.{suffix}"), **sparse)
        np.testing.assert_array_equal(loaded.X, X)
        assert loaded.y.tolist() == [0, 1, 0, 1, 1]
        assert loaded.class_names == ("-1", "1")
    loaded = data.load(str(tmp_path / "a.npz"), target="other")
    assert loaded.X.dtype == np.uint8
    assert loaded.class_names == ("-2", "2")
    assert loaded.official_split.tolist() == [0, 0, 0, 1, 1]


def test_names_of_text_labels_are_the_labels(tmp_path) -> None:
    y = np.array(["b", "a", "b", "a"])
    np.savez(tmp_path / "t.npz", X=np.eye(4), y=y, class_names=np.array(["b", "a"]))
    table = data.load(str(tmp_path / "t.npz"))
    assert [table.class_names[label] for label in table.y] == y.tolist()


@pytest.mark.parametrize(("rule", "fill"), [("mean", 2.5), ("median", 1.5)])
def test_impute(tmp_path, rule, fill) -> None:
    (tmp_path / "a.csv").write_text("a,b\n1,1\n,1\n1.5,1\n5,1\n")
    loaded = data.load(str(tmp_path / "a.csv"), impute=rule)
    assert loaded.X[1, 0] == pytest.approx(fill)
    assert rule in loaded.source


AGES = "age,height,same\n1,2,1\n3,4,1\n"

#: The content of a file, its suffix (``.csv`` for text), options of ``load``, and words.
BAD_FILES = [
    ("a,city,b\n1,Paris,2\n3,Rome,4\n", "'city' ", "'Paris'", "get_dummies"),
    ("a,b\n1,2\n?,4\n", "'a' (such as '?')"),
    ("a,b\n1,\n3,4\n", "1 missing value (NaN) in 1 of 2 columns: 'b'", "data.impute"),
    ("a,b\n1,inf\n3,4\n", "1 infinite value in 1 of 2 columns: 'b'"),
    ("a,b\n1,1e39\n3,4\n", "1 infinite value in ", "beyond 3.4e38"),
    ("a,b\n", "no rows"),
    ("", "is empty"),
    ("\n \n", "is empty"),
    ("a,b,a\n1,2,3\n", "more than once: 'a'"),
    ("0.5,1.5\n2,3\n", "first line", "holds numbers"),
    ("a,b\n1,2,3\n4,5,6\n", "more values in a line than column names"),
    ("a,b\n1,2\n4,5,6\n", "Expected 2 fields in line 3, saw 3"),
    ("<!DOCTYPE html><html></html>", "is a web page (HTML), not a CSV table"),
    (f'"{"a" * 200_000}', "is a quote not closed"),
    ("a,b,c,d,e,f\n,,,,,\n1,1,1,1,1,1\n", "'a', 'b', 'c', 'd', 'e' and 1 more"),
    (AGES, {"target": "heigth"}, "target='heigth'", "did you mean 'height'", "'age', 'height'"),
    (AGES, {"target": 9}, "target=9 is not a column", "0 to 2"),
    (AGES, {"target": "same"}, "only one value"),
    ("a,b\n1,x\n2,\n3,y\n", {"target": "b"}, "no usable value in 1 of 3 rows"),
    ("b\nx\ny\n", {"target": "b"}, "no columns besides the target"),
    (AGES, {"impute": "men"}, "impute='men': did you mean 'mean'"),
    (AGES, {"imput": "mean"}, "no option 'imput'; did you mean 'impute'"),
    (AGES, {"max_bytes": 0}, "max_bytes=0; choose a whole number"),
    ("a,b\n,1\n,2\n", {"impute": "mean"}, "have no values"),
    (PNG, "is a PNG image"),
    (PNG, ".npz", "is a PNG image, not a NumPy archive"),
    (gzip.compress(b"a,b\n1,2\n", mtime=0), "is a gzip file"),
    (b"a,b\n\xff\x81,2\n", "not UTF-8"),
    (b"a,b\n1,2\n", ".parquet", "is text, not a Parquet file"),
    (b"PAR1 cut short", ".parquet", "cannot be read as a Parquet file"),
    (b"MATLAB 7.3 MAT-file", ".mat", "v7.3", "save with -v7"),
    (b"MATLAB 5.0 MAT-file" + bytes(200), ".mat", "cannot be read as a MATLAB file"),
    (b"PK\x03\x04 cut short", ".npz", "cannot be read as a NumPy archive "),
    (b"version https://git-lfs.github.com/spec/v1\n", ".npz", "Git LFS pointer"),
    (b"nothing like it\n", ".libsvm", "cannot be read as a LIBSVM file"),
    ("1", ".xyz", "suffix '.xyz', which is not read"),
    ({"features": np.ones((2, 2))}, "no array named 'X'; it holds features"),
    ({"X": np.array([[1, "a"]], dtype=object)}, "Object arrays cannot be loaded"),
    ({"X": np.array([["a", "b"]])}, "not real numbers"),
    ({"X": np.ones((2, 2)), "y": np.arange(3)}, "a.npz: y has shape (3,), expected (2,)"),
    ({"X": np.ones((2, 2)), "y": np.ones(2)}, "only one value"),
    ({"X": np.ones(3)}, "table of (rows, columns)"),
    ({"X": np.ones((0, 3))}, "is empty"),
    ({"X": np.full((2, 2), np.nan)}, "4 missing values"),
    ({"X": np.ones((2, 2)), "y": np.array([1j, 2])}, "the type complex128"),
    ({"X": np.eye(2), "Y": np.array([["one"], [""]], object)}, ".mat", "target has empty cells"),
]


def written(content: str | bytes | dict, suffix: str, folder: Path) -> Path:
    """The file of a bad call."""
    path = folder / f"a{suffix}"
    if isinstance(content, dict):
        np.savez(path, **content) if suffix == ".npz" else scipy.io.savemat(path, content)
    else:
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


@bad_calls(*BAD_FILES)
def test_bad_files(bad: tuple, tmp_path) -> None:
    content, *words = bad
    suffix = ".npz" if isinstance(content, dict) else ".csv"
    if isinstance(words[0], str) and words[0].startswith("."):
        suffix, *words = words
    options, *words = words if isinstance(words[0], dict) else ({}, *words)
    path = written(content, suffix, tmp_path)
    name = [path.name] if isinstance(content, str | bytes) and not options else []
    refuses(lambda: data.load(str(path), **options), *words, *name)


@bad_calls(
    ("a,b\n", ".csv", "a", "is empty: there are column names but no rows"),
    (AGES, ".csv", None, "name the column to predict (--target)", "'age'"),
    ({"X": np.ones((2, 2))}, ".npz", None, "has no array y; name the one that holds the target"),
)
def test_frames_need_rows_and_a_target(bad: tuple, tmp_path) -> None:
    content, suffix, target, *words = bad
    path = written(content, suffix, tmp_path)
    refuses(lambda: load_frame(str(path), target=target), *words)


def test_files_that_are_not_there(tmp_path, frame) -> None:
    frame.to_csv(tmp_path / "table.csv", index=False)
    refuses(lambda: data.load(str(tmp_path / "tabel.csv")), "no file", "did you mean", "table.csv")
    refuses(lambda: data.load(str(tmp_path)), "is a folder")
    os.mkfifo(tmp_path / "pipe.csv")
    refuses(lambda: data.load(str(tmp_path / "pipe.csv")), "pipe.csv is a pipe or a device; save")
    refuses(lambda: data.load("digits", impute="men"), "impute='men': did you mean 'mean'")
