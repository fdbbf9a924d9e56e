"""Units, totals, repeated column names, notes and Ctrl-Z in files; thousands and decimal marks.

Covers ``fsjax.tables.readers.stray_rows``, ``fsjax.tables.readers.column_names``.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fsjax.auto.reading.columns import design
from fsjax.data import convert, load, load_table
from fsjax.errors import ConfigError, DataError
from fsjax.tables.readers.table_files import LoadedFrame, load_frame

HEADER = "a,b,y\n"
LINES = [f"{number / 4},{number % 5 + 0.5},{'pq'[number % 2]}" for number in range(20)]
ROWS = "\n".join(LINES) + "\n"


def read(folder: Path, text: str, **options: object) -> LoadedFrame:
    path = folder / "t.csv"
    path.write_text(text, encoding="utf-8")
    return load_frame(str(path), "y", **options)


@pytest.mark.parametrize(
    ("text", "remark"),
    [
        (HEADER + "mg/l,cm,\n" + ROWS, "holds units ('mg/l', 'cm')"),
        (HEADER + "[mg],[-],class\n" + ROWS, "holds units"),
        (HEADER + ROWS + "12.5,3,Total\n", "holds a total ('Total')"),
        (HEADER + ROWS + "Summe,3,\n", "holds a total ('Summe')"),
        (HEADER + ROWS + "Mean:,3.1,\n", "holds a total ('Mean:')"),
        (HEADER + "mg,cm,\n" + ROWS + "Total,3,\n", "units ('mg', 'cm')"),
        (
            HEADER + ROWS[: len(LINES[0]) + 1] + HEADER + ROWS[len(LINES[0]) + 1 :],
            "again in 1 row ",
        ),
        (HEADER + ROWS + "\x1a", "Ctrl-Z"),
        (HEADER + ROWS.rstrip() + "\x1a", "Ctrl-Z"),
    ],
)
def test_rows_that_are_not_data_are_left_out_and_said(
    tmp_path: Path, text: str, remark: str
) -> None:
    frame, target, remarks, _ = read(tmp_path, text)
    assert len(frame) == 20 and frame["a"].tolist() == [number / 4 for number in range(20)]
    assert set(target) == {"p", "q"} and any(remark in text for text in remarks)
    np.testing.assert_array_equal(
        load_table(str(tmp_path / "t.csv"), target="y").X[:, 0], frame["a"]
    )


def test_rows_that_only_look_so_stay(tmp_path: Path) -> None:
    frame, _, remarks, _ = read(
        tmp_path, "k,b,y\n" + "red,1,p\nTotal,2,q\nblue,3,p\n" * 4 + "Total,4,q\n"
    )
    assert len(frame) == 13 and not remarks


@pytest.mark.parametrize(
    "notes",
    ["Instrument: XY 200\nExported: 2024\n", "Title,,\n", "Title\n\n", "# by x\n# version, 2\n"],
)
def test_notes_above_the_column_names(tmp_path: Path, notes: str) -> None:
    count = notes.count("\n")
    with pytest.raises(DataError, match=f"--skip-rows={count}"):
        read(tmp_path, notes + HEADER + ROWS)
    frame, *_ = read(tmp_path, notes + HEADER + ROWS, skip_rows=count)
    assert list(frame.columns) == ["a", "b"] and len(frame) == 20
    path = str(tmp_path / "t.csv")
    assert load(path, target="y", skip_rows=count).feature_names == ("a", "b")
    with pytest.raises(ConfigError, match="skip_rows=-1; give a number of lines"):
        load(path, target="y", skip_rows=-1)


def test_longer_lines_of_text_are_no_column_names(tmp_path: Path) -> None:
    # Separators at line ends, and within quotes.
    for row in ("u,p,\nv,q,\n", '"u, v",p\n"w, x",q\n'):
        assert read(tmp_path, "a,y\n" + row * 9).frame.shape == (18, 1)


def test_notes_above_semicolons_and_decimal_commas(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="--skip-rows=1"):
        read(tmp_path, "Titel\n" + (HEADER + ROWS).replace(",", ";").replace(".", ","))


def semicolons(first: list[str], second: list[str]) -> str:
    rows = zip(np.resize(first, 18), np.resize(second, 18), np.resize(["p", "q"], 18), strict=True)
    return "c;o;y\n" + "\n".join(map(";".join, rows)) + "\n"


def test_points_are_thousands_marks_where_commas_are_decimal(tmp_path: Path) -> None:
    text = semicolons(["2.551", "809"], ["1,5", "0,2", "3,1"])
    frame, _, remarks, _ = read(tmp_path, text)
    assert frame["c"].tolist()[:2] == [2551, 809] and frame["o"].tolist()[:2] == [1.5, 0.2]
    assert "points are thousands marks (2.551 is 2551)" in remarks
    path = str(tmp_path / "t.csv")
    np.testing.assert_array_equal(load(convert(path, target="y")).X, frame.astype(np.float32))
    np.testing.assert_array_equal(load(path, target="y").X, frame.astype(np.float32))
    frame = read(tmp_path, semicolons(["2.551", "809"], ["1", "2"]), decimal=",").frame
    assert frame["c"].tolist()[:2] == [2551, 809]
    # A column with decimal points has no thousands marks.
    mixed = read(tmp_path, semicolons(["-1.427", "0.788"], ["1,5", "0,2", "3,1"]))
    assert not any("thousands" in remark for remark in mixed.remarks)


def test_points_of_thousands_beside_other_texts(tmp_path: Path) -> None:
    frame = read(tmp_path, semicolons(["2.551", "809", "12", "k.A."], ["1,5", "0,2"])).frame
    values = design(frame, "median").X[:4, 0]
    assert values[:3].tolist() == [2551, 809, 12] and np.isnan(values[3])


def test_a_comma_before_three_digits_is_said_and_overridden(tmp_path: Path) -> None:
    text = semicolons(["6,437", "809"], ["1", "2"])
    frame, _, _, warnings = read(tmp_path, text)
    assert frame["c"].iloc[0] == 6.437 and "'6,437'" in warnings[0] and "--decimal=." in warnings[0]
    table = design(read(tmp_path, text, decimal=".").frame)
    assert table.X[0, 0] == 6437 and "notation" not in {note.kind for note in table.notes}
    quoted = text.replace("6,437", '"6,437"').replace(";", ",")
    table = design(read(tmp_path, quoted).frame)
    assert table.X[0, 0] == 6437 and "notation" in {note.kind for note in table.notes}
    assert read(tmp_path, quoted, decimal=",").frame["c"].iloc[0] == 6.437
    leading_zero = read(tmp_path, quoted.replace("6,437", "0,572"))
    assert leading_zero.frame["c"].iloc[0] == 0.572 and not leading_zero.warnings


def test_units_in_a_workbook(tmp_path: Path) -> None:
    frame = pd.DataFrame({"a": ["mg", *range(9)], "y": ["", *"pqpqpqpqp"]})
    frame.to_excel(tmp_path / "t.xlsx", index=False)
    loaded = load_frame(str(tmp_path / "t.xlsx"), "y")
    assert loaded.frame["a"].tolist() == list(range(9)) and "units" in loaded.remarks[0]
