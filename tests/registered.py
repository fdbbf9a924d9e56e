"""Files of registered data sets, made small."""

import numpy as np


def rows_of(shape: tuple[int, int], classes: int) -> tuple[np.ndarray, np.ndarray]:
    X = np.random.default_rng(0).integers(0, 9, shape).astype(np.uint8)
    return X, np.arange(shape[0]) % classes


def compress(text: bytes, widest: int = 16, clear_every: int = 0) -> bytes:
    """What Unix ``compress`` writes (checked against ``gzip -dc``), for the tests only."""
    packed = bytearray(b"\x1f\x9d" + bytes([0x80 | widest]))
    table = {bytes([byte]): byte for byte in range(256)}
    free, width, group = 257, 9, []

    def flush(whole: bool = True) -> None:
        if group:
            word = sum(code << (place * width) for place, code in enumerate(group))
            size = width if whole else (len(group) * width + 7) // 8
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
    flush(whole=False)
    return bytes(packed)
