"""Separators, decimal marks, quotes and unusual characters of text tables.

Covers ``fsjax.tables.readers.decimal_commas``.
"""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fsjax.data import convert, load, load_table
from fsjax.errors import ConfigError, DataError
from fsjax.tables.readers.table_files import load_frame
from fsjax.tables.readers.text import dialect_of


def write(folder: Path, name: str, text: str) -> str:
    path = folder / name
    path.write_bytes(text.encode())
    return str(path)


SEMICOLONS = "a;b;label\n1,5;2;x\n2,25;3;y\n-,5;4;x\n"


def test_semicolons_and_decimal_commas_are_detected_and_said(tmp_path: Path) -> None:
    path = write(tmp_path, "a.csv", SEMICOLONS)
    table = load_table(path, target="label")
    np.testing.assert_array_equal(table.X, [[1.5, 2], [2.25, 3], [-0.5, 4]])
    assert "separated by ';'" in table.source and "decimal commas" in table.source
    frame, _, remarks, _ = load_frame(path, "label")
    assert frame["a"].tolist() == [1.5, 2.25, -0.5]
    assert remarks == (
        "its columns are separated by ';', not ','", "its numbers have decimal commas",
    )  # fmt: skip
    # The same in a table that is read from disk.
    np.testing.assert_array_equal(load(convert(path, target="label")).X, table.X)


def test_named_separators_and_decimal_marks_override(tmp_path: Path) -> None:
    path = write(tmp_path, "a.csv", SEMICOLONS)
    frame = load_frame(path, "label", separator=";", decimal=".").frame
    assert frame["a"].tolist() == ["1,5", "2,25", "-,5"]
    path = write(tmp_path, "b.csv", "a:b\n1:2\n3:4\n")
    assert load_frame(path, "b", separator=":").frame["a"].tolist() == [1, 3]
    path = write(tmp_path, "c.csv", "a\tb\n1\t2\n3\t4\n")
    assert load(path, target="b", separator="tab").X.tolist() == [[1], [3]]
    with pytest.raises(ConfigError, match="separator='ab'; give one character"):
        load_table(path, separator="ab")
    with pytest.raises(ConfigError, match="decimal=';'; choose '.' or ','"):
        load_table(path, decimal=";")
    frame.to_parquet(tmp_path / "a.parquet")
    with pytest.raises(ConfigError, match="separator=';' is for .csv, .tsv and .txt files"):
        load_table(str(tmp_path / "a.parquet"), separator=";")


@pytest.mark.parametrize(
    ("text", "usual", "expected"),
    [
        ("a,b\n1,2\n", ",", (",", ".")),
        ("a;b\n1;2\n", ",", (";", ".")),
        ("a\tb\n1\t2\n", ",", ("\t", ".")),
        ("a|b\n1|2\n", ",", ("|", ".")),
        ("one\n1\n2\n", ",", (",", ".")),
        ("a,remark\n1,x; y\n2,z; w\n", ",", (",", ".")),
        ('a,b\n"1,5",2\n"2,5",3\n', ",", (",", ",")),
        ('a,b\n"1,500",2\n"2,500",3\n', ",", (",", ".")),
        ("a;b\n1.234,5;2\n12,5;3\n", ",", (";", ",")),
        ("a;b\n1,234;2.5\n", ",", (";", ".")),
        ("a b\n1  2\n", None, (r"\s+", ".")),
        ("a;b\n1,5;2,5\n", None, (";", ",")),
        ('a;"b, c\nd"\n1;2\n', ",", (";", ".")),
    ],
)
def test_dialects(text: str, usual: str | None, expected: tuple[str, str]) -> None:
    dialect = dialect_of(text, usual)
    assert (dialect.separator, dialect.decimal) == expected


def test_a_tsv_with_an_index_column_is_read(tmp_path: Path) -> None:
    frame = pd.DataFrame({"a": [1.5, 2.5, 3.5], "b": [1, 2, 3]})
    frame.to_csv(tmp_path / "a.tsv", sep="\t")
    assert load(str(tmp_path / "a.tsv"), target="b").feature_names == ("a",)
    frame.index += 1  # as R saves it
    frame.to_csv(tmp_path / "r.csv")
    assert load(str(tmp_path / "r.csv"), target="b").feature_names == ("a",)


def test_line_ends_within_quotes_and_unusual_ones_within_cells(tmp_path: Path) -> None:
    text = 'a,"two\nlines",label\n1,"x\ny",p\n2,"u\u2028v\x0cw\x85z",q\n'
    frame, target, _, _ = load_frame(write(tmp_path, "a.csv", text), "label")
    assert list(frame.columns) == ["a", "two\nlines"]
    assert frame["two\nlines"].tolist() == ["x\ny", "u\u2028v\x0cw\x85z"]
    assert target.tolist() == ["p", "q"]
    path = write(tmp_path, "b.csv", "a\u2028b,label\n1,p\n2,q\n")
    assert list(load_frame(path, "label").frame.columns) == ["a\u2028b"]


def test_separators_at_line_ends(tmp_path: Path) -> None:
    path = write(tmp_path, "a.csv", "a,b,\n1,2,\n3,4,\n")
    assert load(path, target="b").X.tolist() == [[1], [3]]
    with pytest.raises(DataError, match="column 2 .*has values but no name"):
        load(write(tmp_path, "b.csv", "a,,b\n1,2,3\n4,5,6\n"), target="b")


def test_a_quote_that_is_never_closed_is_named(tmp_path: Path) -> None:
    path = write(tmp_path, "a.csv", 'a,b\n1,"2\n3,4\n')
    with pytest.raises(DataError, match="check the quotes"):
        load(path, target="b")


def test_whole_numbers_beyond_64_bits_are_numbers(tmp_path: Path) -> None:
    path = write(tmp_path, "a.csv", f"a,b\n{2**64 + 1},1\n2,0\n,1\n")
    X = load(path, target="b", impute="mean").X
    np.testing.assert_allclose(X[:, 0], [2.0**64, 2, 2.0**63])


def test_points_of_thousands_and_gaps_in_yes_or_no(tmp_path: Path) -> None:
    path = write(tmp_path, "a.csv", "a;b;c;y\n1.234;True;1,5;0\n5.678;;2,5;1\n9.012;False;0,5;0\n")
    frame = load_frame(str(path), "y")[0]
    assert frame["a"].tolist() == [1234, 5678, 9012]
    assert frame["b"].dropna().tolist() == [True, False] and frame["b"].dtype == object
    assert frame["c"].tolist() == [1.5, 2.5, 0.5]


def test_encodings_of_excel_are_read_and_said(tmp_path: Path) -> None:
    text = "größe;label\n1,5;x\n2,5;y\n"
    (tmp_path / "windows.csv").write_bytes(text.encode("cp1252"))
    frame, _, remarks, _ = load_frame(str(tmp_path / "windows.csv"), "label")
    assert frame["größe"].tolist() == [1.5, 2.5]
    assert remarks[0] == "it is not UTF-8 text and is read as Windows-1252"
    (tmp_path / "utf16.csv").write_bytes(text.encode("utf-16"))
    frame, _, remarks, _ = load_frame(str(tmp_path / "utf16.csv"), "label")
    assert frame["größe"].tolist() == [1.5, 2.5] and len(remarks) == 2


def test_a_line_that_names_the_separator_for_excel(tmp_path: Path) -> None:
    path = write(tmp_path, "a.csv", "sep=:\r\na:b\r\n1:2\r\n3:4\r\n")
    assert load(path, target="b").X.tolist() == [[1], [3]]


def test_long_cells(tmp_path: Path) -> None:
    path = write(tmp_path, "a.csv", f"a;text;b\n1,5;{'x' * 200_000};1\n2,5;y;0\n")
    assert load_frame(path, "b", separator=";", decimal=",").frame["a"].tolist() == [1.5, 2.5]
    path = write(tmp_path, "b.csv", f"a,text,b\n1.5,{'x' * 200_000},1\n2.5,y,0\n")
    assert load_frame(path, "b").frame["a"].tolist() == [1.5, 2.5]


def test_quoted_names_between_spaces(tmp_path: Path) -> None:
    # As write.table of R writes them.
    text = '"a b" "c"  "label"\n1.5 2 "x y"\n2.5 3 "z"\n'
    table = load_table(write(tmp_path, "a.txt", text), target="label")
    assert (table.feature_names, table.class_names) == (("a b", "c"), ("x y", "z"))
    np.testing.assert_array_equal(table.X, [[1.5, 2], [2.5, 3]])


@pytest.mark.parametrize("separator", [",", ";"])
def test_quoted_names_are_not_notes(tmp_path: Path, separator: str) -> None:
    # As write.csv of R and QUOTE_NONNUMERIC of pandas write them.
    rows = [
        ["", "a; in cm, dry", "label"],
        *([f"{row}", row / 4, "x" * (row % 2 + 1)] for row in range(1, 9)),
    ]
    path = tmp_path / "a.csv"
    with path.open("w", newline="") as file:
        csv.writer(file, delimiter=separator, quoting=csv.QUOTE_NONNUMERIC).writerows(rows)
    table = load_table(str(path), target="label")
    assert table.feature_names == ("a; in cm, dry",)
    assert table.X[:, 0].tolist() == [row / 4 for row in range(1, 9)]


def test_names_with_colons_are_not_libsvm(tmp_path: Path) -> None:
    path = write(tmp_path, "a.txt", "a\tgene:b\tlabel\n1\t2\tx\n3\t4\ty\n")
    assert load_table(path, target="label").feature_names == ("a", "gene:b")
    path = write(tmp_path, "b.txt", "1 qid:1 2:0.5\n0 qid:1 1:0.25\n")
    np.testing.assert_array_equal(load_table(path, dense=True).X, [[0, 0.5], [0.25, 0]])


@pytest.mark.parametrize(
    ("header", "doubted"), [("5,1,3", True), ("1,3,5", False), ("5,a,3", False)]
)
def test_a_first_line_of_numbers_in_no_order_may_be_a_row(
    tmp_path: Path, header: str, doubted: bool
) -> None:
    (tmp_path / "a.csv").write_text(f"{header}\n1,2,0\n3,4,1\n")
    doubts = load_frame(str(tmp_path / "a.csv"), header[-1]).warnings
    assert ["'5', '1', '3'" in doubt for doubt in doubts] == [True] * doubted
