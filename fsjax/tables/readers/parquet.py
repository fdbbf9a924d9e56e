"""Parquet files as tables, whole or in blocks of rows; needs the extra ``parquet`` (pyarrow)."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fsjax.engine.environment.memory_limits import check_bytes
from fsjax.errors import DataError
from fsjax.extras import require


def parquet_frame(data: bytes, max_bytes: int | None) -> pd.DataFrame:
    """Read a file, after a check of the memory that it needs, texts included.

    Args:
      max_bytes: limit on the memory of the table; ``None`` allows half of the free memory.

    Raises:
      DataError: if pyarrow is missing or the table is too large.
    """
    require("pyarrow", "reading Parquet files")
    import pyarrow.parquet as pq  # slow to import, and needed for few tables

    metadata = pq.read_metadata(io.BytesIO(data))
    size = f"a table of {metadata.num_rows:,} x {metadata.num_columns:,}"
    unpacked = sum(
        metadata.row_group(number).total_byte_size for number in range(metadata.num_row_groups)
    )
    needed = max(8 * metadata.num_rows * metadata.num_columns, unpacked)
    check_bytes(needed, max_bytes, size, "keep fewer columns, or give a larger max_bytes")
    texts = _texts(metadata)
    if texts:
        needed += _size_of_texts(
            pq.read_table(io.BytesIO(data), columns=texts, read_dictionary=texts)
        )
        check_bytes(needed, max_bytes, f"{size} with its texts", "keep fewer columns of text")
    # Checksums are verified for pages that have them.
    return _flat(pd.read_parquet(io.BytesIO(data), page_checksum_verification=True))


def parquet_frames(path: Path) -> tuple[list[str], Callable[[int], Iterator[pd.DataFrame]]]:
    """The columns of a file, or of all files of a folder, and a reader of so many rows at a time.

    Raises:
      DataError: if pyarrow is missing, or the folder has no files.
    """
    require("pyarrow", "reading Parquet files")
    from pyarrow import dataset

    files = sorted(map(str, path.glob("*.parquet"))) if path.is_dir() else [str(path)]
    if not files:
        raise DataError("it has no .parquet files; give a folder that holds some, or a file")
    options = dataset.ParquetFragmentScanOptions(page_checksum_verification=True)
    form = dataset.ParquetFileFormat(default_fragment_scan_options=options)
    table = dataset.dataset(files, format=form)

    saved = (table.schema.pandas_metadata or {}).get("index_columns", [])
    ranges = [index for index in saved if isinstance(index, dict) and len(files) == 1]

    def flat(frame: pd.DataFrame, start: int) -> pd.DataFrame:
        for index in ranges:  # at most one, of which no values are stored
            first, step = index["start"] + start * index["step"], index["step"]
            rows = pd.RangeIndex(first, first + step * len(frame), step, name=index["name"])
            frame = frame.set_axis(rows)
        return _flat(frame)

    def frames(rows: int) -> Iterator[pd.DataFrame]:
        start = 0
        # Few, because batches that are read ahead are in memory.
        for batch in table.to_batches(batch_size=rows, batch_readahead=1, fragment_readahead=1):
            yield flat(batch.to_pandas(), start)
            start += len(batch)

    return list(flat(table.schema.empty_table().to_pandas(), 0)), frames


def _flat(frame: pd.DataFrame) -> pd.DataFrame:
    """A saved frame with the named columns of its index as its first columns."""
    names = [name for name in frame.index.names if name is not None and name not in frame]
    return frame.reset_index(names).rename(columns=str)


def _texts(metadata: Any) -> list[str]:
    """The text columns of a Parquet file, except for nested ones, whose lengths may differ."""
    columns = [metadata.schema.column(number) for number in range(metadata.num_columns)]
    return [
        column.path
        for column in columns
        if column.physical_type == "BYTE_ARRAY" and column.path == column.name
    ]


def _size_of_texts(table: Any) -> int:
    """Bytes of the texts of all rows; the file may store a text once for many rows."""
    total = 0
    for chunk in (chunk for column in table.columns for chunk in column.chunks):
        texts = getattr(chunk, "dictionary", chunk)
        lengths = np.array([len(text or "") for text in texts.to_pylist()] or [0], np.int64)
        rows = getattr(chunk, "indices", None)
        total += int((lengths if rows is None else lengths[rows.drop_null().to_numpy()]).sum())
    return total
