"""Conversion gives the same numbers as the readers in memory, and is complete or absent."""

from __future__ import annotations

import resource
import signal
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from bad_calls import bad_calls, refuses

from fsjax.__main__ import main
from fsjax.data import convert, load, load_table
from fsjax.errors import ConfigError, DataError
from fsjax.tables.readers import conversion


def frame(rows: int = 60) -> pd.DataFrame:
    """A column of fractions, one of whole numbers, and a text label."""
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "a b": rng.normal(size=rows).round(6),
            "label": np.where(np.arange(rows) % 3 == 0, "no", "yes"),
            "n": rng.integers(0, 1000, rows),
        }
    )


def write(folder: Path, kind: str, table: pd.DataFrame) -> Path:
    """Write a table in one of the forms that can be converted."""
    path = folder / f"table.{kind}"
    if kind == "folder":
        path.mkdir()
        table[:25].to_parquet(path / "part-0.parquet")
        table[25:].to_parquet(path / "part-1.parquet")
    elif kind == "parquet":
        table.to_parquet(path, row_group_size=17)
    else:
        table.to_csv(path, index=kind == "csv", sep="," if kind == "csv" else "\t")
    return path


@pytest.mark.parametrize("times", [False, True])
@pytest.mark.parametrize("kind", ["csv", "tsv", "parquet", "folder"])
def test_the_numbers_are_those_of_the_table_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, times: bool
) -> None:
    table = frame()
    if times:
        # In float32 all of them would be equal.
        table["seconds"] = 1.6e9 + np.arange(len(table))
    path = write(tmp_path, kind, table)
    table.to_csv(tmp_path / "plain.csv", index=False)
    wanted = load(tmp_path / "plain.csv", target="label")
    monkeypatch.setattr(conversion, "rows_of_block", lambda columns: 7)
    folder = convert(path, tmp_path / "converted", "label", progress=False)
    stored = load(folder)
    np.testing.assert_array_equal(np.asarray(stored.X), wanted.X)
    assert stored.X.dtype == wanted.X.dtype == (np.float64 if times else np.float32)
    np.testing.assert_array_equal(stored.y, wanted.y)
    assert (stored.class_names, stored.feature_names) == (wanted.class_names, wanted.feature_names)
    assert not list(tmp_path.glob(".*.partial"))


@pytest.mark.parametrize("index", [["a b", "n"], "step", "n"])
def test_named_columns_of_the_index_are_columns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, index: str | list[str]
) -> None:
    # pandas stores the evenly spaced numbers as a range.
    table = frame().assign(step=lambda columns: 3 * np.arange(len(columns)) + 5).set_index(index)
    table.to_parquet(tmp_path / "table.parquet")
    whole = load_table(str(tmp_path / "table.parquet"), target="label")
    expected = table.reset_index().drop(columns="label")
    assert whole.feature_names == tuple(expected)
    np.testing.assert_allclose(whole.X, expected)
    monkeypatch.setattr(conversion, "rows_of_block", lambda columns: 7)
    stored = load(convert(tmp_path / "table.parquet", target="label", progress=False))
    assert stored.feature_names == whole.feature_names
    np.testing.assert_array_equal(np.asarray(stored.X), whole.X)


def test_a_folder_that_exists_is_left_alone(tmp_path: Path) -> None:
    path = write(tmp_path, "parquet", frame())
    folder = convert(path, None, "label", progress=False)
    before = (folder / "X.npy").stat().st_mtime_ns
    with pytest.raises(DataError, match="table.parquet.fsjax exists; remove it, or name another"):
        convert(path, None, "label", progress=False)
    assert (folder / "X.npy").stat().st_mtime_ns == before
    with pytest.raises(ConfigError, match="target='n', but .* was converted with its target"):
        load(folder, target="n")
    contents = (folder / "X.npy").read_bytes()
    (folder / "X.npy").write_bytes(contents[:-4])
    with pytest.raises(DataError, match="X.npy cannot be read as a NumPy file"):
        load(folder)


def test_what_is_interrupted_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path, "parquet", frame())

    def stopped(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(conversion, "write_text", stopped)
    with pytest.raises(KeyboardInterrupt):
        convert(path, tmp_path / "made", "label", progress=False)
    assert [item.name for item in tmp_path.iterdir()] == ["table.parquet"]


def test_a_full_disk_is_one_line_and_leaves_nothing(tmp_path: Path) -> None:
    path = write(tmp_path, "parquet", frame(2000))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
    try:
        with pytest.raises(DataError, match="cannot be written: .*; what was written is removed"):
            convert(path, tmp_path / "made", "label", progress=False)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, before)
    assert [item.name for item in tmp_path.iterdir()] == ["table.parquet"]


@bad_calls(
    ("a,b\n1,x\n2,y\n", None, "1 of 2 columns that are not numbers: 'b'"),
    ("a,b\n1,2\n3,4,5\n", None, "Expected 2 fields in line 3, saw 3"),
    ("a,a\n1,2\n", None, "column names more than once: 'a'"),
    ("a,b\n", None, "it has no rows"),
    ("", None, "no line of column names"),
    ("a,b\n1,2\n", "c", "target='c' is not a column"),
    ("a,b\n1,2\n", True, "target=True; give the name or the number"),
    ("a,b\n1,2\n", 1.5, "target=1.5"),
    ("a\n1\n", "a", "no columns besides the target"),
    (",b\n5,2\n", None, "column 1 ", "has values but no name"),
    ("a,,b\n1,2,3\n", None, "column 2 ", "has values but no name"),
    (("t.xlsx", b"a"), None, "not converted"),
    (("t.parquet", b"a"), None, "cannot be read"),
    (("t.parquet", {"a": [1, 2], "b": ["x", "y"]}), None, "1 of 2 columns", "not numbers: 'b'"),
    (("t.parquet", {"a": [1, 2]}), "a", "no columns besides the target"),
    (("t.parquet", {"a": [1, 2], "b": ["x", None]}), "b", "1 missing value"),
    (("nothing.csv", None), None, "there is no file or folder"),
    (("empty", "folder"), None, "no .parquet files"),
)
def test_mistakes(bad: tuple, tmp_path: Path) -> None:
    content, target, *words = bad
    name, content = content if isinstance(content, tuple) else ("t.csv", content.encode())
    if isinstance(content, dict):
        pd.DataFrame(content).to_parquet(tmp_path / name)
    elif content == "folder":
        (tmp_path / name).mkdir()
    elif content is not None:
        (tmp_path / name).write_bytes(content)
    refuses(lambda: convert(tmp_path / name, tmp_path / "made", target, progress=False), *words)
    assert not (tmp_path / "made").exists()


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path, "parquet", frame())
    folder = str(tmp_path / "made")
    assert main(["convert", str(path), folder, "--target=label", "--quiet"]) == 0
    assert f"{folder} is ready" in capsys.readouterr().out
    assert load(folder).num_classes == 2
    assert main(["convert", str(tmp_path / "none.csv")]) == 2
    assert "there is no file or folder" in capsys.readouterr().err


def test_a_converted_text_table_is_the_one_that_is_read_whole(tmp_path: Path) -> None:
    """The same rules hold for quotes, missing values, decimal commas, spaces and short lines."""
    path = tmp_path / "t.csv"
    lines = [f'{i}; "{i},25";{"NA" if i % 2 else i}; {i % 3}' for i in range(40)] + ["40;1,5"]
    path.write_text('id;"the ""b""";c;label\n' + "\n".join(lines) + "\n")
    whole = load_table(str(path), target="id", impute="mean").X
    stored = np.load(convert(path, target="id", progress=False) / "X.npy")
    missing = np.isnan(stored)
    np.testing.assert_array_equal(stored[~missing], whole[~missing])
    assert missing[:40, 1].tolist() == [bool(i % 2) for i in range(40)]
    assert missing[40].tolist() == [False, True, True]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "cp1252"])
def test_encodings_and_nameless_columns_have_the_same_rules_in_blocks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, encoding: str
) -> None:
    path = tmp_path / "t.csv"
    lines = [f"{i + 1};{i},5;{2**64 + i};{i % 2},5;" for i in range(20)]
    path.write_text("\nsep=;\n;größe;b;label;\n" + "\n".join(lines) + "\n", encoding=encoding)
    monkeypatch.setattr(conversion, "rows_of_block", lambda columns: 7)
    whole = load_table(str(path), target="label")
    stored = load(convert(path, target="label", progress=False))
    assert stored.feature_names == whole.feature_names == ("größe", "b")
    np.testing.assert_array_equal(np.asarray(stored.X), whole.X)
    np.testing.assert_array_equal(stored.y, whole.y)
    assert ("Windows-1252" in stored.source) == (encoding == "cp1252")
    assert "decimal commas" in stored.source


def test_an_index_without_a_name_is_not_a_column(tmp_path: Path) -> None:
    table = frame()[["a b", "label"]].iloc[[0, 3, 4, 7]]
    table.to_parquet(tmp_path / "table.parquet")
    stored = load(convert(tmp_path / "table.parquet", target="label", progress=False))
    whole = load_table(str(tmp_path / "table.parquet"), target="label")
    assert stored.feature_names == whole.feature_names == ("a b",)
    np.testing.assert_array_equal(np.asarray(stored.X), whole.X)


def test_labels_and_rows_are_those_in_memory(tmp_path: Path) -> None:
    for name, cells in (("bool", ["TRUE", "false", "False", "true"]), ("text", ["x", "y"])):
        rows = [f"{row},{cells[row % len(cells)]}" for row in range(12)]
        path = tmp_path / f"{name}.csv"
        path.write_text("\n".join(["a,label", *rows, *["66,Total"] * (name == "text")]))
        wanted = load_table(str(path), target="label")
        stored = load(convert(path, target="label", progress=False))
        np.testing.assert_array_equal(stored.X, wanted.X)
        np.testing.assert_array_equal(stored.y, wanted.y)
        assert stored.class_names == wanted.class_names
    assert len(stored.X) == 12 and "a total ('Total')" in stored.source
