"""Tables as blocks of rows, for conversion: text, Parquet and LIBSVM.

Names, types and missing values follow the rules of :mod:`fsjax.readers.table_files`, which reads
the same files as a whole.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.datasets import load_svmlight_file

from fsjax.errors import DataError, nearest
from fsjax.extras import require
from fsjax.readers.decimal_commas import numbers_with_commas
from fsjax.readers.file_type import reader_errors
from fsjax.readers.table_files import features_of
from fsjax.readers.target_columns import target_column
from fsjax.readers.text import USUAL_SEPARATOR, open_text
from fsjax.tables.sparse import MAX_SIZE
from fsjax.tables.stored import rows_of_block

#: The column to predict.
TargetColumn = str | int | None

#: Bytes of a LIBSVM file that are read at once; no line may be longer.
_LIBSVM_BYTES = 2**21

_LIBSVM = (".libsvm", ".svm")


class BlockSource(NamedTuple):
    """A table that is read one block of rows at a time.

    Attributes:
      where: its name in messages.
      columns: D, without the target.
      names: of the D columns, or ``None``.
      rows: N, if it is known before the rows are read.
      blocks: iterates over all rows from the first: pairs of ``(B, D)`` numbers and their targets,
        or ``None``.
      join: joins the targets of all blocks, ``(N,)``.
      remarks: what was detected, each a sentence without a full stop.
    """

    where: str
    columns: int
    names: tuple[str, ...] | None
    rows: int | None
    blocks: Callable[[], Iterator[tuple[np.ndarray, Any]]]
    join: Callable[[Sequence[Any]], np.ndarray]
    remarks: tuple[str, ...] = ()


def open_source(path: Path, target: TargetColumn) -> BlockSource:
    """Open the table at a path.

    Raises:
      DataError: if there is no table, its kind is not converted, or it has no such target.
    """
    suffix = path.suffix.lower()
    if not path.exists():
        raise DataError(f"there is no file or folder {path}; give the path of a table")
    with reader_errors(path):
        if path.is_dir() or suffix == ".parquet":
            return _parquet(path, target)
        if suffix in USUAL_SEPARATOR:
            return _text(path, target, USUAL_SEPARATOR[suffix])
        if suffix in _LIBSVM:
            return _libsvm(path, target)
    kinds = (*USUAL_SEPARATOR, ".parquet", *_LIBSVM)
    raise DataError(
        f"{path} has the suffix {suffix!r}, which is not converted; "
        f"{nearest(suffix, kinds)}, or a folder of Parquet files"
    )


def parquet_files(folder: Path) -> list[Path]:
    """The Parquet files of a folder, sorted by name."""
    return sorted(folder.glob("*.parquet"))


def _parquet(path: Path, target: TargetColumn) -> BlockSource:
    require("pyarrow", "reading Parquet files")
    from pyarrow import dataset

    files = list(map(str, parquet_files(path))) if path.is_dir() else str(path)
    if not files:
        raise DataError("it has no .parquet files; give a folder that holds some, or a file")
    # The checksums of pages that have them are verified, as for files that are read as a whole.
    options = dataset.ParquetFragmentScanOptions(page_checksum_verification=True)
    form = dataset.ParquetFileFormat(default_fragment_scan_options=options)
    table = dataset.dataset(files, format=form)
    # The index of a saved frame is not among the columns, and types are those of pandas.
    empty = table.schema.empty_table().to_pandas().rename(columns=str)
    chosen = None if target is None else target_column(list(empty.columns), target)
    names = _feature_names(empty.columns, chosen)
    small = all(
        isinstance(kind, np.dtype) and np.can_cast(kind, np.float32)
        for kind in empty[list(names)].dtypes
    )

    def blocks() -> Iterator[tuple[np.ndarray, Any]]:
        # Few, because batches that are read ahead are in memory.
        for batch in table.to_batches(
            batch_size=rows_of_block(len(names)), batch_readahead=1, fragment_readahead=1
        ):
            frame = batch.to_pandas().rename(columns=str)
            X = features_of(frame[list(names)], np.float32 if small else np.float64)
            yield X, None if chosen is None else frame[chosen]

    def join(parts: Sequence[Any]) -> np.ndarray:
        return _plain(pd.concat(parts).to_numpy())

    return BlockSource(str(path), len(names), names, table.count_rows(), blocks, join)


def _text(path: Path, target: TargetColumn, usual_separator: str) -> BlockSource:
    with path.open("rb") as file:
        table = open_text(file, usual_separator)
    chosen = None if target is None else target_column(table.header, target)
    names = _feature_names([name for name in table.header if name], chosen)

    def blocks() -> Iterator[tuple[np.ndarray, Any]]:
        as_text = [] if chosen is None else [chosen]
        with path.open("rb") as file:
            for frame in table.frames(file, rows_of_block(len(names)), as_text):
                if not len(frame):
                    return
                yield features_of(frame[list(names)]), None if chosen is None else frame[chosen]

    def join(parts: Sequence[Any]) -> np.ndarray:
        texts = pd.concat(parts)
        if table.dialect.decimal == "," and (numbers := numbers_with_commas(texts)) is not None:
            return numbers.to_numpy()
        try:
            return pd.to_numeric(texts).to_numpy()
        except ValueError:
            return _plain(pd.concat(parts).to_numpy(dtype=object))

    return BlockSource(str(path), len(names), names, None, blocks, join, table.remarks)


def _feature_names(columns: Sequence[str], target: str | None) -> tuple[str, ...]:
    """The names of the columns besides the target; DataError if there are none."""
    names = tuple(name for name in columns if name != target)
    if not names:
        raise DataError("it has no columns besides the target; give at least one feature")
    return names


def _libsvm(path: Path, target: TargetColumn) -> BlockSource:
    if target is not None:
        raise DataError(f"target={target!r}: the target of a LIBSVM file is its first column")
    size, part = os.path.getsize(path), _LIBSVM_BYTES

    def parts(width: int) -> Iterator[tuple[Any, np.ndarray]]:
        for offset in range(0, size, part):
            block = load_svmlight_file(
                str(path),
                n_features=width,
                dtype=np.float32,
                offset=offset,
                length=part,
                zero_based=True,
            )
            if block[0].shape[0]:
                yield block

    # As in scikit-learn, columns count from 1 unless any row of the file has a column 0.
    used = [(X.indices.min(), X.indices.max()) for X, _ in parts(MAX_SIZE) if X.nnz]
    if not used:
        raise DataError("it holds no values; give rows of column:value pairs")
    first = int(min(low for low, _ in used) > 0)
    columns = max(int(high) for _, high in used) + 1 - first

    def blocks() -> Iterator[tuple[np.ndarray, Any]]:
        step = rows_of_block(columns)
        for X, y in parts(columns + first):
            for start in range(0, X.shape[0], step):
                rows = slice(start, start + step)
                yield X[rows].toarray()[:, first:], y[rows]

    return BlockSource(str(path), columns, None, None, blocks, np.concatenate)


def _plain(y: np.ndarray) -> np.ndarray:
    """Labels as numbers or text, which are stored without pickle; DataError for missing ones."""
    if y.dtype != object:
        return y
    if pd.isna(y).any():
        raise DataError(f"the target has {int(pd.isna(y).sum())} missing values; drop these rows")
    return y.astype(str)
