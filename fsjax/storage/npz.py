"""Files of named arrays (``.npz``), read without pickle, with checks of sizes and checksums.

Files that fsjax writes have a JSON header among their arrays, and are written atomically.
"""

from __future__ import annotations

import json
import math
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import IO, Any

import numpy as np

from fsjax.environment.memory_limits import check_bytes, limit_of
from fsjax.errors import ConfigError, DataError
from fsjax.storage.atomic_files import atomic_open
from fsjax.version import __version__

FORMAT = "fsjax"

#: Version of the layout of files, which a change that older packages cannot read increases.
#: Version 2 holds more of a result than is read now.
VERSION, READ_VERSIONS = 3, (2, 3)

#: The array of the header, and names of arguments of NumPy's functions.
_HEADER = "header"
_RESERVED = (_HEADER, "file", "allow_pickle")

_SUFFIX = ".npy"

#: The mark of the last part of a zip file, and a number of entries that is stored elsewhere.
_END, _MANY = b"PK\x05\x06", 0xFFFF

#: The mark of an entry, and the number of bytes before its name.
_ENTRY, _BEFORE_NAME = b"PK\x03\x04", 30

#: The flag of names in UTF-8.
_UTF8 = 0x800

_ADVICE = "it may be damaged or hostile; give a larger max_bytes if you trust it"


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
    with atomic_open(path) as file:
        (np.savez_compressed if compress else np.savez)(file, **entries)


def read(
    path: str | Path, max_bytes: int | None = None
) -> tuple[dict[str, Any], Mapping[str, np.ndarray]]:
    """Read a file of :func:`write` without pickle: the header, and the arrays by name.

    The header has ``kind``, ``version`` and ``fsjax``, the version of the package that wrote it. An
    array is read and checked when it is accessed.

    Args:
      max_bytes: limit on the size of the file and on the total size of its arrays; half of the
        free memory by default.

    Raises:
      DataError: for a file that is missing or incomplete, was not written by fsjax, has a newer
        version or is too large; also when an array is accessed that is damaged or of objects.
    """
    try:
        advice = "give a larger max_bytes if you trust it"
        check_bytes(Path(path).stat().st_size, max_bytes, str(path), advice)
        data = Path(path).read_bytes()
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}") from error
    if not data.startswith(_ENTRY):
        raise DataError(f"{path} was not written by fsjax: it is not an npz file")
    # The table of contents of a zip file is at its end.
    if not zipfile.is_zipfile(BytesIO(data)):
        raise DataError(f"{path} is incomplete: its end is missing; copy or save it again")
    try:
        stored = NamedArrays(data, max_bytes)
    except DataError as error:
        raise DataError(f"{path} is damaged: {error}") from error
    return _header(path, stored), stored


def _header(path: str | Path, stored: Mapping[str, np.ndarray]) -> dict[str, Any]:
    if _HEADER not in stored:
        raise DataError(f"{path} was not written by fsjax: it has no array {_HEADER!r}")
    try:
        values = stored[_HEADER]
    except DataError as error:
        raise DataError(f"{path}: {error}") from error
    try:
        header = json.loads(values.astype(np.uint8, casting="no").tobytes())
    except (TypeError, ValueError, RecursionError) as error:
        raise DataError(
            f"{path} was not written by fsjax: its header is not JSON ({error})"
        ) from error
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise DataError(f"{path} was not written by fsjax: its header names another format")
    version = header.get("version")
    if type(version) is not int or version < 1:
        raise DataError(
            f"{path}: the header's version is {version!r}; expected a whole number from 1"
        )
    if version not in READ_VERSIONS:
        older = f", which fsjax {__version__} no longer reads; use that version, or fit again"
        newer = f"; fsjax {__version__} reads versions up to {VERSION}: install a newer fsjax"
        raise VersionError(
            f"{path} has version {version} of the format, written by fsjax {header.get('fsjax')}"
            f"{older if version < VERSION else newer}"
        )
    return header


class NamedArrays(Mapping[str, np.ndarray]):
    """The arrays of an ``.npz`` file by name, each read when it is accessed.

    NumPy's own reader does not verify checksums if the header of an array gives too small a shape,
    and allocates memory for that shape before it reads the values.

    Args:
      data: the contents of the file.
      max_bytes: limit on the total size of the arrays that are accessed; half of the free memory
        by default.

    Raises:
      DataError: if the data is not a zip file or has repeated or unlisted entries, and when an
        array is accessed that is damaged, too large or of objects, because pickle is never read.
    """

    def __init__(self, data: bytes, max_bytes: int | None = None) -> None:
        try:
            self._archive = zipfile.ZipFile(BytesIO(data))
            entries = self._archive.infolist()
        # A damaged or hostile zip file may raise anything in its reader.
        except Exception as error:
            raise DataError(f"it is not a complete zip file: {error}") from None
        self._entries = {entry.filename.removesuffix(_SUFFIX): entry for entry in entries}
        if len(self._entries) < len(entries):
            raise DataError("it has several entries with the same name; save it again")
        # The reader does not notice that a table of contents is truncated.
        end = data.rfind(_END)
        declared = int.from_bytes(data[end + 10 : end + 12], "little")
        if declared not in (len(entries), _MANY):
            raise DataError(
                f"it has {len(entries)} of {declared} entries; copy or download it again"
            )
        _check_listed(data, entries, self._archive.start_dir)
        self._limit, self._given, self._taken = limit_of(max_bytes), max_bytes, 0
        self._read: dict[str, np.ndarray] = {}

    def __getitem__(self, name: str) -> np.ndarray:
        if name not in self._read:
            entry = self._entries[name]
            self._taken += entry.file_size
            if self._taken > self._limit:
                check_bytes(self._taken, self._given or self._limit, f"{name!r}", _ADVICE)
            try:
                self._read[name] = _read(self._archive, entry)
            # A damaged member may raise anything before its checksum is verified.
            except Exception as error:
                reason = _damage(self._archive, entry) or error
                raise DataError(f"the array {name!r} cannot be read: {reason}") from None
        return self._read[name]

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)


def _check_listed(data: bytes, entries: Sequence[zipfile.ZipInfo], contents: int) -> None:
    """DataError for entries that the table of contents (at offset ``contents``) does not list.

    Each entry has its name at its start, and there may be no entries between those that are listed.
    """
    end = 0
    for entry in sorted(entries, key=lambda entry: entry.header_offset):
        _check_none_between(data, end, entry.header_offset)
        name, end = _name_at(data, entry.header_offset, entry.flag_bits)
        if name != entry.orig_filename:
            raise DataError(
                f"it holds {name!r}, which its table of contents calls {entry.orig_filename!r}; "
                "copy, download or save it again"
            )
        end += entry.compress_size
    _check_none_between(data, end, contents)


def _check_none_between(data: bytes, start: int, end: int) -> None:
    """DataError for an entry between two offsets."""
    entry = data.find(_ENTRY, start, end)
    if entry >= 0:
        name, _ = _name_at(data, entry, int.from_bytes(data[entry + 6 : entry + 8], "little"))
        raise DataError(
            f"it holds {name!r}, which its table of contents does not list; copy, download or save "
            "it again"
        )


def _name_at(data: bytes, start: int, flags: int) -> tuple[str, int]:
    """The name of the entry at an offset, and the offset of its contents."""
    lengths = data[start + 26 : start + _BEFORE_NAME]
    name, extra = int.from_bytes(lengths[:2], "little"), int.from_bytes(lengths[2:], "little")
    begin = start + _BEFORE_NAME
    encoding = "utf-8" if flags & _UTF8 else "cp437"
    return data[begin : begin + name].decode(encoding, "replace"), begin + name + extra


def _read(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> np.ndarray:
    with archive.open(entry) as member:
        if member.read(6) != np.lib.format.MAGIC_PREFIX:
            raise DataError("it is not an array")
        member.seek(0)
        shape, _, dtype = _head(member)
        if dtype.hasobject:
            raise DataError("it is an array of objects, which needs pickle; pickle is never read")
        stored, wanted = entry.file_size - member.tell(), math.prod(shape) * dtype.itemsize
        if wanted != stored:
            raise DataError(
                f"it has {stored} bytes of values, but the shape {shape} needs {wanted}"
            )
        member.seek(0)
        values = np.lib.format.read_array(member, allow_pickle=False)
        # The checksum is verified at the end of a member.
        member.read(1)
    return values


def _damage(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> str | None:
    """The message for a member whose checksum does not fit; ``None`` if it does."""
    try:
        with archive.open(entry) as member:
            while member.read(2**20):
                pass
    except Exception:
        return f"the checksum of {entry.filename!r} is wrong; copy, download or save it again"
    return None


def _head(member: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype]:
    """Shape, order and type from the header of an array."""
    version = np.lib.format.read_magic(member)
    if version == (1, 0):
        return np.lib.format.read_array_header_1_0(member)
    if version == (2, 0):
        return np.lib.format.read_array_header_2_0(member)
    raise DataError(f"its format version {version} is not supported; save it with numpy.savez")
