"""Text tables (CSV and the like): which separator and decimal mark a file has, and its frame.

Look here for what ``separator=`` and ``decimal=`` of :func:`fsjax.data.load_table` may be.
"""

from __future__ import annotations

import csv
import io
import re
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple, TextIO

import numpy as np
import pandas as pd

from fsjax.errors import ConfigError, DataError
from fsjax.readers.file_type import UTF16_MARKS
from fsjax.tables.checks import name_some

#: Separator of the columns by suffix; what a ``.txt`` has is always detected.
USUAL_SEPARATOR = {".csv": ",", ".tsv": "\t"}

#: Any run of spaces and tabs, as pandas has it.
WHITESPACE = r"\s+"

#: What a separator may be called where a shell makes the character itself hard to type.
SEPARATOR_NAMES = {"tab": "\t", r"\t": "\t", "space": WHITESPACE, " ": WHITESPACE, "comma": ","}

#: Decimal marks.
DECIMAL_MARKS = (".", ",")

_CANDIDATES = (",", ";", "\t", "|")

#: Records, and cells, at the start of a file that tell its dialect.
_RECORDS, _CELLS = 200, 200_000

_PANDAS_PREFIX = "Error tokenizing data. C error: "

_SEPARATOR_LINE = re.compile(r"sep=(.)\r?\n", re.IGNORECASE)
_BLANK_START = re.compile(r"\A(?:[ \t]*\r?\n)+")
_DECIMAL_COMMA = re.compile(r"[+-]?(?:\d{1,3}(?:\.\d{3})+|\d*),\d+(?:[eE][+-]?\d+)?")
_DECIMAL_POINT = re.compile(r"[+-]?(?:\d{1,3}(?:,\d{3})+|\d*)\.\d+(?:[eE][+-]?\d+)?")
_COMMA_OF_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}(?:,\d{3})+")


class Dialect(NamedTuple):
    """How the cells of a text table are written.

    Attributes:
      separator: one character, or :data:`WHITESPACE`.
      decimal: of :data:`DECIMAL_MARKS`.
      remarks: what was detected against the usual, each a sentence without its end.
    """

    separator: str
    decimal: str
    remarks: tuple[str, ...] = ()


def check_separator(separator: str | None) -> str | None:
    """The separator that is meant; ConfigError for what is not one character or its name."""
    if separator is None:
        return None
    if isinstance(separator, str):
        character = SEPARATOR_NAMES.get(separator, separator)
        if character == WHITESPACE or (
            len(character) == 1 and not character.isalnum() and character not in '"\n\r.+-'
        ):
            return character
    raise ConfigError(
        f"separator={separator!r}; give one character that separates columns, such as ';', or "
        "tab, space or comma"
    )


def check_decimal(decimal: str | None) -> str | None:
    """The decimal mark; ConfigError unless it is a point or a comma, or ``None``."""
    if decimal is None or decimal in DECIMAL_MARKS:
        return decimal
    raise ConfigError(f"decimal={decimal!r}; choose '.' or ','")


def dialect_of(
    text: str, usual: str | None, separator: str | None = None, decimal: str | None = None
) -> Dialect:
    """The dialect of a text table, by its first records where it is not named.

    Args:
      text: the table, or its start.
      usual: the separator that the file's suffix promises, or ``None``.
      separator, decimal: as :func:`check_separator` and :func:`check_decimal` have them;
        ``None`` detects them.
    """
    remarks = []
    chosen = separator
    if chosen is None:
        chosen = _detected_separator(text, usual)
        if usual is not None and chosen != usual:
            remarks.append(f"its columns are separated by {_shown(chosen)}, not {_shown(usual)}")
    mark = decimal
    if mark is None:
        mark = _detected_decimal(first_records(text, chosen)[1:], chosen)
        if mark == ",":
            remarks.append("its numbers have decimal commas")
    return Dialect(chosen, mark, tuple(remarks))


def first_records(text: str, separator: str, count: int = _RECORDS) -> list[list[str]]:
    """The stripped cells of the first records, at most ``count``; quoted cells may hold line ends.

    Raises:
      DataError: if the first one cannot be read, as where a quote is never closed.
    """
    if separator == WHITESPACE:
        lines = islice(io.StringIO(text), count)
        return [cells for line in lines if (cells := line.split())]
    # Only line ends separate records: a form feed or U+2028 is part of a cell.
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, skipinitialspace=True)
    records: list[list[str]] = []
    num_cells = 0
    try:
        for record in reader:
            if len(record) > 1 or record and record[0].strip():
                records.append([cell.strip() for cell in record])
                num_cells += len(record)
            if len(records) >= count or num_cells > _CELLS and len(records) > 1:
                break
    except csv.Error as error:
        # The csv module stops at cells of 128 KiB, which pandas reads.
        if records:
            return records
        raise DataError(
            f"line {reader.line_num} cannot be split into cells ({error}); is a quote not closed?"
        ) from None
    return records


def _detected_separator(text: str, usual: str | None) -> str:
    """The usual separator where it splits the header; else the one that splits it most evenly."""
    splits = {}
    for candidate in dict.fromkeys([usual or ",", *_CANDIDATES]):
        try:
            records = first_records(text, candidate, count=20)
        except DataError:
            continue
        width = len(records[0]) if records else 0
        even = all(len(record) == width for record in records)
        if candidate == usual and width > 1 and even:
            return candidate
        if width > 1:
            splits[candidate] = (even, candidate == usual, width)
    if splits:
        return max(splits, key=splits.__getitem__)
    return usual or WHITESPACE


def _detected_decimal(records: Sequence[Sequence[str]], separator: str) -> str:
    """A comma where cells read as numbers with decimal commas alone."""
    cells = [cell for record in records for cell in record if "," in cell or "." in cell]
    commas = [cell for cell in cells if _DECIMAL_COMMA.fullmatch(cell)]
    if not commas:
        return "."
    points = any(_DECIMAL_POINT.fullmatch(cell) for cell in cells)
    if all(_COMMA_OF_THOUSANDS.fullmatch(cell) for cell in commas):
        # 1,234 is a whole number where commas separate columns, or points are decimal marks.
        return "." if points or separator == "," else ","
    only_thousands = re.compile(r"[+-]?\d{1,3}(?:\.\d{3})+")
    plain_points = [
        cell
        for cell in cells
        if _DECIMAL_POINT.fullmatch(cell) and not only_thousands.fullmatch(cell)
    ]
    return "," if len(commas) > len(plain_points) else "."


def _shown(separator: str) -> str:
    return {"\t": "tabs", WHITESPACE: "spaces"}.get(separator, repr(separator))


def decoded(data: bytes) -> tuple[str, tuple[str, ...]]:
    """The text of a table without blank lines before its header, and remarks.

    UTF-8; UTF-16 with its mark; anything else as Windows-1252, which a remark says.

    Raises:
      DataError: for bytes that none of them has, and without any line.
    """
    remarks: tuple[str, ...] = ()
    try:
        text = data.decode("utf-16" if data[:2] in UTF16_MARKS else "utf-8-sig")
    except UnicodeDecodeError as error:
        try:
            text = data.decode("cp1252")
        except UnicodeDecodeError:
            raise DataError(
                f"it is not UTF-8 text (byte {error.start}); save it as CSV in UTF-8"
            ) from None
        remarks = ("it is not UTF-8 text and is read as Windows-1252",)
    if not text.strip():
        raise DataError("it is empty: there is no line of column names")
    return _BLANK_START.sub("", text), remarks


def without_separator_line(text: str) -> tuple[str, str | None]:
    """The text without a first line such as ``sep=;``, which Excel reads, and that separator."""
    match = _SEPARATOR_LINE.match(text)
    return (text, None) if match is None else (text[match.end() :], match[1])


def frame_of_text(text: str, dialect: Dialect) -> pd.DataFrame:
    """The table in a text: a line of column names, then the rows.

    A nameless first column that counts the rows, as pandas and R save it, is left out, and so are
    nameless columns without any value, which separators at line ends make.

    Raises:
      DataError: for repeated or missing column names, and lines longer than the header.
    """
    header = first_records(text, dialect.separator, count=1)[0]
    check_header(header)
    (frame,) = frames(io.StringIO(text, newline=""), header, dialect)
    return without_nameless_columns(frame)


def frames(
    file: TextIO,
    header: Sequence[str],
    dialect: Dialect,
    rows: int | None = None,
    as_text: Sequence[str] = (),
) -> Iterator[pd.DataFrame]:
    """The rows of a text table, as one frame or as many of at most so many ``rows``.

    Args:
      file: at the line of column names.
      header: these names.
      dialect: how cells are written.
      rows: most rows of a frame; ``None`` for all.
      as_text: columns whose cells stay as they are written.

    Raises:
      DataError: for lines longer than the header, and what cannot be split into cells.
    """
    places = {place: str for place, name in enumerate(header) if name in as_text}
    try:
        with warnings.catch_warnings():
            # pandas only warns when it leaves out values that have no column name.
            warnings.simplefilter("error", pd.errors.ParserWarning)
            reader = pd.read_csv(
                file,
                sep=dialect.separator,
                decimal=dialect.decimal,
                low_memory=False,
                skipinitialspace=True,
                index_col=False,
                header=0,
                names=range(len(header)),
                dtype=places or None,
                chunksize=rows,
            )
            for frame in [reader] if rows is None else reader:
                frame.columns = header
                yield frame
    except pd.errors.ParserWarning:
        raise DataError(
            f"it has more values in a line than column names ({len(header)}); give every column a "
            "name, that of row names too, and remove titles above the column names"
        ) from None
    except pd.errors.ParserError as error:
        complaint = str(error).strip().splitlines()[0].removeprefix(_PANDAS_PREFIX)
        raise DataError(f"{complaint}; check the quotes and separators there") from None


def without_nameless_columns(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame without nameless columns that only count the rows, or hold nothing.

    Raises:
      DataError: for a nameless column that holds something else.
    """
    kept = []
    for place, name in enumerate(frame.columns):
        column = frame.iloc[:, place]
        if name == "" and (column.isna().all() or (place == 0 and _counts_rows(column))):
            continue
        kept.append(place)
    nameless = [place for place in kept if frame.columns[place] == ""]
    if nameless:
        raise DataError(
            f"column {nameless[0] + 1} (the first is 1) has values but no name; the first line "
            "has to give every column its own name"
        )
    return frame.iloc[:, kept]


def _counts_rows(column: pd.Series) -> bool:
    if not len(column) or column.dtype.kind not in "iu":
        return False
    values = column.to_numpy()
    return bool(values[0] in (0, 1) and np.array_equal(values, values[0] + np.arange(len(values))))


def check_header(header: Sequence[str]) -> None:
    """DataError for column names that are numbers, and for repeated ones."""
    named = [name for name in header if name]
    repeated = [name for name, count in Counter(named).items() if count > 1]
    if _all_numbers(header) and (repeated or not all(name.isdigit() for name in header)):
        raise DataError(
            f"the first line holds numbers ({name_some(header)}); add a first line with column "
            "names"
        )
    if repeated:
        raise DataError(
            f"it has {len(repeated)} column names more than once: {name_some(repeated)}; give "
            "every column its own name"
        )


def _all_numbers(header: Sequence[str]) -> bool:
    try:
        return bool([float(name) for name in header])
    except ValueError:
        return False
