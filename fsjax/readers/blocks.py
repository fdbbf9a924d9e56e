"""Tables as blocks of rows, for conversion: text, Parquet and LIBSVM.

Text is read as by :mod:`fsjax.readers.text`. pyarrow is imported where a Parquet file needs it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.datasets import load_svmlight_file

from fsjax.errors import DataError, nearest
from fsjax.extras import require
from fsjax.readers.table_files import target_column
from fsjax.readers.text import USUAL_SEPARATOR, check_header, dialect_of, first_records, frames
from fsjax.tables.checks import name_some, numeric_columns
from fsjax.tables.sparse import MOST
from fsjax.tables.stored import rows_of_block

#: The column to predict.
TargetColumn = str | int | None

#: Bytes of a LIBSVM file that are read at once; a line has to fit.
_LIBSVM_BYTES = 2**21

#: Lines at the start of a text table that tell how its cells are written.
_FIRST_LINES = 200

_LIBSVM = (".libsvm", ".svm")


class Source(NamedTuple):
    """A table that is read some rows at a time.

    Attributes:
      where: what it is called in messages.
      columns: D, without the target.
      names: of the D columns, or ``None``.
      rows: N, where it is known before.
      blocks: starts from the first row: pairs of ``(B, D)`` numbers and their targets, or ``None``.
      join: the targets of all blocks together, ``(N,)``.
    """

    where: str
    columns: int
    names: tuple[str, ...] | None
    rows: int | None
    blocks: Callable[[], Iterator[tuple[np.ndarray, Any]]]
    join: Callable[[Sequence[Any]], np.ndarray]


def open_source(path: Path, target: TargetColumn) -> Source:
    """A table by its path.

    Raises:
      DataError: if there is none, of a kind that is not converted, or without that target.
    """
    suffix = path.suffix.lower()
    if not path.exists():
        raise DataError(f"there is no file or folder {path}; give the path of a table")
    try:
        if path.is_dir() or suffix == ".parquet":
            return _parquet(path, target)
        if suffix in USUAL_SEPARATOR:
            return _text(path, target, USUAL_SEPARATOR[suffix])
        if suffix in _LIBSVM:
            return _libsvm(path, target)
    except DataError as error:
        raise DataError(f"{path}: {error}") from None
    except Exception as error:  # whatever a reader trips over, the file is at fault
        raise DataError(f"{path} cannot be read: {str(error).splitlines()[0]}") from None
    kinds = (*USUAL_SEPARATOR, ".parquet", *_LIBSVM)
    raise DataError(
        f"{path} has the suffix {suffix!r}, which is not converted; "
        f"{nearest(suffix, kinds)}, or a folder of Parquet files"
    )


def _parquet(path: Path, target: TargetColumn) -> Source:
    require("pyarrow", "reading Parquet files")
    import pyarrow as pa
    from pyarrow import dataset

    files = sorted(map(str, path.glob("*.parquet"))) if path.is_dir() else str(path)
    if not files:
        raise DataError("it has no .parquet files; give a folder that holds some, or a file")
    table = dataset.dataset(files, format="parquet")
    chosen = None if target is None else target_column(table.schema.names, target)
    fields = [field for field in table.schema if field.name != chosen]

    def is_number(kind: pa.DataType) -> bool:
        tests = pa.types.is_floating, pa.types.is_integer, pa.types.is_boolean
        return any(test(kind) for test in tests)

    if bad := [field.name for field in fields if not is_number(field.type)]:
        raise DataError(
            f"{len(bad)} of {len(fields)} columns are not numbers: {name_some(bad)}; drop them, or "
            "make one the target"
        )
    if not fields:
        raise DataError("it has no columns besides the target; give at least one feature")
    small = all(np.can_cast(field.type.to_pandas_dtype(), np.float32) for field in fields)

    def blocks() -> Iterator[tuple[np.ndarray, Any]]:
        # What is read ahead lies in memory.
        for batch in table.to_batches(
            batch_size=rows_of_block(len(fields)), batch_readahead=1, fragment_readahead=1
        ):
            X = np.empty((len(batch), len(fields)), np.float32 if small else np.float64)
            for place, field in enumerate(fields):
                X[:, place] = batch.column(field.name).to_numpy(zero_copy_only=False)
            yield X, None if chosen is None else batch.column(chosen)

    def join(parts: Sequence[Any]) -> np.ndarray:
        return _plain(pa.chunked_array(parts).to_pandas().to_numpy())

    names = tuple(field.name for field in fields)
    return Source(str(path), len(fields), names, table.count_rows(), blocks, join)


def _text(path: Path, target: TargetColumn, usual_separator: str) -> Source:
    with path.open(encoding="utf-8-sig", newline="") as file:
        lines = list(islice(file, _FIRST_LINES))
    if not lines or not lines[0].strip():
        raise DataError("it is empty: there is no line of column names")
    dialect = dialect_of("".join(lines), usual_separator)
    header = first_records(lines[0], dialect.separator)[0]
    check_header(header)
    chosen = None if target is None else target_column(header, target)
    # A nameless first column counts the rows, as pandas saves it.
    names = tuple(name for name in header if name not in (chosen, ""))
    if not names:
        raise DataError("it has no columns besides the target; give at least one feature")
    if header.count("") > (header[0] == ""):
        raise DataError("it has a column without a name; give every column its own name")
    as_text = [] if chosen is None else [chosen]

    def blocks() -> Iterator[tuple[np.ndarray, Any]]:
        done = 0
        with path.open(encoding="utf-8-sig", newline="") as file:
            for frame in frames(file, header, dialect, rows_of_block(len(names)), as_text):
                if not len(frame):
                    return
                if header[0] == "":
                    _check_counts(frame.iloc[:, 0].to_numpy(), done)
                features = frame[list(names)]
                numeric_columns(features, "it")
                done += len(frame)
                X = features.to_numpy(dtype=np.float64, na_value=np.nan)
                yield X, None if chosen is None else frame[chosen]

    def join(parts: Sequence[Any]) -> np.ndarray:
        texts = pd.concat(parts)
        try:
            return pd.to_numeric(texts).to_numpy()
        except ValueError:
            return _plain(texts.to_numpy(dtype=object))

    return Source(str(path), len(names), names, None, blocks, join)


def _check_counts(column: np.ndarray, start: int) -> None:
    if not np.array_equal(column, np.arange(start, start + len(column))):
        raise DataError("the first column has no name and does not count the rows; name it")


def _libsvm(path: Path, target: TargetColumn) -> Source:
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

    # Columns count from 1 unless there is a 0, as scikit-learn has it; some rows do not tell.
    used = [(X.indices.min(), X.indices.max()) for X, _ in parts(MOST) if X.nnz]
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

    return Source(str(path), columns, None, None, blocks, np.concatenate)


def _plain(y: np.ndarray) -> np.ndarray:
    """Labels as numbers or text, which need no pickle; DataError for missing ones."""
    if y.dtype != object:
        return y
    if pd.isna(y).any():
        raise DataError(f"the target has {int(pd.isna(y).sum())} missing values; drop these rows")
    return y.astype(str)
