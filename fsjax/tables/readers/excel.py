"""Excel workbooks (``.xlsx``) as tables; needs the extra ``excel`` (openpyxl)."""

from __future__ import annotations

import io
import zipfile

import pandas as pd

from fsjax.engine.environment.memory_limits import check_bytes
from fsjax.errors import DataError, name_some
from fsjax.extras import require
from fsjax.tables.readers.column_names import check_header, without_nameless_columns

#: Measured ratio of the memory of cells to the size of their text in the file.
_UNFOLDS = 3

#: Values that Excel shows where a formula fails.
_ERRORS = frozenset(
    {"#N/A", "#DIV/0!", "#VALUE!", "#REF!", "#NAME?", "#NUM!", "#NULL!", "#GETTING_DATA"}
)


def excel_frame(data: bytes, max_bytes: int | None) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Read the first sheet of a workbook, whose first non-empty row has the column names.

    Empty cells and formulas that fail are missing values; for other formulas the saved value is
    read.

    Args:
      max_bytes: limit on the memory of the sheet; ``None`` allows half of the free memory.

    Returns:
      The frame, and remarks for the user.

    Raises:
      DataError: if openpyxl is missing, the sheet is empty or too large, or column names are
        repeated or missing.
    """
    require("openpyxl", "reading .xlsx files")
    import openpyxl

    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        unpacked = sum(member.file_size for member in archive.infolist())
    check_bytes(_UNFOLDS * unpacked, max_bytes, "the workbook", "save the sheet as CSV")
    book = openpyxl.load_workbook(io.BytesIO(data), read_only=True, data_only=True)
    sheet = book.worksheets[0]
    rows = [
        row for row in sheet.iter_rows(values_only=True) if any(cell is not None for cell in row)
    ]
    remarks = []
    if len(book.worksheets) > 1:
        remarks.append(f"it has {len(book.worksheets)} sheets; the first, {sheet.title!r}, is read")
    book.close()
    if not rows:
        raise DataError(f"its first sheet, {sheet.title!r}, is empty; move the table to the front")
    width = max(map(len, rows))
    header = ["" if cell is None else str(cell).strip() for cell in rows[0]]
    header += [""] * (width - len(header))
    check_header(header)
    failed = sum(cell in _ERRORS for row in rows[1:] for cell in row if isinstance(cell, str))
    if failed:
        remarks.append(f"it has {failed} cells with errors such as '#N/A', taken as missing")
    cells = [
        [None if isinstance(cell, str) and cell in _ERRORS else cell for cell in row]
        + [None] * (width - len(row))
        for row in rows[1:]
    ]
    empty = {place for place in range(width) if all(row[place] is None for row in cells)}
    if empty and (formulas := [header[place] for place in sorted(empty & _formulas(data))]):
        remarks.append(
            f"it has formulas without saved values in {name_some(formulas)}; open it in Excel or "
            "LibreOffice and save it again"
        )
    frame = pd.DataFrame(cells, columns=range(width), dtype=object).infer_objects()
    frame.columns = header
    return without_nameless_columns(frame), tuple(remarks)


def _formulas(data: bytes) -> set[int]:
    """The columns of the first sheet, from 0, that hold formulas."""
    import openpyxl

    sheet = openpyxl.load_workbook(io.BytesIO(data), read_only=True).worksheets[0]
    cells = (cell for row in sheet.iter_rows() for cell in enumerate(row))
    return {place for place, cell in cells if cell.data_type == "f"}
