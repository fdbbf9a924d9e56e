"""Files of named arrays and a JSON header: results, estimators and checkpoints.

They are NumPy's ``.npz`` files without pickle, with the SHA-256 of their contents among the arrays,
and are written atomically. A file whose checksum and version fit is trusted.
"""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib.npyio import NpzFile

from fsjax import __version__
from fsjax.engine.environment.memory_limits import check_bytes
from fsjax.errors import ConfigError, DataError, FsjaxError
from fsjax.storage.atomic_files import atomic_open

FORMAT = "fsjax"

#: Version of the layout of files, which a change that older packages cannot read increases.
#: Files of version 3 have no SHA-256.
VERSION, READ_VERSIONS = 4, (3, 4)

#: The arrays of the header and the checksum, and names of arguments of NumPy's functions.
_HEADER, _SHA256 = "header", "sha256"
_RESERVED = (_HEADER, _SHA256, "file", "allow_pickle")


class VersionError(DataError):
    """A file has a version of the format that this package does not read."""


def write(
    path: str | Path,
    header: Mapping[str, Any],
    arrays: Mapping[str, np.ndarray],
    *,
    compress: bool = True,
) -> None:
    """Write a header and arrays as one ``.npz`` file, atomically.

    Args:
      path: the file; no suffix is added. Missing folders are created.
      header: values that JSON can hold, with ``kind``, the name of what is stored. The format and
        the versions of the format and the package are added.
      arrays: by name, of any shape and any type but objects.

    Raises:
      ConfigError: for values that only pickle could store, such as arrays of objects, and for
        reserved names.
      OSError: if the file cannot be written.
    """
    if Path(path).is_dir():
        raise ConfigError(f"{path} is a folder; give the name of a file")
    for name, values in arrays.items():
        if name in _RESERVED:
            raise ConfigError(f"the array name {name!r} is reserved; choose another name")
        if np.asarray(values).dtype.hasobject:
            raise ConfigError(
                f"the array {name!r} has the type {np.asarray(values).dtype}, which needs pickle; "
                "make it one of numbers, truth values or text"
            )
    head = {**header, "format": FORMAT, "version": VERSION, "fsjax": __version__}
    try:
        text = json.dumps(head)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"the header cannot be written as JSON: {error}") from error
    # Any: the type checker takes names for options of NumPy's functions.
    entries: dict[str, Any] = {_HEADER: np.frombuffer(text.encode(), np.uint8), **arrays}
    entries[_SHA256] = _sha256(entries)
    with atomic_open(path) as file:
        (np.savez_compressed if compress else np.savez)(file, **entries)


def read(
    path: str | Path, max_bytes: int | None = None
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Read a file of :func:`write` without pickle: the header, and the arrays by name.

    The header has ``kind``, ``version`` and ``fsjax``, the version of the package that wrote it.

    Args:
      max_bytes: limit on the total size of the arrays; half of the free memory by default.

    Raises:
      DataError: for a file that is missing, damaged or incomplete, was not written by fsjax, has
        another version or is too large.
    """
    try:
        with open(path, "rb") as file, open_arrays(file, str(path), max_bytes) as stored:
            arrays = {name: np.asarray(stored[name]) for name in stored}
    except FsjaxError:
        raise
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}") from error
    except zipfile.BadZipFile as error:
        raise DataError(
            f"{path} is not a complete npz file ({error}); copy or save it again"
        ) from error
    # A damaged zip file may raise anything in its reader.
    except Exception as error:
        raise DataError(f"{path} is damaged ({error}); copy or save it again") from error
    checksum = arrays.pop(_SHA256, None)
    header = _header(path, arrays)
    if header["version"] > 3 and checksum != _sha256(arrays):
        raise DataError(f"{path} is damaged: its SHA-256 is wrong; copy or save it again")
    del arrays[_HEADER]
    return header, arrays


def open_arrays(file: IO[bytes], name: str, max_bytes: int | None = None) -> NpzFile:
    """Open an ``.npz`` file, whose arrays are then read without pickle when they are accessed.

    Args:
      file: opened for reading.
      name: of the file, for messages.
      max_bytes: limit on the total size of the arrays; half of the free memory by default.

    Raises:
      DataError: if the arrays are too large.
      Exception: of any type, if the file is damaged.
    """
    needed = sum(entry.file_size for entry in zipfile.ZipFile(file).infolist())
    check_bytes(needed, max_bytes, name, "give a larger max_bytes if you trust it")
    file.seek(0)
    return np.load(file, allow_pickle=False)


def _sha256(arrays: Mapping[str, np.ndarray]) -> str:
    """The SHA-256 of the names, shapes and values of arrays."""
    checksum = hashlib.sha256()
    for name in sorted(arrays):
        values = np.asarray(arrays[name])
        checksum.update(f"{name} {values.shape} {values.itemsize} ".encode())
        # Bytes, because not every type supports the buffer protocol.
        checksum.update(np.ascontiguousarray(values).reshape(-1).view(np.uint8).data)
    return checksum.hexdigest()


def _header(path: str | Path, arrays: Mapping[str, np.ndarray]) -> dict[str, Any]:
    try:
        header = json.loads(arrays[_HEADER].tobytes())
    except (KeyError, ValueError, RecursionError):
        header = None
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise DataError(f"{path} was not written by fsjax: it has no header of this format")
    if header.get("version") not in READ_VERSIONS:
        raise VersionError(
            f"{path} has version {header.get('version')} of the format, written by fsjax "
            f"{header.get('fsjax')}; fsjax {__version__} reads versions "
            f"{READ_VERSIONS[0]} to {VERSION}: use that fsjax, or fit again"
        )
    return header
