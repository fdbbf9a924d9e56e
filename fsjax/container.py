"""One ``.npz`` file of named arrays and a JSON header: written whole, read without pickle."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from fsjax.archives import Arrays
from fsjax.atomic import atomic_open
from fsjax.errors import ConfigError, DataError
from fsjax.limits import check_bytes
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


def read(
    path: str | Path, max_bytes: int | None = None
) -> tuple[dict[str, Any], Mapping[str, np.ndarray]]:
    """Reads what :func:`write` wrote, without pickle: the header, and the arrays by name.

    The header has ``kind``, ``version`` and the version ``fsjax`` of the package that wrote it. An
    array is read, and checked, when it is asked for.

    Args:
      path: the file.
      max_bytes: that the file, and its arrays together, may take; half of the free memory by
        default.

    Raises:
      DataError: for a file that is missing or incomplete, is not ours, has a newer version, is
        larger than allowed, or holds arrays of objects; an array that cannot be read is one as
        well.
    """
    try:
        advice = "give a larger max_bytes if you trust it"
        check_bytes(Path(path).stat().st_size, max_bytes, str(path), advice)
        data = Path(path).read_bytes()
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}") from error
    if not data.startswith(b"PK\x03\x04"):
        raise DataError(f"{path} is no file of fsjax: it is no npz file")
    # The table of contents of a zip file is at its end.
    if not zipfile.is_zipfile(io.BytesIO(data)):
        raise DataError(f"{path} is incomplete: its end is missing; copy or save it again")
    try:
        stored = Arrays(data, max_bytes)
    except DataError as error:
        raise DataError(f"{path} is broken: {error}") from error
    return _header(path, stored), stored


def _header(path: str | Path, stored: Mapping[str, np.ndarray]) -> dict[str, Any]:
    if _HEADER not in stored:
        raise DataError(f"{path} is no file of fsjax: it has no array {_HEADER!r}")
    try:
        values = stored[_HEADER]
    except DataError as error:
        raise DataError(f"{path}: {error}") from error
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
