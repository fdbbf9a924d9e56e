"""Arrays in zip files: each checked against its size and checksum, none larger than it says."""

from __future__ import annotations

import math
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from io import BytesIO

import numpy as np

from fsjax.errors import DataError
from fsjax.limits import check_bytes, limit_of

_SUFFIX = ".npy"

#: What the last part of a zip file begins with, and the number of entries that is told elsewhere.
_END, _MANY = b"PK\x05\x06", 0xFFFF

#: What an entry begins with, and the bytes before its name.
_ENTRY, _HEADER = b"PK\x03\x04", 30

#: The flag of names that are in UTF-8.
_UTF8 = 0x800

_ADVICE = "it may be damaged or hostile; give a larger max_bytes if you trust it"


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
        self._entries = {one.filename.removesuffix(_SUFFIX): one for one in entries}
        if len(self._entries) < len(entries):
            raise DataError("it has several entries of one name; save it again")
        # The reader takes a table of contents that is cut short for a whole one.
        end = data.rfind(_END)
        told = int.from_bytes(data[end + 10 : end + 12], "little")
        if told not in (len(entries), _MANY):
            raise DataError(f"it has {len(entries)} of {told} entries; copy or download it again")
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
                told = _damage(self._archive, entry) or error
                raise DataError(f"the array {name!r} cannot be read: {told}") from None
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
    lengths = data[start + 26 : start + _HEADER]
    name, extra = int.from_bytes(lengths[:2], "little"), int.from_bytes(lengths[2:], "little")
    at = start + _HEADER
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


def _head(member: zipfile.ZipExtFile) -> tuple[tuple[int, ...], bool, np.dtype]:
    """Shape, order and type that the head of an array tells."""
    version = np.lib.format.read_magic(member)
    if version == (1, 0):
        return np.lib.format.read_array_header_1_0(member)
    if version == (2, 0):
        return np.lib.format.read_array_header_2_0(member)
    raise DataError(f"its version {version} is not read; save it with numpy.savez")
