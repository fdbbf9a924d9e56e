"""Files of named arrays: NumPy's ``.npz``, read without pickle and against sizes and checksums.

Our own files have a JSON header among their arrays, and are written whole.
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

#: The layout of the file; a change that older versions of the package cannot read raises it. The
#: second holds more of a result than is read now.
VERSION, READ_VERSIONS = 3, (2, 3)

#: The array of the header, and what else NumPy's functions take for themselves.
_HEADER = "header"
_RESERVED = (_HEADER, "file", "allow_pickle")

_SUFFIX = ".npy"

#: What the last part of a zip file begins with, and the number of entries that is told elsewhere.
_END, _MANY = b"PK\x05\x06", 0xFFFF

#: What an entry begins with, and the bytes before its name.
_ENTRY, _BEFORE_NAME = b"PK\x03\x04", 30

#: The flag of names that are in UTF-8.
_UTF8 = 0x800

_ADVICE = "it may be damaged or hostile; give a larger max_bytes if you trust it"


class VersionError(DataError):
    """A file of a version of the format that is not read here."""


def write(
    path: str | Path,
    header: Mapping[str, Any],
    arrays: Mapping[str, np.ndarray],
    *,
    compress: bool = True,
) -> None:
    """Writes a header and arrays as one ``.npz`` file, atomically.

    Args:
      path: the file, taken as it is given: no suffix is added. Missing folders are made.
      header: what JSON knows, with ``kind``, a name for what is stored. The format, its version
        and that of the package are added.
      arrays: of any shape and type but objects, by name.
      compress: whether a smaller file is worth the time.

    Raises:
      ConfigError: for what only pickle could store, such as arrays of objects.
      OSError: if the file cannot be written.
    """
    if Path(path).is_dir():
        raise ConfigError(f"{path} is a folder; give the name of a file")
    for name, values in arrays.items():
        if name in _RESERVED:
            raise ConfigError(f"no array can be saved as {name!r}; choose another name")
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
    # Of any type to the checker, which takes a name for an option of NumPy's.
    entries: dict[str, Any] = {_HEADER: np.frombuffer(text.encode(), np.uint8), **arrays}
    with atomic_open(path) as file:
        (np.savez_compressed if compress else np.savez)(file, **entries)


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
    if not zipfile.is_zipfile(BytesIO(data)):
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
    if version not in READ_VERSIONS:
        older = ", whose states this version does not read; load it there, or fit again"
        newer = f"; fsjax {__version__} reads versions up to {VERSION}: install a newer fsjax"
        raise VersionError(
            f"{path} has version {version} of the format, written by fsjax {header.get('fsjax')}"
            f"{older if version < VERSION else newer}"
        )
    return header


class Arrays(Mapping[str, np.ndarray]):
    """The arrays of an ``.npz`` file by name, each read when it is asked for.

    NumPy itself reads no further than the shape in an array's head tells, and so past no checksum,
    and takes memory for that shape before it looks for its values.

    Args:
      data: the contents of the file.
      max_bytes: that all arrays which are asked for may take together; half of the free memory by
        default.

    Raises:
      DataError: for what is no zip file, has two entries of one name, or one whose head is damaged,
        and when an array is asked for that is damaged, larger than allowed, or of objects, whose
        pickle is never read.
    """

    def __init__(self, data: bytes, max_bytes: int | None = None) -> None:
        try:
            self._archive = zipfile.ZipFile(BytesIO(data))
            entries = self._archive.infolist()
        # What a broken or hostile zip file makes its reader raise is not a closed list.
        except Exception as error:
            raise DataError(f"it is no whole zip file: {error}") from None
        self._entries = {entry.filename.removesuffix(_SUFFIX): entry for entry in entries}
        if len(self._entries) < len(entries):
            raise DataError("it has several entries of one name; save it again")
        # The reader takes a table of contents that is cut short for a whole one.
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
            # As above; a damaged member may fail in any way before its checksum does.
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
    """DataError for entries that the table of contents, which begins at a byte, lists otherwise.

    Each entry begins with its name: between two that are listed there may be no other.
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
    """DataError for an entry between two bytes."""
    at = data.find(_ENTRY, start, end)
    if at >= 0:
        name, _ = _name_at(data, at, int.from_bytes(data[at + 6 : at + 8], "little"))
        raise DataError(
            f"it holds {name!r}, which its table of contents does not list; copy, download or save "
            "it again"
        )


def _name_at(data: bytes, start: int, flags: int) -> tuple[str, int]:
    """The name of the entry that begins at a byte, and where its contents begin."""
    lengths = data[start + 26 : start + _BEFORE_NAME]
    name, extra = int.from_bytes(lengths[:2], "little"), int.from_bytes(lengths[2:], "little")
    at = start + _BEFORE_NAME
    encoding = "utf-8" if flags & _UTF8 else "cp437"
    return data[at : at + name].decode(encoding, "replace"), at + name + extra


def _read(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> np.ndarray:
    with archive.open(entry) as member:
        if member.read(6) != np.lib.format.MAGIC_PREFIX:
            raise DataError("it is no array")
        member.seek(0)
        shape, _, dtype = _head(member)
        if dtype.hasobject:
            raise DataError("Object arrays need pickle, which is never read")
        stored, wanted = entry.file_size - member.tell(), math.prod(shape) * dtype.itemsize
        if wanted != stored:
            raise DataError(f"it has {stored} bytes of values, and for {shape} {wanted} are needed")
        member.seek(0)
        values = np.lib.format.read_array(member, allow_pickle=False)
        # The checksum is looked at where a member ends.
        member.read(1)
    return values


def _damage(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> str | None:
    """What to say where a member is not what was written."""
    try:
        with archive.open(entry) as member:
            while member.read(2**20):
                pass
    except Exception:
        return f"the checksum of {entry.filename!r} does not fit; copy, download or save it again"
    return None


def _head(member: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype]:
    """Shape, order and type that the head of an array tells."""
    version = np.lib.format.read_magic(member)
    if version == (1, 0):
        return np.lib.format.read_array_header_1_0(member)
    if version == (2, 0):
        return np.lib.format.read_array_header_2_0(member)
    raise DataError(f"its version {version} is not read; save it with numpy.savez")
