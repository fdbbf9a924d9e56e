"""Small versions of the files of registered data sets."""

import numpy as np


def rows_of(shape: tuple[int, int], classes: int) -> tuple[np.ndarray, np.ndarray]:
    X = np.random.default_rng(0).integers(0, 9, shape).astype(np.uint8)
    return X, np.arange(shape[0]) % classes


def compress(text: bytes, widest: int = 16, clear_every: int = 0) -> bytes:
    """Compress bytes as Unix ``compress`` does (checked against ``gzip -dc``)."""
    packed = bytearray(b"\x1f\x9d" + bytes([0x80 | widest]))
    table = {bytes([byte]): byte for byte in range(256)}
    free, width, group = 257, 9, []

    def flush(is_full: bool = True) -> None:
        if group:
            word = sum(code << (place * width) for place, code in enumerate(group))
            size = width if is_full else (len(group) * width + 7) // 8
            packed.extend(word.to_bytes(size, "little"))
            group.clear()

    def emit(code: int) -> None:
        group.append(code)
        if len(group) == 8:
            flush()

    current = b""
    for place, byte in enumerate(text):
        if clear_every and current and place % clear_every == 0:
            emit(table[current])
            emit(256)
            flush()
            table = {bytes([byte]): byte for byte in range(256)}
            free, width, current = 257, 9, b""
        longer = current + bytes([byte])
        if longer in table:
            current = longer
            continue
        emit(table[current])
        if free < 1 << widest:
            table[longer] = free
            free += 1
            if free > 1 << width and width < widest:
                flush()
                width += 1
        current = bytes([byte])
    if current:
        emit(table[current])
    flush(is_full=False)
    return bytes(packed)
