"""Users' tables: every format, and a clear message for every kind of bad input.

Covers ``fsjax.tables.readers.file_type``, ``fsjax.tables.readers.matlab``,
``fsjax.tables.readers.parquet``, ``fsjax.tables.imputation``.
"""

import gzip

import numpy as np
import pandas as pd
import pytest
import scipy.io

from fsjax import data
from fsjax.errors import ConfigError, DataError
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


@pytest.mark.parametrize(("rule", "fill"), [("mean", 2.5), ("median", 1.5)])
def test_impute(tmp_path, rule, fill) -> None:
    (tmp_path / "a.csv").write_text("a,b\n1,1\n,1\n1.5,1\n5,1\n")
    loaded = data.load(str(tmp_path / "a.csv"), impute=rule)
    assert loaded.X[1, 0] == pytest.approx(fill)
    assert rule in loaded.source


BAD_TEXT = {
    "text columns": ("a,city,b\n1,Paris,2\n3,Rome,4\n", "'city' .such as 'Paris'.*get_dummies"),
    "one odd cell": ("a,b\n1,2\n?,4\n", r"'a' \(such as '\?'\)"),
    "missing": ("a,b\n1,\n3,4\n", r"1 missing value \(NaN\) in 1 of 2 columns: 'b'.*data.impute"),
    "infinite": ("a,b\n1,inf\n3,4\n", "1 infinite value in 1 of 2 columns: 'b'"),
    "too large": ("a,b\n1,1e300\n3,4\n", "1 infinite value in "),
    "no rows": ("a,b\n", "no rows"),
    "nothing": ("", "is empty"),
    "blank": ("\n \n", "is empty"),
    "repeated names": ("a,b,a\n1,2,3\n", "more than once: 'a'"),
    "no header": ("0.5,1.5\n2,3\n", "first line.*holds numbers"),
    "long rows": ("a,b\n1,2,3\n4,5,6\n", "more values in a line than column names"),
    "ragged": ("a,b\n1,2\n4,5,6\n", "Expected 2 fields in line 3, saw 3"),
    "html": ("<!DOCTYPE html><html></html>", "is a web page .HTML., not a CSV table"),
    "open quote": (f'"{"a" * 200_000}', "is a quote not closed"),
}


@pytest.mark.parametrize("case", BAD_TEXT)
def test_bad_csv(tmp_path, case) -> None:
    text, message = BAD_TEXT[case]
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(DataError, match=message) as caught:
        data.load(str(tmp_path / "a.csv"))
    assert "a.csv" in str(caught.value)


BAD_TARGET = {
    "misspelt": (
        "heigth",
        "target='heigth' is not a column.*did you mean 'height'.*'age', 'height'",
    ),
    "out of range": (9, "target=9 is not a column.*0 to 4"),
    "constant": ("same", "only one value"),
}


@pytest.mark.parametrize("case", BAD_TARGET)
def test_bad_target(tmp_path, frame, case) -> None:
    target, message = BAD_TARGET[case]
    frame.drop(columns="label").assign(same=1).to_csv(tmp_path / "a.csv", index=False)
    with pytest.raises(DataError, match=message):
        data.load(str(tmp_path / "a.csv"), target=target)


def test_target_with_gaps_and_target_alone(tmp_path) -> None:
    (tmp_path / "a.csv").write_text("a,b\n1,x\n2,\n3,y\n")
    with pytest.raises(DataError, match="no usable value in 1 of 3 rows"):
        data.load(str(tmp_path / "a.csv"), target="b")
    (tmp_path / "b.csv").write_text("b\nx\ny\n")
    with pytest.raises(DataError, match="no columns besides the target"):
        data.load(str(tmp_path / "b.csv"), target="b")


def test_many_bad_columns_are_named_up_to_five(tmp_path) -> None:
    header = ",".join(f"c{i}" for i in range(9))
    (tmp_path / "a.csv").write_text(f"{header}\n{',' * 8}\n{','.join('1' * 9)}\n")
    with pytest.raises(DataError, match="'c0', 'c1', 'c2', 'c3', 'c4' and 4 more"):
        data.load(str(tmp_path / "a.csv"))


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("a.npz", PNG, "is a PNG image, not a NumPy archive"),
        ("a.csv", PNG, "is a PNG image"),
        ("a.csv", gzip.compress(b"a,b\n1,2\n", mtime=0), "is a gzip file"),
        ("a.csv", b"a,b\n\xff\x81,2\n", "not UTF-8"),
        ("a.parquet", b"a,b\n1,2\n", "is text, not a Parquet file"),
        ("a.parquet", b"PAR1 cut short", "cannot be read as a Parquet file"),
        ("a.mat", b"MATLAB 7.3 MAT-file", "v7.3.*save with -v7"),
        ("a.mat", b"MATLAB 5.0 MAT-file" + bytes(200), "cannot be read as a MATLAB file"),
        ("a.npz", b"PK\x03\x04 cut short", "cannot be read as a NumPy archive .*zip file"),
        ("a.npz", b"version https://git-lfs.github.com/spec/v1\n", "Git LFS pointer"),
        ("a.libsvm", b"nothing like it\n", "cannot be read as a LIBSVM file"),
    ],
)
def test_files_that_are_not_what_their_name_says(tmp_path, file, content, message) -> None:
    (tmp_path / file).write_bytes(content)
    with pytest.raises(DataError, match=message):
        data.load(str(tmp_path / file))


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"features": np.ones((2, 2))}, "no array named 'X'; it holds features"),
        ({"X": np.array([[1, "a"]], dtype=object)}, "Object arrays cannot be loaded"),
        ({"X": np.array([["a", "b"]])}, "not real numbers"),
        ({"X": np.ones((2, 2)), "y": np.arange(3)}, r"a.npz: y has shape \(3,\), expected \(2,\)"),
        ({"X": np.ones((2, 2)), "y": np.ones(2)}, "only one value"),
        ({"X": np.ones(3)}, "table of .rows, columns."),
        ({"X": np.ones((0, 3))}, "is empty"),
        ({"X": np.full((2, 2), np.nan)}, "4 missing values"),
        ({"X": np.ones((2, 2)), "y": np.array([1j, 2])}, "the type complex128; give real numbers"),
    ],
)
def test_bad_arrays(tmp_path, arrays, message) -> None:
    np.savez(tmp_path / "a.npz", **arrays)
    with pytest.raises(DataError, match=message):
        data.load(str(tmp_path / "a.npz"))


@pytest.mark.parametrize(
    ("name", "target", "message"),
    [
        ("empty.csv", "a", "empty.csv is empty: there are column names but no rows"),
        ("frame.csv", None, "name the column to predict .--target.; the columns are 'age'"),
        ("arrays.npz", None, "arrays.npz has no array y; name the one that holds the target"),
    ],
)
def test_frames_need_rows_and_a_target(tmp_path, frame, name, target, message) -> None:
    (tmp_path / "empty.csv").write_text("a,b\n")
    frame.to_csv(tmp_path / "frame.csv", index=False)
    np.savez(tmp_path / "arrays.npz", X=np.ones((2, 2)))
    with pytest.raises(DataError, match=message):
        load_frame(str(tmp_path / name), target=target)


def test_text_targets_of_matlab_files_have_no_empty_cells(tmp_path) -> None:
    labels = np.array([["one"], [""]], dtype=object)
    scipy.io.savemat(tmp_path / "a.mat", {"X": np.eye(2), "Y": labels})
    with pytest.raises(DataError, match="its target has empty cells"):
        data.load(str(tmp_path / "a.mat"))


def test_missing_files_and_unknown_suffixes(tmp_path, frame) -> None:
    frame.to_csv(tmp_path / "table.csv", index=False)
    with pytest.raises(DataError, match="there is no file.*did you mean .*table.csv"):
        data.load(str(tmp_path / "tabel.csv"))
    with pytest.raises(DataError, match="is a folder"):
        data.load(str(tmp_path))
    (tmp_path / "a.xyz").write_text("1")
    with pytest.raises(DataError, match="suffix '.xyz', which is not read"):
        data.load(str(tmp_path / "a.xyz"))


def test_bad_options(tmp_path, frame) -> None:
    frame.to_csv(tmp_path / "a.csv", index=False)
    with pytest.raises(ConfigError, match="impute='men': did you mean 'mean'"):
        data.load(str(tmp_path / "a.csv"), target="label", impute="men")
    with pytest.raises(ConfigError, match="impute='men': did you mean 'mean'"):
        data.load("digits", impute="men")
    with pytest.raises(ConfigError, match="no option 'imput'; did you mean 'impute'"):
        data.load(str(tmp_path / "a.csv"), imput="mean")
    (tmp_path / "b.csv").write_text("a,b\n,1\n,2\n")
    with pytest.raises(DataError, match="have no values"):
        data.load(str(tmp_path / "b.csv"), impute="mean")
