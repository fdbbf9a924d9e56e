"""Turn a table into a form that is read row by row from disk, once and in bounded memory."""

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
from fsjax.readers.blocks import Source, TargetColumn, open_source
from fsjax.readers.formats import NOTICEABLE
from fsjax.storage.atomic_files import write_text
from fsjax.storage.identity import Identity

#: The record of a conversion, written last: without it there is none.
MANIFEST = "manifest.json"

#: Of the form of the folder.
_FORM = 1


def convert(
    source: str | Path,
    folder: str | Path | None = None,
    target: TargetColumn = None,
    progress: bool = True,
) -> Path:
    """Converts a table into a folder that :func:`fsjax.data.load` reads without holding it.

    The folder has ``X.npy``, rows of float32 (float64 where float32 would lose what makes the rows
    of a column differ, as :func:`fsjax.data.load_table` has it), ``y.npy``, ``names.json`` and
    ``manifest.json``. It appears complete or not at all.

    Args:
      source: a ``.csv`` or ``.tsv`` file with a line of column names, whose separator and decimal
        mark are detected, a ``.parquet`` file or a
        folder of them, or a ``.libsvm``/``.svm`` file. Larger than the memory if need be.
      folder: what to make; by default beside the source, its name with ``.fsjax`` behind it. A
        folder that holds this very conversion is left as it is.
      target: the column to predict, by name or number; none for LIBSVM, which has its own.
      progress: whether to show a progress bar.

    Returns:
      The folder.

    Raises:
      DataError: if the source is missing or holds what is not a number, if the folder holds
        something else, or if it cannot be written, as when the disk is full; nothing is left
        behind then.
      ConfigError: for settings of another type.
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
            "removed, make room or name a folder on another disk"
        ) from None
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return table_folder


def _described(source: Path, target: TargetColumn) -> dict[str, Any]:
    return {"form": _FORM, "source": files_of(source), "target": target}


def read_manifest(folder: Path) -> dict[str, Any]:
    """The record of a conversion whose files and source are still those that it tells.

    Raises:
      DataError: if they are not, or the record is damaged.
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
    # A conversion may outlive its source, and travel without it.
    if source.exists() and files_of(source) != record["source"]:
        raise DataError(f"{source} has changed since {folder} was made of it; {again}")
    return record


def files_of(source: Path) -> dict[str, Any]:
    """What a source is, by name, size and time of its files."""
    files = parquet_files(source) if source.is_dir() else [source]
    stats = [(file, file.stat()) for file in files]
    return {
        "path": str(source.absolute()),
        "files": [[file.name, stat.st_size, stat.st_mtime_ns] for file, stat in stats],
    }


def parquet_files(folder: Path) -> list[Path]:
    """The Parquet files of a folder, in the order of their names."""
    return sorted(folder.glob("*.parquet"))


def _check_same(folder: Path, record: dict[str, Any]) -> None:
    """DataError unless the folder is the conversion that the record tells."""
    if not (folder / MANIFEST).exists():
        raise DataError(f"{folder} exists and is not a converted table; name another folder")
    there = read_manifest(folder)
    if changes := Identity(record).changes(Identity({name: there.get(name) for name in record})):
        raise DataError(
            f"{folder} holds another conversion ({changes}); remove it, or name another folder"
        )


def _size(path: Path) -> int | None:
    return path.stat().st_size if path.is_file() else None


def _write(table: Source, folder: Path, progress: bool) -> dict[str, Any]:
    """Writes all but the manifest, of which it returns the rest."""
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
        "files": {name: _size(folder / name) for name in names},
    }


def _write_rows(
    table: Source, path: Path, dtype: np.dtype, progress: bool
) -> tuple[int, np.ndarray | None, bool, bool]:
    """Writes X; returns its rows, y, whether all is finite, and whether float32 loses."""
    rows, targets, finite, spread = 0, [], True, _Spread()
    bar = tqdm(total=table.rows, desc=f"convert {table.where}", unit="row", disable=not progress)
    with path.open("wb") as file, bar:
        _header(file, dtype, (0, table.columns))
        for X, y in _guarded(table):
            with np.errstate(over="ignore"):
                stored = np.ascontiguousarray(X, dtype)
            if dtype == np.float32:
                spread.add(X, stored)
            finite = finite and bool(np.isfinite(stored).all())
            file.write(stored.data.cast("B"))
            rows += len(X)
            targets += [] if y is None else [y]
            bar.update(len(X))
        if not rows:
            raise DataError(f"{table.where} is empty: it has no rows")
        # The header keeps room for the number of rows.
        file.seek(0)
        _header(file, dtype, (rows, table.columns))
        file.flush()
        os.fsync(file.fileno())
    return rows, table.join(targets) if targets else None, finite, spread.loses


def _guarded(table: Source) -> Iterator[tuple[np.ndarray, Any]]:
    """The blocks of a source, whose reader's complaints become a DataError."""
    blocks = table.blocks()
    while True:
        try:
            block = next(blocks, None)
        except DataError as error:
            raise DataError(f"{table.where}: {error}") from None
        except Exception as error:  # whatever a reader trips over, the file is at fault
            raise DataError(
                f"{table.where} cannot be converted: {str(error).splitlines()[0]}; all columns "
                "but the target must hold numbers"
            ) from None
        if block is None:
            return
        yield block


def _header(file: IO[bytes], dtype: np.dtype, shape: tuple[int, int]) -> None:
    about = {"descr": dtype.str, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, about)


class _Spread:
    """How far float32 moves the values of every column, against what they span."""

    def __init__(self) -> None:
        self.moved = self.low = self.high = None

    def add(self, X: np.ndarray, rounded: np.ndarray) -> None:
        if X.dtype.kind == "f" and X.dtype.itemsize <= 4:
            return
        X = np.asarray(X, np.float64)
        with np.errstate(invalid="ignore"):
            moved = np.fmax.reduce(np.abs(X - rounded))
        low, high = np.fmin.reduce(X), np.fmax.reduce(X)
        if self.moved is not None:
            moved, low = np.fmax(moved, self.moved), np.fmin(low, self.low)
            high = np.fmax(high, self.high)
        self.moved, self.low, self.high = moved, low, high

    @property
    def loses(self) -> bool:
        if self.moved is None:
            return False
        with np.errstate(invalid="ignore"):
            extent = self.high - self.low
        return bool((np.isfinite(self.moved) & (self.moved > NOTICEABLE * extent)).any())
