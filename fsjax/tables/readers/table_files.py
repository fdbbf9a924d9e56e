"""Readers of users' tables: CSV, TSV, Excel, Parquet, NumPy archive, MATLAB and LIBSVM files."""

import io
import re
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from pandas.api.types import infer_dtype
from sklearn.datasets import load_svmlight_file

from fsjax.engine.environment.memory_limits import check_bytes
from fsjax.errors import ConfigError, DataError, check_choice, check_flag, name_some, nearest
from fsjax.tables.checks import check_features, numeric_columns
from fsjax.tables.dataset import Dataset, default_names
from fsjax.tables.imputation import impute as fill
from fsjax.tables.readers.excel import excel_frame
from fsjax.tables.readers.file_type import located, reader_errors, sniff
from fsjax.tables.readers.formats import FileTable, compact, read_mat, read_npz
from fsjax.tables.readers.parquet import parquet_frame
from fsjax.tables.readers.stray_rows import without_stray_rows
from fsjax.tables.readers.target_columns import (
    encode_target,
    encode_targets,
    target_names,
    without_target,
)
from fsjax.tables.readers.text import USUAL_SEPARATOR, check_decimal, check_separator, open_text
from fsjax.tables.sparse import as_csr, as_frame
from fsjax.tables.sparse import dense as as_dense

RULES = ("mean", "median")
"""The values of ``impute`` for a user's table."""

#: The least bytes that a column of a frame takes, even a sparse one.
_OF_A_COLUMN = 2000

TargetNames = str | int | Sequence[str | int] | None
"""One column, or several, by name or number."""


class ReadOptions(NamedTuple):
    """The memory limit, and the form of a text table where it is not detected."""

    max_bytes: int | None = None
    separator: str | None = None
    decimal: str | None = None
    skip_rows: int = 0


class LoadedFrame(NamedTuple):
    """A table as it is in its file, before columns become numbers.

    Attributes:
      frame: ``(N, columns)`` without the target.
      target: ``(N,)``, or ``(N, C)`` for several columns.
      remarks: what the reader detected, for example separators; each a sentence about the file
        without a full stop.
      warnings: readings that may be wrong, and how to override them.
    """

    frame: pd.DataFrame
    target: np.ndarray
    remarks: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


#: A frame, remarks on how it was read, and warnings; ``None`` if a file holds arrays.
_Frame = tuple[pd.DataFrame, tuple[str, ...], tuple[str, ...]] | None


def _no_arrays(data: bytes, target: TargetNames, max_bytes: int | None) -> FileTable:
    raise DataError("it holds no arrays")


class _FileKind(NamedTuple):
    """How files with a suffix are read.

    Attributes:
      title: what messages call such a file.
      looks: what :func:`fsjax.tables.readers.file_type.sniff` may say of its contents.
      read: reads files of arrays.
      frame: reads tables with columns of any type.
    """

    title: str
    looks: tuple[str, ...]
    read: Callable[[bytes, TargetNames, int | None], FileTable] = _no_arrays
    frame: Callable[[bytes, ReadOptions], _Frame] = lambda data, options: None


def load_table(
    name: str,
    folders: Sequence[Path] = (),
    target: TargetNames = None,
    impute: str | None = None,
    dense: bool = False,
    max_bytes: int | None = None,
    separator: str | None = None,
    decimal: str | None = None,
    skip_rows: int = 0,
) -> Dataset:
    """Load a user's table as float32 (or compact integer) features.

    LIBSVM files, sparse ``.mat`` files and files of ``scipy.sparse.save_npz`` stay sparse.

    Args:
        name: path of a ``.csv``, ``.tsv``, ``.txt``, ``.xlsx`` (with the extra ``excel``),
            ``.parquet``, ``.npz`` (arrays ``X`` and ``y``), ``.mat`` (``X`` and ``Y``) or
            ``.libsvm``/``.svm`` file. Text tables have a line of column names.
        folders: where a relative path is looked up besides the working directory.
        target: the column to predict, by name or by number from 0 (-1 for the last); in ``.npz``
            and ``.mat`` files, the name of the array. Several columns, as a list or separated by
            commas (unless that is the name of a column), become the (N, C) numbers of ``y``:
            labels, or ``('time', 'event')``. None means no target in tables, and ``y`` in files
            of arrays.
        impute: None, or ``'mean'`` or ``'median'`` to replace missing values by that of their
            column, computed over all rows including later test rows. In a sparse table zeros
            count as values.
        dense: whether a sparse file becomes a dense table, for methods that need one.
        max_bytes: limit on the memory for the file and for its unpacked contents, because small
            files may hold huge tables. None allows half of the free memory.
        separator: of the columns of a text table: one character, ``'tab'`` or ``'space'``. None
            detects it; ``source`` of the data set says if it is not the one that the suffix
            implies.
        decimal: ``'.'`` or ``','``; None detects it, and ``source`` mentions decimal commas.
        skip_rows: number of lines above the column names of a text table that are not part of it.

    Raises:
        ConfigError: for an unknown ``impute``, ``separator`` or ``decimal``.
        DataError: if the file is missing, is not of the type of its suffix, or has contents that
            cannot be used: text, missing or infinite values, duplicate names, no rows, one class;
            or if it takes more than ``max_bytes``.

    Examples:
      >>> from pathlib import Path
      >>> Path("table.csv").write_text("a,b,label\\n" + "1,2,x\\n2,1,y\\n" * 10)
      >>> table = fsjax.data.load_table("table.csv", target="label")
      >>> fsjax.data.convert("table.csv", "on-disk", target="label", progress=False)
      >>> large = fsjax.data.load("on-disk")  # read a batch at a time
    """
    if impute is not None:
        check_choice("impute", impute, RULES)
    check_flag("dense", dense)
    path = located(name, folders)
    options, where = _options(path, max_bytes, separator, decimal, skip_rows), str(path)
    kind, data = _contents(path, max_bytes)
    with _errors_of(path, kind):
        table, remarks = _read(kind, data, target, options)
        X = compact(table.X)
        X = as_dense(X, max_bytes) if dense else X
    if impute is not None and X.ndim == 2 and min(X.shape):
        X = fill(X, None, impute, where)
    check_features(X, table.feature_names, where)
    y, class_names = None, None
    if table.y is not None:
        label = f"the target {target!r} of {where}" if target is not None else f"y of {where}"
        if np.ndim(table.y) == 2:
            y, class_names = encode_targets(table.y, label), None
        else:
            y, class_names = encode_target(table.y, label, table.class_names)
    imputed = [f"missing values filled with the {impute}"] if impute else []
    return Dataset(
        name=path.name,
        X=X,
        y=y,
        feature_names=table.feature_names,
        class_names=class_names,
        official_split=table.split,
        source=", ".join([where, *remarks, *imputed]),
    )


def load_frame(
    name: str,
    target: TargetNames = None,
    max_bytes: int | None = None,
    separator: str | None = None,
    decimal: str | None = None,
    skip_rows: int = 0,
) -> LoadedFrame:
    """Load a user's table as it is, with text, dates and missing values.

    Args:
        name: path of a file as :func:`load_table` reads it.
        target: the column to predict, or several, as for :func:`load_table`; text, Excel and
            Parquet tables need one.
        max_bytes: limit on the memory, as for :func:`load_table`.
        separator, decimal, skip_rows: of a text table, as for :func:`load_table`.

    Returns:
        The frame, the target with its original values, and remarks on how the file was read. The
        frame of a sparse file has sparse columns.

    Raises:
        DataError: if the file is missing, is not of the type of its suffix, or has no such target.
        ConfigError: for an invalid separator or decimal mark, or for either with a file that is
            not a text table.
    """
    path = located(name)
    options = _options(path, max_bytes, separator, decimal, skip_rows)
    kind, data = _contents(path, max_bytes)
    with _errors_of(path, kind):
        table = kind.frame(data, options)
    if table is None:
        return _frame_of_arrays(path, kind, data, target, max_bytes)
    frame, remarks, warnings = table
    if len(frame) == 0:
        raise DataError(f"{path} is empty: there are column names but no rows")
    if target is None:
        raise DataError(
            f"{path}: name the column to predict (--target); the columns are "
            f"{name_some(list(frame.columns))}"
        )
    with _errors_of(path, kind):
        rest, y = without_target(frame, target)
    return LoadedFrame(rest, y, remarks, warnings)


def _frame_of_arrays(
    path: Path, kind: _FileKind, data: bytes, target: TargetNames, max_bytes: int | None
) -> LoadedFrame:
    with _errors_of(path, kind):
        table = kind.read(data, target, max_bytes)
    what = f"{path}, as a frame of {table.X.shape[1]:,} columns,"
    check_bytes(_OF_A_COLUMN * table.X.shape[1], max_bytes, what, "keep fewer columns")
    names = table.feature_names or default_names(table.X.shape[1])
    if table.y is None:
        raise DataError(f"{path} has no array y; name the one that holds the target (--target)")
    return LoadedFrame(as_frame(table.X, names), np.asarray(table.y))


def _options(
    path: Path,
    max_bytes: int | None,
    separator: str | None,
    decimal: str | None,
    skip_rows: int,
) -> ReadOptions:
    """The options for a file; ConfigError for options that its type does not have."""
    if isinstance(skip_rows, bool) or not isinstance(skip_rows, int) or skip_rows < 0:
        raise ConfigError(f"skip_rows={skip_rows!r}; give a number of lines, from 0")
    given = {"separator": separator, "decimal": decimal, "skip_rows": skip_rows or None}
    for option, value in given.items():
        if value is not None and path.suffix.lower() not in (*USUAL_SEPARATOR, ".txt"):
            raise ConfigError(
                f"{option}={value!r} is for .csv, .tsv and .txt files, not for {path.name}; leave "
                "it out"
            )
    return ReadOptions(max_bytes, check_separator(separator), check_decimal(decimal), skip_rows)


def _read(
    kind: _FileKind, data: bytes, target: TargetNames, options: ReadOptions
) -> tuple[FileTable, tuple[str, ...]]:
    """The table of a file, and remarks on how it was read."""
    table = kind.frame(data, options)
    if table is None:
        return kind.read(data, target, options.max_bytes), ()
    frame, remarks, warnings = table
    return _from_frame(frame, target), remarks + warnings


def _contents(path: Path, max_bytes: int | None) -> tuple[_FileKind, bytes]:
    """The kind of a file by its suffix, and its bytes, which are checked to be of that kind."""
    kind = KINDS.get(path.suffix.lower())
    if kind is None:
        raise DataError(
            f"{path} has the suffix {path.suffix!r}, which is not read; "
            f"{nearest(path.suffix, KINDS)}"
        )
    try:
        check_bytes(path.stat().st_size, max_bytes, f"{path} as a whole", "give a larger max_bytes")
        data = path.read_bytes()
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}") from None
    looks = sniff(data[:512])
    if looks == "empty":
        raise DataError(f"{path} is empty: it has 0 bytes")
    if looks not in kind.looks:
        raise DataError(
            f"{path} is {looks}, not {kind.title} as its suffix {path.suffix} says; "
            "correct the suffix, or save or download the file again"
        )
    return kind, data


def _errors_of(path: Path, kind: _FileKind) -> AbstractContextManager[None]:
    """Turns errors of the reader into DataErrors that name the file."""
    return reader_errors(path, f"cannot be read as {kind.title}")


def _text_frame(usual: str | None, data: bytes, options: ReadOptions) -> _Frame:
    """A text table; ``usual`` is the separator that its suffix implies."""
    if usual is None and options.separator is None and _is_libsvm(data):
        return None
    file = io.BytesIO(data)
    table = open_text(file, usual, options.separator, options.decimal, options.skip_rows)
    mark = table.dialect.decimal
    frame, remarks = without_stray_rows(table.frame(file), mark)
    if mark == "," or options.decimal is not None:
        frame.attrs["decimal"] = mark
    return frame, table.remarks + remarks, table.dialect.warnings


def _excel_frame(data: bytes, options: ReadOptions) -> _Frame:
    frame, remarks = excel_frame(data, options.max_bytes)
    frame, more = without_stray_rows(frame)
    return frame, remarks + more, ()


def _read_libsvm(data: bytes, target: TargetNames, max_bytes: int | None) -> FileTable:
    if target is not None:
        raise DataError(f"target={target!r}: the target of a LIBSVM file is its first column")
    X, y = load_svmlight_file(io.BytesIO(data))
    return FileTable(as_csr(X, "it", max_bytes), y)


def _read_arrays(
    read: Callable[..., FileTable], data: bytes, target: TargetNames, max_bytes: int | None
) -> FileTable:
    """Read a file of named arrays; several targets are joined as columns."""
    targets = [None] if target is None else target_names((), target)
    tables = [read([data], name, max_bytes) for name in targets]
    if len(tables) == 1:
        return tables[0]
    columns = [table.y for table in tables if table.y is not None]
    return tables[0]._replace(y=np.column_stack(columns))


def _is_libsvm(data: bytes) -> bool:
    return _LIBSVM.match(data.lstrip()) is not None


#: The start of a LIBSVM file: labels, and the number of a column or the word ``qid``.
_LIBSVM = re.compile(rb"[-+.,\deE]+[ \t]+(\d+|qid):")

_TEXT = ("text",)
KINDS: dict[str, _FileKind] = {
    ".csv": _FileKind("a CSV table", _TEXT, frame=partial(_text_frame, USUAL_SEPARATOR[".csv"])),
    ".tsv": _FileKind(
        "a table separated by tabs", _TEXT, frame=partial(_text_frame, USUAL_SEPARATOR[".tsv"])
    ),
    ".txt": _FileKind("a text table", _TEXT, _read_libsvm, partial(_text_frame, None)),
    ".xlsx": _FileKind(
        "an Excel workbook",
        ("a zip archive",),
        frame=_excel_frame,
    ),
    ".parquet": _FileKind(
        "a Parquet file",
        ("a Parquet file",),
        frame=lambda data, options: (parquet_frame(data, options.max_bytes), (), ()),
    ),
    ".npz": _FileKind(
        "a NumPy archive (np.savez)", ("a zip archive",), partial(_read_arrays, read_npz)
    ),
    ".mat": _FileKind(
        "a MATLAB file of version 7 or older (save with -v7)",
        ("a MATLAB file", "of an unknown kind"),
        partial(_read_arrays, read_mat),
    ),
    ".libsvm": _FileKind("a LIBSVM file", _TEXT, _read_libsvm),
    ".svm": _FileKind("a LIBSVM file", _TEXT, _read_libsvm),
}
"""The kinds of files by suffix."""


def _from_frame(frame: pd.DataFrame, target: TargetNames) -> FileTable:
    if len(frame) == 0:
        raise DataError("it is empty: there are column names but no rows")
    y = None
    if target is not None:
        frame, y = without_target(frame, target)
    if frame.shape[1] == 0:
        raise DataError("it has no columns besides the target; give at least one feature")
    # In full precision: :func:`compact` decides how much of it the table needs.
    return FileTable(features_of(frame), y, feature_names=tuple(map(str, frame.columns)))


def features_of(frame: pd.DataFrame, dtype: type = np.float64) -> np.ndarray:
    """The numbers ``(N, D)`` of a frame, NaN where missing; DataError for other columns."""
    frame = _with_huge_whole_numbers(frame)
    numeric_columns(frame, "it")
    return frame.to_numpy(dtype=dtype, na_value=np.nan)


def _with_huge_whole_numbers(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame with whole numbers beyond 64 bits, which pandas keeps as objects, as floats."""
    huge = {
        name: column.astype(np.float64)
        for name, column in frame.items()
        if column.dtype == object and infer_dtype(column, skipna=True) == "integer"
    }
    return frame.assign(**huge) if huge else frame
