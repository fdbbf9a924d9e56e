"""Tables whose rows are read while they are used: ``.npy`` files and converted tables."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from fsjax.errors import ConfigError, DataError
from fsjax.tables.checks import check_features
from fsjax.tables.dataset import Dataset
from fsjax.tables.readers.file_type import candidates
from fsjax.tables.readers.formats import several
from fsjax.tables.readers.target_columns import encode_target, encode_targets
from fsjax.tables.streamed import StreamedTable, open_npy

#: What to do about missing values.
_FILL = "fill them before the table is saved or converted"


def find_on_disk(name: str, folders: Sequence[Path]) -> Path | None:
    """The path of the ``.npy`` file or converted table with this name, or ``None``."""
    for candidate in candidates(name, folders):
        if (candidate / "X.npy").is_file():
            return candidate
        if candidate.suffix.lower() == ".npy" and candidate.is_file():
            return candidate
    return None


def load_on_disk(
    path: Path, target: str | int | Sequence[str | int] | None = None, dense: bool = False
) -> Dataset:
    """Load a table whose X stays on disk.

    Args:
      path: a ``.npy`` file ``(N, D)``, or a folder that :func:`fsjax.data.convert` wrote.
      target: for a ``.npy`` file, the path of another one ``(N,)`` or ``(N, C)``, or the number of
        a column; ``None`` takes ``NAME.y.npy`` beside ``NAME.npy`` if it exists.
      dense: whether to read X into memory.

    Raises:
      DataError: if files are damaged, or values are missing or infinite.
      ConfigError: if the target is neither a column nor a file, or the table has its own.
    """
    if isinstance(target, Sequence) and not isinstance(target, str):
        raise ConfigError(f"target={target!r}; a table on disk takes one column or file")
    names, source = None, str(path)
    if not path.is_dir():
        X, y = _file(path, target)
    elif target is not None:
        raise ConfigError(f"target={target!r}, but {path} was converted with its target")
    else:
        X, y = open_npy(path / "X.npy"), _array(path / "y.npy")
        # Only folders of fsjax.data.convert have these.
        if (path / "names.json").is_file():
            names = tuple(json.loads((path / "names.json").read_text(encoding="utf-8")))
        if (path / "source.txt").is_file():
            source += f" of {(path / 'source.txt').read_text(encoding='utf-8')}"
    check_features(X, names, str(path), _FILL)
    classes = None
    if y is not None:
        y, label = several(y), f"the target of {path}"
        y, classes = (encode_targets(y, label), None) if y.ndim == 2 else encode_target(y, label)
        if len(y) != len(X):
            raise DataError(f"{path} has {len(X)} rows but {len(y)} targets; give one for each")
    return Dataset(
        name=path.name,
        X=np.asarray(X) if dense else X,
        y=y,
        feature_names=names,
        class_names=classes,
        source=source if dense else f"{source}, read from disk",
    )


def _file(path: Path, target: str | int | None) -> tuple[StreamedTable, np.ndarray | None]:
    X = open_npy(path)
    if target is None:
        return X, _array(path.with_suffix(".y.npy"))
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


def _array(path: Path) -> np.ndarray | None:
    """The array of a file, or ``None`` if there is no file."""
    if not path.is_file():
        return None
    try:
        return np.load(path, allow_pickle=False)
    except (OSError, ValueError) as error:
        raise DataError(
            f"{path} cannot be read as a NumPy file: {error}; save numbers or text with numpy.save"
        ) from None
