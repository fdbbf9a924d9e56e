"""One ``.npz`` file of named arrays and a JSON header: written whole, read without pickle."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from fsjax.archives import damaged_member
from fsjax.atomic import atomic_open
from fsjax.errors import ConfigError, DataError
from fsjax.version import __version__

FORMAT = "fsjax"

#: The layout of the file; a change that older versions of the package cannot read raises it.
VERSION = 2

_HEADER = "header"

#: Entry names that ``numpy.savez_compressed`` or this module takes for itself.
_RESERVED = (_HEADER, "file", "allow_pickle")

#: Kinds of dtype that a ``.npy`` entry holds without pickle: numbers, truth values, text, times.
_PLAIN_KINDS = "biufcUSmM"


def write(path: str | Path, header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
    """Writes a header and arrays as one ``.npz`` file, atomically.

    Args:
      path: the file, taken as it is given: no suffix is added. Missing folders are made.
      header: what JSON knows, with ``kind``, a name for what is stored. The format, its version
        and that of the package are added.
      arrays: of any shape, by name; numbers, truth values, text or times.

    Raises:
      ConfigError: for what only pickle could store, such as arrays of objects.
      OSError: if the file cannot be written.
    """
    if Path(path).is_dir():
        raise ConfigError(f"{path} is a folder; give the name of a file")
    for name, values in arrays.items():
        if name in _RESERVED:
            raise ConfigError(f"no array can be saved as {name!r}; choose another name")
        if np.asarray(values).dtype.kind not in _PLAIN_KINDS:
            raise ConfigError(
                f"the array {name!r} has the type {np.asarray(values).dtype}, which needs pickle; "
                "make it one of numbers, truth values or text"
            )
    head = {**header, "format": FORMAT, "version": VERSION, "fsjax": __version__}
    try:
        text = json.dumps(head)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"the header cannot be written as JSON: {error}") from error
    entries = {_HEADER: np.frombuffer(text.encode(), np.uint8), **arrays}
    with atomic_open(path) as file:
        np.savez_compressed(file, **entries)


def read(path: str | Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Reads what :func:`write` wrote, without pickle: the header, and the arrays by name.

    The header has ``kind``, ``version`` and the version ``fsjax`` of the package that wrote it.

    Raises:
      DataError: for a file that is missing or incomplete, is not ours, has a newer version, or
        holds arrays of objects.
    """
    try:
        with Path(path).open("rb") as file, _open_npz(path, file) as stored:
            header = _header(path, stored)
            names = [name for name in stored.files if name != _HEADER]
            return header, {name: _entry(path, stored, name) for name in names}
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}") from error


def _open_npz(path: str | Path, file: BinaryIO) -> np.lib.npyio.NpzFile:
    starts = file.read(4) == b"PK\x03\x04"
    # The table of contents of a zip file is at its end.
    ends = zipfile.is_zipfile(file)
    file.seek(0)
    if not starts:
        raise DataError(f"{path} is no file of fsjax: it is no npz file")
    if not ends:
        raise DataError(f"{path} is incomplete: its end is missing; copy or save it again")
    try:
        if damaged := damaged_member(file):
            raise ValueError(f"the checksum of {damaged!r} does not fit; copy or save it again")
        file.seek(0)
        return np.load(file, allow_pickle=False)
    # What a broken or hostile zip file makes its reader raise is not a closed list.
    except Exception as error:
        raise DataError(f"{path} is broken: {error}") from error


def _entry(path: str | Path, stored: Mapping[str, np.ndarray], name: str) -> np.ndarray:
    try:
        values = stored[name]
    # As above; of objects, whose pickle is not read, it is a ValueError.
    except Exception as error:
        raise DataError(f"{path}: the array {name!r} cannot be read: {error}") from error
    if not isinstance(values, np.ndarray):
        raise DataError(f"{path}: the entry {name!r} is no array")
    return values


def _header(path: str | Path, stored: Mapping[str, np.ndarray]) -> dict[str, Any]:
    if _HEADER not in stored:
        raise DataError(f"{path} is no file of fsjax: it has no array {_HEADER!r}")
    values = _entry(path, stored, _HEADER)
    try:
        header = json.loads(values.astype(np.uint8, casting="no").tobytes())
    except (TypeError, ValueError, RecursionError) as error:
        raise DataError(f"{path} is no file of fsjax: its header is no JSON ({error})") from error
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise DataError(f"{path} is no file of fsjax: its header names another format")
    version = header.get("version")
    if type(version) is not int or version < 1:
        raise DataError(f"{path}: the header's version is {version!r}; expected a whole number")
    if version != VERSION:
        older = ", whose states this version does not read; load it there, or fit again"
        newer = f"; fsjax {__version__} reads versions up to {VERSION}: install a newer fsjax"
        raise DataError(
            f"{path} has version {version} of the format, written by fsjax {header.get('fsjax')}"
            f"{older if version < VERSION else newer}"
        )
    return header
