"""Conversion of a table, in bounded memory, to a folder whose rows are read while they are used."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np
import pandas as pd
from tqdm import tqdm

from fsjax.errors import ConfigError, DataError, check_flag, nearest
from fsjax.storage.atomic_files import write_text
from fsjax.tables.base import rows_of_block
from fsjax.tables.readers.decimal_commas import numbers_with_commas
from fsjax.tables.readers.file_type import reader_errors
from fsjax.tables.readers.parquet import parquet_frames
from fsjax.tables.readers.stray_rows import total_in
from fsjax.tables.readers.table_files import features_of
from fsjax.tables.readers.target_columns import target_column
from fsjax.tables.readers.text import USUAL_SEPARATOR, open_text
from fsjax.tables.rounding import Rounding

#: The column to predict.
TargetColumn = str | int | None


class _Source(NamedTuple):
    """A table that is read in blocks of rows.

    Attributes:
      columns: all names.
      frames: iterates over frames of at most so many rows; the named columns of a text table stay
        text.
      decimal: the decimal mark of a text table, otherwise ``None``.
      remarks: what was detected, each a sentence without a full stop.
    """

    columns: list[str]
    frames: Callable[[int, Sequence[str]], Iterator[pd.DataFrame]]
    decimal: str | None = None
    remarks: tuple[str, ...] = ()


def convert(
    source: str | Path,
    folder: str | Path | None = None,
    target: TargetColumn = None,
    progress: bool = True,
) -> Path:
    """Convert a table to a folder from which :func:`fsjax.data.load` reads rows as it needs them.

    The folder has ``X.npy``, rows of float32 (float64 where float32 is too coarse for a column, by
    the rule of :func:`fsjax.data.load_table`), ``y.npy``, ``names.json`` with the names of the
    columns, and ``source.txt``. It appears complete or not at all.

    Args:
      source: a ``.csv`` or ``.tsv`` file with a line of column names, whose separator and decimal
        mark are detected, a ``.parquet`` file or a folder of them. It may be larger than the
        memory.
      folder: the folder to write, which must not exist; by default beside the source, with
        ``.fsjax`` appended to its name.
      target: the column to predict, by name or number.
      progress: whether to show a progress bar.

    Returns:
      The folder.

    Raises:
      DataError: if the source is missing or has columns that are not numbers, if the folder exists,
        or if it cannot be written, for example because the disk is full; nothing is left behind in
        that case.
      ConfigError: for arguments of another type.
    """
    check_flag("progress", progress)
    if target is not None and (isinstance(target, bool) or not isinstance(target, str | int)):
        raise ConfigError(f"target={target!r}; give the name or the number of one column")
    source = Path(source).expanduser()
    table_folder = Path(f"{source}.fsjax") if folder is None else Path(folder).expanduser()
    if table_folder.exists():
        raise DataError(f"{table_folder} exists; remove it, or name another folder")
    partial = table_folder.with_name(f".{table_folder.name}.{os.getpid()}.partial")
    try:
        with reader_errors(source):
            table = _open(source)
            chosen = None if target is None else target_column(table.columns, target)
            names = [name for name in table.columns if name != chosen]
            if not names:
                raise DataError("it has no columns besides the target; give at least one feature")
        partial.mkdir(parents=True)
        with tqdm(desc=f"convert {source}", unit="row", disable=not progress) as bar:
            y, remark = _write(source, table, names, chosen, partial / "X.npy", bar)
        if y is not None:
            np.save(partial / "y.npy", y, allow_pickle=False)
        write_text(partial / "names.json", json.dumps(names, ensure_ascii=False))
        remarks = filter(None, [*table.remarks, remark])
        write_text(partial / "source.txt", ", ".join([str(source.absolute()), *remarks]))
        os.replace(partial, table_folder)
    except OSError as error:
        raise DataError(
            f"{table_folder} cannot be written: {error.strerror or error}; what was written is "
            "removed: free some space, or name a folder on another disk"
        ) from None
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return table_folder


def _open(path: Path) -> _Source:
    suffix = path.suffix.lower()
    if not path.exists():
        raise DataError("there is no file or folder of this name; give the path of a table")
    if path.is_dir() or suffix == ".parquet":
        columns, frames = parquet_frames(path)
        return _Source(columns, lambda rows, as_text: frames(rows))
    if suffix not in USUAL_SEPARATOR:
        raise DataError(
            f"the suffix {suffix!r} is not converted; "
            f"{nearest(suffix, (*USUAL_SEPARATOR, '.parquet'))}, or a folder of Parquet files"
        )
    with path.open("rb") as file:
        table = open_text(file, USUAL_SEPARATOR[suffix])

    def frames_of_text(rows: int, as_text: Sequence[str]) -> Iterator[pd.DataFrame]:
        with path.open("rb") as file:
            yield from table.frames(file, rows, as_text)

    named = [name for name in table.header if name]
    return _Source(named, frames_of_text, table.dialect.decimal, table.remarks)


def _write(
    source: Path, table: _Source, names: list[str], target: str | None, path: Path, bar: tqdm
) -> tuple[np.ndarray | None, str]:
    """Write X as float32 or, if that is too coarse, as float64; returns y, and a remark or empty.

    As in memory, a last row whose label is a word for a total is left out.
    """
    as_text = [] if target is None else [target]
    for dtype in (np.dtype(np.float32), np.dtype(np.float64)):
        num_rows, targets, rounding = 0, [], Rounding()
        with path.open("wb") as file:
            _header(file, dtype, (0, len(names)))
            with reader_errors(source, "cannot be converted"):
                for frame in filter(len, table.frames(rows_of_block(len(names)), as_text)):
                    X = features_of(frame[names])
                    with np.errstate(over="ignore"):
                        rounded = np.ascontiguousarray(X, dtype)
                    rounding.add(X, rounded)
                    file.write(rounded.data.cast("B"))
                    targets += [] if target is None else [frame[target]]
                    num_rows += len(X)
                    bar.update(len(X))
            if not num_rows:
                raise DataError(f"{source} is empty: it has no rows")
            y = pd.concat(targets) if targets else None
            remark = "" if y is None or table.decimal is None else total_in(y)
            if y is not None and remark:
                num_rows, y = num_rows - 1, y.iloc[:-1]
                file.truncate(file.tell() - dtype.itemsize * len(names))
            # The header has a fixed length, so it can be written again with the number of rows.
            file.seek(0)
            _header(file, dtype, (num_rows, len(names)))
            file.flush()
            os.fsync(file.fileno())
        if not rounding.noticeable:
            break
    with reader_errors(source):
        return None if y is None else _labels(y, table.decimal), remark


def _labels(y: pd.Series, decimal: str | None) -> np.ndarray:
    """Numbers or text, which are stored without pickle; DataError for missing labels.

    Text tables with a decimal mark hold numbers as text.
    """
    if decimal == "," and (numbers := numbers_with_commas(y)) is not None:
        return numbers.to_numpy()
    if decimal is not None:
        # pandas reads these words in any case.
        words = y.str.lower()
        if words.isin(("true", "false")).all():
            return (words == "true").to_numpy(bool)
        try:
            return pd.to_numeric(y).to_numpy()
        except ValueError:
            pass
    values = y.to_numpy()
    if decimal is None and values.dtype != object:
        return values
    if y.isna().any():
        raise DataError(f"the target has {int(y.isna().sum())} missing values; drop these rows")
    return values.astype(str)


def _header(file: IO[bytes], dtype: np.dtype, shape: tuple[int, int]) -> None:
    header = {"descr": dtype.str, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, header)
