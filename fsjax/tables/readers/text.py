"""Text tables (CSV and similar): detect encoding, separator and decimal mark, and read frames.

:func:`open_text` is the only reader of text tables, for whole files and for blocks of rows. The
values that ``separator=`` and ``decimal=`` of :func:`fsjax.data.load_table` accept are here too.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
import warnings
from collections.abc import Iterator, Sequence
from itertools import islice, zip_longest
from typing import BinaryIO, NamedTuple

import numpy as np
import pandas as pd

from fsjax.errors import ConfigError, DataError
from fsjax.tables.readers.column_names import (
    check_header,
    doubts_about,
    without_nameless_columns,
)
from fsjax.tables.readers.decimal_commas import numbers_with_commas
from fsjax.tables.readers.file_type import UTF16_MARKS

#: Separator of the columns by suffix; the separator of a ``.txt`` file is always detected.
USUAL_SEPARATOR = {".csv": ",", ".tsv": "\t"}

#: Any run of spaces and tabs, in the notation of pandas.
WHITESPACE = r"\s+"

#: Names of separators that are hard to type in a shell.
SEPARATOR_NAMES = {"tab": "\t", r"\t": "\t", "space": WHITESPACE, " ": WHITESPACE, "comma": ","}

#: Decimal marks.
DECIMAL_MARKS = (".", ",")

_CANDIDATES = (",", ";", "\t", "|")

#: The dialect is detected from at most this many records and cells at the start of a file.
_RECORDS, _CELLS = 200, 200_000

#: Lines that are read for that; a record has several lines where quoted cells hold line ends.
_LINES = 10 * _RECORDS

#: Bytes that are decoded at a time.
_PIECE = 2**20

_CONTROL_Z = "\x1a"

_PANDAS_PREFIX = "Error tokenizing data. C error: "

_SEPARATOR_LINE = re.compile(r"sep=(.)\r?\n", re.IGNORECASE)
_DECIMAL_COMMA = re.compile(r"[+-]?(?:\d{1,3}(?:\.\d{3})+|\d*),\d+(?:[eE][+-]?\d+)?")
_DECIMAL_POINT = re.compile(r"[+-]?(?:\d{1,3}(?:,\d{3})+|\d*)\.\d+(?:[eE][+-]?\d+)?")
_BARE_NUMBER = re.compile(r"\W*\d[\d.,]*\W*")
_QUOTED = re.compile(r'"[^"]*"')
_INTEGER = re.compile(r"[+-]?\d+")
_POINT_OF_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}(?:\.\d{3})+")
_COMMA_OF_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}(?:,\d{3})+")


class Dialect(NamedTuple):
    """How the cells of a text table are written.

    Attributes:
      separator: one character, or :data:`WHITESPACE`.
      decimal: one of :data:`DECIMAL_MARKS`.
      remarks: detected deviations from the usual form, each a sentence without a full stop.
      warnings: readings that may be wrong, and how to override them.
    """

    separator: str
    decimal: str
    remarks: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def check_separator(separator: str | None) -> str | None:
    """The separator as a character; ConfigError unless it is one character or a known name."""
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
    """The decimal mark; ConfigError unless it is a point, a comma or ``None``."""
    if decimal is None or decimal in DECIMAL_MARKS:
        return decimal
    raise ConfigError(f"decimal={decimal!r}; choose '.' or ','")


def dialect_of(
    text: str, usual: str | None, separator: str | None = None, decimal: str | None = None
) -> Dialect:
    """The dialect of a text table, detected from its first records where it is not given.

    Args:
      usual: the separator that the file's suffix implies, or ``None``.
      separator, decimal: as :func:`check_separator` and :func:`check_decimal` return them;
        ``None`` detects them.
    """
    remarks = []
    chosen = separator
    if chosen is None:
        chosen = _detected_separator(text, usual)
        if usual is not None and chosen != usual:
            remarks.append(f"its columns are separated by {_shown(chosen)}, not {_shown(usual)}")
    mark, doubts = decimal, []
    records = first_records(text, chosen)[1:]
    if mark is None:
        mark = _detected_decimal(records, chosen)
        if mark == ",":
            remarks.append("its numbers have decimal commas")
            commas = [cell for record in records for cell in record if "," in cell]
            commas = [cell for cell in commas if _DECIMAL_COMMA.fullmatch(cell)]
            if all(_COMMA_OF_THOUSANDS.fullmatch(cell) for cell in commas):
                doubts.append(
                    f"numbers such as {commas[0]!r} are read with decimal commas; if these are "
                    "commas of thousands, say so (decimal='.', on the command line --decimal=.)"
                )
    if mark == "," and (number := _with_point_of_thousands(records)):
        remarks.append(f"points are thousands marks ({number} is {number.replace('.', '')})")
    return Dialect(chosen, mark, tuple(remarks), tuple(doubts))


def first_records(text: str, separator: str, count: int = _RECORDS) -> list[list[str]]:
    """The stripped cells of the first records, at most ``count``; quoted cells may hold line ends.

    Raises:
      DataError: if the first one cannot be read, for example because a quote is never closed.
    """
    spaces = separator == WHITESPACE
    if spaces:
        text, separator = text.replace("\t", " "), " "
    # Only line ends separate records: a form feed or U+2028 is part of a cell.
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, skipinitialspace=True)
    records: list[list[str]] = []
    num_cells = 0
    try:
        for record in reader:
            if spaces and record and not record[-1]:  # spaces at the end of a line
                record.pop()
            if len(record) > 1 or record and record[0].strip():
                records.append([cell.strip() for cell in record])
                num_cells += len(record)
            if len(records) >= count or num_cells > _CELLS and len(records) > 1:
                break
    except csv.Error as error:
        # The csv module stops at cells of 128 KiB, but pandas reads them.
        if records:
            return records
        raise DataError(
            f"line {reader.line_num} cannot be split into cells ({error}); is a quote not closed?"
        ) from None
    return records


def _detected_separator(text: str, usual: str | None) -> str:
    """The usual separator if it splits the records evenly, otherwise the one that does so best."""
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
    """A comma where cells are numbers only if commas are decimal marks, otherwise a point."""
    cells = [cell for record in records for cell in record if "," in cell or "." in cell]
    commas = [cell for cell in cells if _DECIMAL_COMMA.fullmatch(cell)]
    if not commas:
        return "."
    points = any(_DECIMAL_POINT.fullmatch(cell) for cell in cells)
    if all(_COMMA_OF_THOUSANDS.fullmatch(cell) for cell in commas):
        # 1,234 is a whole number where commas separate columns, or points are decimal marks.
        return "." if points or separator == "," else ","
    plain_points = [
        cell
        for cell in cells
        if _DECIMAL_POINT.fullmatch(cell) and not _POINT_OF_THOUSANDS.fullmatch(cell)
    ]
    return "," if len(commas) > len(plain_points) else "."


def _with_point_of_thousands(records: Sequence[Sequence[str]]) -> str | None:
    """The first number of a column whose points are all thousands marks, beside decimal commas."""
    for column in zip_longest(*records, fillvalue=""):
        numbers = [cell for cell in column if any(map(str.isdigit, cell))]
        points = filter(_POINT_OF_THOUSANDS.fullmatch, numbers)
        if (first := next(points, None)) and numbers_with_commas(pd.Series(numbers)) is not None:
            return first
    return None


def _shown(separator: str) -> str:
    return {"\t": "tabs", WHITESPACE: "spaces"}.get(separator, repr(separator))


class TextTable(NamedTuple):
    """How the bytes of a text table are read, found from its start.

    Attributes:
      encoding: of the file.
      skipped: number of lines before the column names.
      header: the column names.
      dialect: how cells are written.
      remarks: what was detected, each a sentence without a full stop.
    """

    encoding: str
    skipped: int
    header: list[str]
    dialect: Dialect
    remarks: tuple[str, ...]

    def frame(self, file: BinaryIO) -> pd.DataFrame:
        """All rows of the file, as :meth:`frames` reads them."""
        (frame,) = self.frames(file)
        return frame

    def frames(
        self, file: BinaryIO, rows: int | None = None, as_text: Sequence[str] = ()
    ) -> Iterator[pd.DataFrame]:
        """The rows as one frame, or in frames of at most ``rows`` rows.

        A nameless first column that counts the rows, which pandas and R write, is left out, and so
        are nameless columns without values, which separators at line ends produce.

        Args:
          file: the file that was given to :func:`open_text`, which is read from its start.
          rows: the most rows of a frame; ``None`` reads all at once.
          as_text: columns whose cells stay text, as they are written.

        Raises:
          DataError: for lines longer than the header, nameless columns with other values, and
            lines that cannot be split into cells.
        """
        places = {place: str for place, name in enumerate(self.header) if name in as_text}
        text, done = _text_of(file, self.encoding, self.skipped), 0
        try:
            with warnings.catch_warnings():
                # pandas only warns when it leaves out values that have no column name.
                warnings.simplefilter("error", pd.errors.ParserWarning)
                reader = pd.read_csv(
                    text,
                    sep=self.dialect.separator,
                    decimal=self.dialect.decimal,
                    low_memory=False,
                    skipinitialspace=True,
                    index_col=False,
                    header=0,
                    names=range(len(self.header)),
                    dtype=places or None,
                    chunksize=rows,
                )
                for frame in [reader] if rows is None else reader:
                    frame.columns = self.header
                    frame = _with_long_integers(frame, as_text)
                    if self.dialect.decimal == ",":
                        frame = _with_points_of_thousands(frame, as_text)
                    yield without_nameless_columns(frame, done)
                    done += len(frame)
        except pd.errors.ParserWarning:
            raise DataError(
                f"it has more values in a line than column names ({len(self.header)}); give every "
                "column a name, also the column of row names, and skip titles above the column "
                "names (skip_rows=N, on the command line --skip-rows=N)"
            ) from None
        except pd.errors.ParserError as error:
            complaint = str(error).strip().splitlines()[0].removeprefix(_PANDAS_PREFIX)
            raise DataError(f"{complaint}; check the quotes and separators there") from None


def _with_long_integers(frame: pd.DataFrame, as_text: Sequence[str]) -> pd.DataFrame:
    """The frame with columns of integers beyond 64 bits as float64.

    pandas reads them as Python's integers, and before version 3 as text. Other texts stay: with a
    decimal comma, ``1.234`` is one.
    """
    for place, (name, dtype) in enumerate(zip(frame.columns, frame.dtypes, strict=True)):
        if name in as_text or not pd.api.types.is_object_dtype(dtype):
            continue
        column = frame.iloc[:, place]
        known = column.dropna()
        # The first value first, as most such columns are text.
        if len(known) and _are_integers(known.head(1)) and _are_integers(known):
            frame.isetitem(place, column.astype(np.float64))
    return frame


def _with_points_of_thousands(frame: pd.DataFrame, as_text: Sequence[str]) -> pd.DataFrame:
    """The frame of a table with decimal commas, with texts such as ``2.551`` as numbers."""
    for place, (name, dtype) in enumerate(zip(frame.columns, frame.dtypes, strict=True)):
        if name in as_text or dtype.kind != "O":
            continue
        if (numbers := numbers_with_commas(frame.iloc[:, place])) is not None:
            frame.isetitem(place, numbers)
    return frame


def _are_integers(values: pd.Series) -> bool:
    return bool(values.astype(str).str.fullmatch(_INTEGER).all())


def open_text(
    file: BinaryIO,
    usual: str | None,
    separator: str | None = None,
    decimal: str | None = None,
    skip_rows: int = 0,
) -> TextTable:
    """Find out how a text table is read: a line of column names, then the rows.

    The encoding is UTF-8, UTF-16 with a byte order mark, or otherwise Windows-1252. Blank lines
    before the column names are skipped, and so is a first line such as ``sep=;``, by which Excel
    names the separator.

    Args:
      file: the table, which is read from its start.
      usual, separator, decimal: as for :func:`dialect_of`.
      skip_rows: number of lines above the column names that are not part of the table.

    Raises:
      DataError: if there is no line of column names, there are notes above it, names are repeated
        or numbers, or no encoding fits.
    """
    encoding, remarks = _encoding_of(file)
    if _ends_with_control_z(file):
        remarks += ("it ends with the character Ctrl-Z, which is left out",)
    skipped, declared = skip_rows, None
    for line in _text_of(file, encoding, skip_rows):
        match = _SEPARATOR_LINE.fullmatch(line)
        if match is not None and declared is None:
            declared = match[1]
        elif line.strip():
            break
        skipped += 1
    else:
        raise DataError("it is empty: there is no line of column names")
    start = "".join(islice(_text_of(file, encoding, skipped), _LINES)).replace(_CONTROL_Z, "")
    if not skip_rows and (notes := _lines_of_notes(start, separator or declared)):
        raise DataError(
            f"its first {'line holds' if notes == 1 else f'{notes} lines hold'} notes and not "
            f"column names ({start.splitlines()[0][:60]!r}); skip them (skip_rows={notes}, on the "
            f"command line --skip-rows={notes})"
        )
    dialect = dialect_of(start, usual, separator or declared, decimal)
    header = first_records(start, dialect.separator, count=1)[0]
    check_header(header)
    dialect = dialect._replace(warnings=dialect.warnings + doubts_about(header))
    return TextTable(encoding, skipped, header, dialect, remarks + dialect.remarks)


def _ends_with_control_z(file: BinaryIO) -> bool:
    file.seek(0, io.SEEK_END)
    file.seek(max(0, file.tell() - 4))
    return file.read().rstrip(b"\0\r\n").endswith(_CONTROL_Z.encode())


def _lines_of_notes(start: str, separator: str | None) -> int:
    """The number of lines above the column names, which have fewer cells than all others."""
    lines = [line.rstrip("\n") for line in islice(io.StringIO(start, newline=None), _RECORDS)]
    known = np.array([bool(line.strip()) for line in lines])
    # Rows, and even notes, may have separators within quotes.
    bare = [_QUOTED.sub(lambda cell: "x" if len(cell[0]) > 2 else "", line) for line in lines]
    min_notes = 0
    for candidate in _CANDIDATES if separator is None else (separator,):
        counts = np.array([line.count(candidate) for line in bare])
        filled = np.array([line.rstrip(candidate).count(candidate) for line in bare])
        places = [int((filled > 0).argmax())]
        places += [
            place
            for place in range(places[0] + 1, len(lines))
            if filled[place] > filled[:place].max()
            and not any(map(_BARE_NUMBER.fullmatch, lines[place].split(candidate)))
        ]
        for notes in places:
            cells = counts[notes:][known[notes:]]
            if len(cells) > 1 and cells[0] and np.mean(cells == cells[0]) >= 0.9:
                if not notes:
                    return 0
                min_notes = min(min_notes or notes, notes)
                break
    return min_notes


class _Text(io.TextIOWrapper):
    """The text of a file, which is not closed with it, without Ctrl-Z, an old mark of its end."""

    def read(self, size: int | None = -1) -> str:
        """At most ``size`` characters."""
        text = super().read(size)
        # An empty text would be the end of the file.
        return text.replace(_CONTROL_Z, "") or text.replace(_CONTROL_Z, "\n")

    def __init__(self, file: BinaryIO, encoding: str) -> None:
        # Only line ends separate records: a form feed or U+2028 is part of a cell.
        super().__init__(file, encoding, newline="")

    def close(self) -> None:
        """Leave the file open, as its owner closes it."""


def _text_of(file: BinaryIO, encoding: str, skipped: int = 0) -> _Text:
    """The text of a file from its start, without the first lines."""
    file.seek(0)
    text = _Text(file, encoding)
    for _ in range(skipped):
        text.readline()
    return text


def _encoding_of(file: BinaryIO) -> tuple[str, tuple[str, ...]]:
    """The encoding in which a whole file can be decoded, and remarks; DataError if none fits."""
    file.seek(0)
    unicode = "utf-16" if file.read(2) in UTF16_MARKS else "utf-8-sig"
    wrong = _first_undecodable(file, unicode)
    if wrong is None:
        return unicode, ()
    if _first_undecodable(file, "cp1252") is not None:
        raise DataError(f"it is not UTF-8 text (byte {wrong}); save it as CSV in UTF-8")
    return "cp1252", ("it is not UTF-8 text and is read as Windows-1252",)


def _first_undecodable(file: BinaryIO, encoding: str) -> int | None:
    """The place of the first byte that cannot be decoded, or ``None``."""
    file.seek(0)
    decoder = codecs.getincrementaldecoder(encoding)()
    while True:
        start = file.tell() - len(decoder.getstate()[0])
        piece = file.read(_PIECE)
        try:
            decoder.decode(piece, final=not piece)
        except UnicodeDecodeError as error:
            return start + error.start
        if not piece:
            return None
