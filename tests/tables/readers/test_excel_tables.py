"""Excel workbooks as tables.

Covers ``fsjax.tables.readers.excel``.
"""

from __future__ import annotations

import sys
from datetime import datetime
from pathlib import Path

import numpy as np
import openpyxl
import pytest

from fsjax.data import load
from fsjax.errors import DataError
from fsjax.tables.readers.table_files import load_frame


@pytest.fixture
def workbook(tmp_path: Path) -> Path:
    """Two sheets; the first has numbers, a missing value, a failed formula, text and dates."""
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.title = "patients"
    sheet.append([None, "age", "dose", "city", "day", "label"])
    for row, (age, dose) in enumerate([(50, 1.5), (61, None), (72, "#N/A"), (40, 2.5)]):
        sheet.append([row, age, dose, "Bonn", datetime(2024, 1, row + 1), "ab"[row % 2]])
    book.create_sheet("notes")
    book.save(tmp_path / "a.xlsx")
    return tmp_path / "a.xlsx"


def test_the_first_sheet_is_read(workbook: Path) -> None:
    frame, target, remarks, _ = load_frame(str(workbook), "label")
    assert list(frame.columns) == ["age", "dose", "city", "day"]
    assert frame["age"].tolist() == [50, 61, 72, 40] and frame["day"].dtype.kind == "M"
    np.testing.assert_array_equal(frame["dose"], [1.5, np.nan, np.nan, 2.5])
    assert target.tolist() == ["a", "b", "a", "b"]
    assert remarks == (
        "it has 2 sheets; the first, 'patients', is read",
        "it has 1 cells with errors such as '#N/A', taken as missing",
    )


def test_numbers_of_a_sheet_as_a_data_set(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    for row in (["a", "b"], [1, 0], [2.5, 1]):
        book.active.append(row)
    book.save(tmp_path / "b.xlsx")
    for row, formula in enumerate(["double", "=2*A2", "=2*A3"]):
        book.active.cell(row + 1, 3, formula)
    book.save(tmp_path / "c.xlsx")
    (remark,) = load_frame(str(tmp_path / "c.xlsx"), "b").remarks
    assert "formulas without saved values in 'double'; open it in Excel" in remark
    table = load(str(tmp_path / "b.xlsx"), target="b")
    assert table.X.tolist() == [[1], [2.5]] and table.class_names == ("0", "1")


def test_without_openpyxl_the_extra_is_named(workbook: Path, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(DataError, match=r"a\.xlsx: .*pip install 'fsjax\[excel\]'"):
        load_frame(str(workbook), "label")


def test_sheets_without_use(tmp_path: Path, workbook: Path) -> None:
    openpyxl.Workbook().save(tmp_path / "empty.xlsx")
    with pytest.raises(DataError, match="first sheet, 'Sheet', is empty"):
        load_frame(str(tmp_path / "empty.xlsx"), "label")
    with pytest.raises(DataError, match="the workbook"):
        load_frame(str(workbook), "label", max_bytes=10_000)
