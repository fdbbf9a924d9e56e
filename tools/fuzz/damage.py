"""Damages the bytes of a file at random."""

from __future__ import annotations

import numpy as np


def damaged(data: bytes, rng: np.random.Generator) -> bytes:
    """Flips bits, truncates, or replaces, zeroes, inserts, deletes or doubles a block of bytes."""
    content, size = bytearray(data), len(data)
    kind = rng.choice(
        ["flip", "flips", "cut", "block", "zeros", "insert", "delete", "double", "empty"],
        p=[0.35, 0.15, 0.1, 0.1, 0.05, 0.1, 0.09, 0.05, 0.01],
    )
    start = int(rng.integers(size))
    length = int(min(size - start, rng.integers(1, 64)))
    if kind in ("flip", "flips"):
        for place in rng.integers(size, size=1 if kind == "flip" else rng.integers(2, 20)):
            content[place] ^= 1 << int(rng.integers(8))
    elif kind == "cut":
        del content[start:]
    elif kind == "block":
        content[start : start + length] = rng.bytes(length)
    elif kind == "zeros":
        content[start : start + length] = bytes(length)
    elif kind == "insert":
        content[start:start] = rng.bytes(length)
    elif kind == "delete":
        del content[start : start + length]
    elif kind == "double":
        content[start:start] = content[start : start + length]
    else:
        content.clear()
    return bytes(content)
