"""Tables that stay on disk: ``.npy`` files, converted tables and folders of Parquet files."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from fsjax.errors import ConfigError, DataError
from fsjax.readers.blocks import parquet_files
from fsjax.readers.conversion import MANIFEST, convert, read_manifest
from fsjax.readers.file_type import candidates
from fsjax.readers.target_columns import encode_target, encode_targets
from fsjax.tables.checks import check_features
from fsjax.tables.dataset import Dataset
from fsjax.tables.streamed import StreamedTable, open_npy

#: What to do about missing values.
_FILL = "fill them before the table is saved or converted"


def find_on_disk(name: str, folders: Sequence[Path]) -> Path | None:
    """The path of the ``.npy`` file or folder with this name, or ``None``."""
    for candidate in candidates(name, folders):
        if candidate.is_dir() and ((candidate / MANIFEST).exists() or parquet_files(candidate)):
            return candidate
        if candidate.suffix.lower() == ".npy" and candidate.is_file():
            return candidate
    return None


def load_on_disk(
    path: Path, target: str | int | Sequence[str | int] | None = None, dense: bool = False
) -> Dataset:
    """Load a table whose X stays on disk.

    Args:
      path: a ``.npy`` file ``(N, D)``, a folder that :func:`fsjax.data.convert` wrote, or a folder
        of Parquet files, which is converted the first time.
      target: for a ``.npy`` file, the path of another one ``(N,)`` or ``(N, C)``, or the number of
        a column; ``None`` takes ``NAME.y.npy`` beside ``NAME.npy`` if it exists. For a folder of
        Parquet files, a column.
      dense: whether to read X into memory.

    Raises:
      DataError: if files are damaged or have changed, or values are missing or infinite.
      ConfigError: if the target is neither a column nor a file, or not that of the conversion.
    """
    if isinstance(target, Sequence) and not isinstance(target, str):
        raise ConfigError(f"target={target!r}; a table on disk takes one column or file")
    names: tuple[str, ...] | None = None
    remarks: tuple[str, ...] = ()
    if path.is_dir():
        X, y, names, remarks = _folder(path, target)
    else:
        X, y = _file(path, target)
    check_features(X, names, str(path), _FILL)
    classes = None
    if y is not None:
        label = f"the target of {path}"
        y, classes = (encode_targets(y, label), None) if y.ndim == 2 else encode_target(y, label)
        if len(y) != len(X):
            raise DataError(f"{path} has {len(X)} rows but {len(y)} targets; give one for each")
    return Dataset(
        name=path.name,
        X=np.asarray(X) if dense else X,
        y=y,
        feature_names=names,
        class_names=classes,
        source=", ".join([str(path), *remarks, *([] if dense else ["read from disk"])]),
    )


def _folder(
    path: Path, target: str | int | None
) -> tuple[StreamedTable, np.ndarray | None, tuple[str, ...] | None, tuple[str, ...]]:
    if not (path / MANIFEST).exists():
        path = convert(path, None, target)
    elif target is not None and read_manifest(path)["target"] != target:
        raise ConfigError(
            f"{path} was converted with the target {read_manifest(path)['target']!r}, not "
            f"{target!r}; leave data.target out, or convert again"
        )
    record = read_manifest(path)
    X = open_npy(path / "X.npy")
    if X.shape != (record["rows"], record["columns"]):
        raise DataError(
            f"{path / 'X.npy'} has the shape {X.shape}, but {record['rows']} rows of "
            f"{record['columns']} columns were written; remove {path} and convert again"
        )
    y = _array(path / "y.npy") if "y.npy" in record["files"] else None
    names = None
    if "names.json" in record["files"]:
        names = tuple(json.loads((path / "names.json").read_text(encoding="utf-8")))
    # Earlier versions recorded no remarks.
    return X, y, names, tuple(record.get("remarks", ()))


def _file(path: Path, target: str | int | None) -> tuple[StreamedTable, np.ndarray | None]:
    X = open_npy(path)
    if target is None:
        beside = path.with_suffix(".y.npy")
        return X, _array(beside) if beside.is_file() else None
    for place in (Path(str(target)).expanduser(), path.parent / str(target)):
        if place.suffix.lower() == ".npy" and place.is_file():
            return X, _array(place)
    try:
        column = range(X.shape[1])[int(target)]
    except (ValueError, IndexError):
        raise DataError(
            f"target={target!r} is neither a .npy file nor a column of {path}; give the path of a "
            f".npy file, or a number from 0 to {X.shape[1] - 1} (or -1 for the last)"
        ) from None
    if X.shape[1] == 1:
        raise DataError(f"{path} has no columns besides the target; give at least one feature")
    y = X.block(np.arange(len(X)), np.array([column]))[:, 0]
    return dataclasses.replace(X, without=column), y


def _array(path: Path) -> np.ndarray:
    try:
        return np.load(path, allow_pickle=False)
    except (OSError, ValueError) as error:
        raise DataError(
            f"{path} cannot be read as a NumPy file: {error}; save numbers or text with numpy.save"
        ) from None
