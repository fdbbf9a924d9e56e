"""Conversion of a table, in bounded memory, to a form whose rows can be read from disk."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np
from tqdm import tqdm

from fsjax.errors import ConfigError, DataError, check_flag
from fsjax.readers.blocks import BlockSource, TargetColumn, open_source, parquet_files
from fsjax.readers.file_type import reader_errors
from fsjax.readers.formats import Rounding
from fsjax.storage.atomic_files import write_text
from fsjax.storage.identity import Identity

#: The record of a conversion. It is written last, so a folder without it is not complete.
MANIFEST = "manifest.json"

#: Version of the layout of the folder.
_FORM = 1


def convert(
    source: str | Path,
    folder: str | Path | None = None,
    target: TargetColumn = None,
    progress: bool = True,
) -> Path:
    """Convert a table to a folder from which :func:`fsjax.data.load` reads rows as it needs them.

    The folder has ``X.npy``, rows of float32 (float64 where float32 is too coarse for a column, by
    the rule of :func:`fsjax.data.load_table`), ``y.npy``, ``names.json`` and ``manifest.json``. It
    appears complete or not at all.

    Args:
      source: a ``.csv`` or ``.tsv`` file with a line of column names, whose separator and decimal
        mark are detected, a ``.parquet`` file or a folder of them, or a ``.libsvm``/``.svm`` file.
        It may be larger than the memory.
      folder: the folder to write; by default beside the source, with ``.fsjax`` appended to its
        name. A folder that already holds the same conversion is left as it is.
      target: the column to predict, by name or number; ``None`` for LIBSVM, where it is fixed.
      progress: whether to show a progress bar.

    Returns:
      The folder.

    Raises:
      DataError: if the source is missing or has columns that are not numbers, if the folder holds
        something else, or if it cannot be written, for example because the disk is full; nothing
        is left behind in that case.
      ConfigError: for arguments of another type.
    """
    check_flag("progress", progress)
    if target is not None and (isinstance(target, bool) or not isinstance(target, str | int)):
        raise ConfigError(f"target={target!r}; give the name or the number of one column")
    source = Path(source).expanduser()
    table_folder = Path(f"{source}.fsjax") if folder is None else Path(folder).expanduser()
    if table_folder.exists() and source.exists():
        _check_same(table_folder, _described(source, target))
        return table_folder
    table = open_source(source, target)
    record = _described(source, target)
    partial = table_folder.with_name(f".{table_folder.name}.{os.getpid()}.partial")
    try:
        partial.mkdir(parents=True)
        about = _write(table, partial, progress)
        write_text(partial / MANIFEST, json.dumps({**record, **about}, indent=2) + "\n")
        os.replace(partial, table_folder)
    except OSError as error:
        raise DataError(
            f"{table_folder} cannot be written: {error.strerror or error}; what was written is "
            "removed: free some space, or name a folder on another disk"
        ) from None
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return table_folder


def _described(source: Path, target: TargetColumn) -> dict[str, Any]:
    """The part of the record that identifies a conversion."""
    return {"form": _FORM, "source": files_of(source), "target": target}


def read_manifest(folder: Path) -> dict[str, Any]:
    """Read the record of a conversion and check that its files and source have not changed.

    Raises:
      DataError: if they have, or the record is missing or damaged.
    """
    again = f"remove {folder} and convert again (fsjax convert)"
    try:
        record = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        files, form = record["files"], record["form"]
    except (OSError, ValueError, KeyError, TypeError):
        raise DataError(f"{folder / MANIFEST} is missing or damaged; {again}") from None
    if form != _FORM:
        raise DataError(f"{folder} was made by another version of fsjax; {again}")
    sizes = {name: _size(folder / name) for name in files}
    if bad := [name for name, size in files.items() if sizes[name] != size]:
        raise DataError(
            f"{folder / bad[0]} has {sizes[bad[0]]} bytes, but {files[bad[0]]} were "
            f"written; {again}"
        )
    source = Path(record["source"]["path"])
    # The source may have been removed, and the folder may have been copied without it.
    if source.exists() and files_of(source) != record["source"]:
        raise DataError(f"{source} has changed since it was converted to {folder}; {again}")
    return record


def files_of(source: Path) -> dict[str, Any]:
    """Name, size and modification time of the files of a source."""
    files = parquet_files(source) if source.is_dir() else [source]
    stats = [(file, file.stat()) for file in files]
    return {
        "path": str(source.absolute()),
        "files": [[file.name, stat.st_size, stat.st_mtime_ns] for file, stat in stats],
    }


def _check_same(folder: Path, record: dict[str, Any]) -> None:
    """DataError unless the folder holds the conversion that ``record`` describes."""
    if not (folder / MANIFEST).exists():
        raise DataError(f"{folder} exists and is not a converted table; name another folder")
    stored = read_manifest(folder)
    if changes := Identity(record).changes(Identity({name: stored.get(name) for name in record})):
        raise DataError(
            f"{folder} holds another conversion ({changes}); remove it, or name another folder"
        )


def _size(path: Path) -> int | None:
    return path.stat().st_size if path.is_file() else None


def _write(table: BlockSource, folder: Path, progress: bool) -> dict[str, Any]:
    """Write all files but the manifest; returns what the manifest says of them."""
    dtypes: tuple[np.dtype, ...] = (np.dtype(np.float32), np.dtype(np.float64))
    for dtype in dtypes:
        rows, y, finite, loses = _write_rows(table, folder / "X.npy", dtype, progress)
        if not loses:
            break
    names = ["X.npy"]
    if y is not None:
        with (folder / "y.npy").open("wb") as file:
            np.save(file, y, allow_pickle=False)
        names.append("y.npy")
    if table.names is not None:
        write_text(folder / "names.json", json.dumps(table.names, ensure_ascii=False))
        names.append("names.json")
    return {
        "rows": rows,
        "columns": table.columns,
        "dtype": dtype.name,
        "finite": finite,
        "remarks": table.remarks,
        "files": {name: _size(folder / name) for name in names},
    }


def _write_rows(
    table: BlockSource, path: Path, dtype: np.dtype, progress: bool
) -> tuple[int, np.ndarray | None, bool, bool]:
    """Write X; returns the number of rows, y, and whether X is finite and loses by float32."""
    rows, targets, finite, rounding = 0, [], True, Rounding()
    bar = tqdm(total=table.rows, desc=f"convert {table.where}", unit="row", disable=not progress)
    with path.open("wb") as file, bar:
        _header(file, dtype, (0, table.columns))
        for X, y in _guarded(table):
            with np.errstate(over="ignore"):
                stored = np.ascontiguousarray(X, dtype)
            if dtype == np.float32:
                rounding.add(X, stored)
            finite = finite and bool(np.isfinite(stored).all())
            file.write(stored.data.cast("B"))
            rows += len(X)
            targets += [] if y is None else [y]
            bar.update(len(X))
        if not rows:
            raise DataError(f"{table.where} is empty: it has no rows")
        # The header has a fixed length, so it can be written again with the number of rows.
        file.seek(0)
        _header(file, dtype, (rows, table.columns))
        file.flush()
        os.fsync(file.fileno())
    return rows, table.join(targets) if targets else None, finite, rounding.noticeable


def _guarded(table: BlockSource) -> Iterator[tuple[np.ndarray, Any]]:
    """The blocks of a source; errors of its reader become a DataError."""
    with reader_errors(table.where, "cannot be converted"):
        yield from table.blocks()


def _header(file: IO[bytes], dtype: np.dtype, shape: tuple[int, int]) -> None:
    header = {"descr": dtype.str, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, header)
