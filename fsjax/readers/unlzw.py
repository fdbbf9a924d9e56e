"""Decompression of Unix ``compress`` files (``.Z``), in which the UCI archive has ISOLET."""

_FIRST_WIDTH = 9
_CLEAR = 256


def unlzw(packed: bytes, most: int | None = None) -> bytes:
    """Decompress a ``.Z`` file, and stop once the result is longer than ``most`` bytes.

    ValueError if the file is not valid.
    """
    if len(packed) < 3 or packed[:2] != b"\x1f\x9d":
        raise ValueError("not a compress (.Z) file")
    widest, blocks = packed[2] & 0x1F, bool(packed[2] & 0x80)
    if not _FIRST_WIDTH < widest <= 16:
        raise ValueError(f"a compress (.Z) file of {widest} bits; 10 to 16 are possible")
    table: list[bytes] = [bytes([byte]) for byte in range(256)]
    if blocks:
        table.append(b"")
    first_free = len(table)
    pieces: list[bytes] = []
    previous = b""
    position, width, length = 3, _FIRST_WIDTH, 0
    while position < len(packed) and (most is None or length <= most):
        # Codes come in groups of eight, `width` bytes each; a change of width or a clear code
        # abandons the rest of the group.
        group = packed[position : position + width]
        position += width
        word, bits = int.from_bytes(group, "little"), len(group) * 8
        for offset in range(0, bits - width + 1, width):
            code = (word >> offset) & ((1 << width) - 1)
            if blocks and code == _CLEAR:
                del table[first_free:]
                previous, width = b"", _FIRST_WIDTH
                break
            if code < len(table):
                piece = table[code]
            elif code == len(table) and previous:
                piece = previous + previous[:1]
            else:
                raise ValueError("the compress (.Z) file is damaged")
            pieces.append(piece)
            length += len(piece)
            if previous and len(table) < 1 << widest:
                table.append(previous + piece[:1])
            previous = piece
            if len(table) >= 1 << width and width < widest:
                width += 1
                break
    return b"".join(pieces)
