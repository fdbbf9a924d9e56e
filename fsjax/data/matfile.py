"""Checks of a MATLAB file before SciPy reads it.

SciPy's compiled reader of versions 5 to 7 believes the types, sizes and indices that a file tells:
damaged ones end the process. So all that it will look at is walked through here first, as in
"MAT-File Format" by MathWorks.
"""

from __future__ import annotations

import io
import math
import struct
import zlib
from collections.abc import Container
from typing import NamedTuple, NoReturn

import numpy as np
from scipy.io.matlab import matfile_version

from fsjax.errors import DataError
from fsjax.limits import check_bytes

#: Types of the values of an array, by their numbers in the file.
_TYPES = {
    1: "i1",
    2: "u1",
    3: "i2",
    4: "u2",
    5: "i4",
    6: "u4",
    7: "f4",
    9: "f8",
    12: "i8",
    13: "u8",
}
#: Bytes of a letter; those of UTF-8 have one or more.
_TEXT = {1: 1, 2: 1, 4: 2, 16: 1, 17: 2, 18: 4}
_INT32, _UINT32, _MATRIX, _PACKED = 5, 6, 14, 15
_CELL, _CHAR, _SPARSE, _NUMERIC, _OPAQUE = 1, 4, 5, range(6, 16), 17
_START = 128

#: Enough for what stands before the values of an array.
_HEAD = 4096

_ADVICE = "it may be damaged or hostile; give a larger max_bytes if you trust it"


class _Head(NamedTuple):
    """What stands before the values of an array, and where these begin."""

    kind: int
    is_complex: bool
    is_logical: bool
    shape: tuple[int, ...]
    name: str
    start: int


class _Bytes(NamedTuple):
    """A part of a file, and the order of bytes in its numbers."""

    data: bytes | memoryview
    order: str

    def numbers(self, at: int) -> tuple[int, int]:
        if at < 0 or at + 8 > len(self.data):
            _damaged("it ends too early")
        return struct.unpack_from(f"{self.order}II", self.data, at)

    def element(self, at: int) -> tuple[int, memoryview, int]:
        """Type and contents of an element, and where the next one begins."""
        kind, size = self.numbers(at)
        if kind >> 16:  # Up to four bytes that stand in the place of the size.
            kind, size = kind & 0xFFFF, kind >> 16
            if size > 4:
                _damaged(f"a small element has {size} bytes")
            return kind, memoryview(self.data)[at + 4 : at + 4 + size], at + 8
        end = at + 8 + size
        if end > len(self.data):
            _damaged(f"an element of {size} bytes ends beyond the file")
        return kind, memoryview(self.data)[at + 8 : end], end + -size % 8


def check_mat(data: bytes, wanted: Container[str], max_bytes: int | None) -> list[str]:
    """Checks the arrays of some names, so that SciPy may read them.

    Args:
      data: the contents of a file of version 7 or older.
      wanted: names of arrays that will be read, and no others.
      max_bytes: that the packed ones may take together; half of the free memory by default.

    Returns:
      The names of all arrays; none for version 4, whose reader is Python and checks by itself.

    Raises:
      DataError: for damage, for what is no array of numbers or text, and for a larger file.
    """
    if matfile_version(io.BytesIO(data))[0] != 1:
        return []
    whole = _Bytes(data, "<" if data[126:128] == b"IM" else ">")
    names, at, taken = [], _START, 0
    while at < len(data):
        kind, size = whole.numbers(at)
        content = memoryview(data)[at + 8 : at + 8 + size]
        if len(content) < size or kind not in (_MATRIX, _PACKED):
            _damaged(f"an array of {size} bytes (type {kind}) at byte {at}")
        if kind == _PACKED:
            found, head, length = _unpacked(content, whole.order, wanted, max_bytes, taken)
            taken += length
        else:
            found = _Bytes(content, whole.order)
            head = _head(found)
        if head.name in wanted:
            if head.name in names:
                _damaged(f"there are two arrays {head.name!r}")
            _check_values(found, head)
        names.append(head.name)
        at += 8 + size
    return names


def _unpacked(
    packed: memoryview, order: str, wanted: Container[str], max_bytes: int | None, taken: int
) -> tuple[_Bytes, _Head, int]:
    """A packed array, as far as it is needed, its head, and how many bytes it takes."""
    unpack = zlib.decompressobj()
    try:
        start = unpack.decompress(packed, _HEAD)
        kind, size = _Bytes(start, order).numbers(0)
        if kind != _MATRIX:
            _damaged(f"a packed array is of the type {kind}")
        head = _head(_Bytes(start[8:], order))
        if head.name not in wanted:
            return _Bytes(b"", order), head, 0
        check_bytes(taken + size, max_bytes, f"the array {head.name!r}", _ADVICE)
        rest = max(size + 8 - len(start), 0)
        content = start + (unpack.decompress(unpack.unconsumed_tail, rest) if rest else b"")
        # Up to the checksum, which stands behind the values.
        more = unpack.decompress(unpack.unconsumed_tail, 1) if not unpack.eof else b""
    except zlib.error as error:
        _damaged(f"a packed array cannot be unpacked: {error}")
    if more or len(content) != size + 8 or not unpack.eof:
        _damaged(f"the packed array {head.name!r} has another size than it says")
    return _Bytes(memoryview(content)[8:], order), head, size


def _head(content: _Bytes) -> _Head:
    if content.numbers(0) != (_UINT32, 8):
        _damaged("an array without flags")
    flags, _ = content.numbers(8)
    kind, at, shape = flags & 0xFF, 16, ()
    if kind != _OPAQUE:
        number_type, numbers, at = content.element(at)
        if number_type not in (_INT32, _UINT32) or not 8 <= len(numbers) <= 128 or len(numbers) % 4:
            _damaged("an array without a shape")
        shape = tuple(np.frombuffer(numbers, f"{content.order}i4").tolist())
        if min(shape) < 0:
            _damaged(f"an array of the shape {shape}")
    text_type, text, at = content.element(at)
    if text_type not in (1, 16):
        _damaged("an array without a name")
    name = bytes(text).decode("latin1")
    return _Head(kind, bool(flags >> 11 & 1), bool(flags >> 9 & 1), shape, name, at)


def _check_values(content: _Bytes, head: _Head, inside: bool = False) -> None:
    """DataError unless the values of an array fit what its head says."""
    at, count = head.start, math.prod(head.shape)
    if head.kind in _NUMERIC:
        for _ in range(1 + head.is_complex):
            values, at = _numbers(content, at)
            if len(values) != count:
                _damaged(f"{len(values)} values for the shape {head.shape}")
    elif head.kind == _SPARSE:
        _check_sparse(content, head)
    elif head.kind == _CHAR:
        kind, text, at = content.element(at)
        if kind not in _TEXT or len(text) % _TEXT[kind] or count * _TEXT[kind] > len(text):
            _damaged(f"{len(text)} bytes of text for the shape {head.shape}")
    elif head.kind == _CELL and not inside:
        if count * 8 > len(content.data):
            _damaged(f"too few bytes for the shape {head.shape}")
        for _ in range(count):
            if content.numbers(at)[0] != _MATRIX:
                _damaged("a cell that is no array")
            _, data, at = content.element(at)
            cell = _Bytes(data, content.order)
            if len(data):
                _check_values(cell, _head(cell), inside=True)
    else:
        raise DataError(f"{head.name!r} is no array of numbers or text; save a matrix")


def _check_sparse(content: _Bytes, head: _Head) -> None:
    """The row of each value, where each column starts among these, and the values."""
    if len(head.shape) != 2:
        _damaged(f"a sparse matrix of the shape {head.shape}")
    rows, at = _numbers(content, head.start, (_INT32, _UINT32))
    starts, at = _numbers(content, at, (_INT32, _UINT32))
    starts = starts.astype(np.int64)
    if len(starts) != head.shape[1] + 1 or starts[0] or (np.diff(starts) < 0).any():
        _damaged("the columns of the sparse matrix do not follow each other")
    count = int(starts[-1])
    if count > len(rows) or (count and not rows[:count].max() < head.shape[0]):
        _damaged(f"its sparse matrix has row indices beyond its {head.shape[0]} rows")
    if count and rows[:count].min() < 0:
        _damaged("its sparse matrix has row indices below 0")
    for _ in range(1 + head.is_complex):
        kind, data, at = content.element(at)
        # MATLAB stores truth values as bytes, whatever type it names.
        width = 1 if head.is_logical and len(data) == count else _width(kind)
        if len(data) % width or len(data) // width < count:
            _damaged(f"{len(data)} bytes for the {count} values of the sparse matrix")
        if kind not in _TYPES:
            _damaged(f"values of the type {kind}")


def _numbers(
    content: _Bytes, at: int, kinds: Container[int] = tuple(_TYPES)
) -> tuple[np.ndarray, int]:
    kind, data, at = content.element(at)
    if kind not in kinds or len(data) % _width(kind):
        _damaged(f"{len(data)} bytes of values of the type {kind}")
    return np.frombuffer(data, content.order + _TYPES[kind]), at


def _width(kind: int) -> int:
    return int(_TYPES.get(kind, "i1")[1])


def _damaged(what: str) -> NoReturn:
    raise DataError(f"it is damaged: {what}; save or download it again")
