"""Bytes of a file, damaged in one of the usual ways."""

from __future__ import annotations

import numpy as np


def damaged(data: bytes, rng: np.random.Generator) -> bytes:
    """The bytes with bits flipped, cut short, a block replaced, zeroed, doubled, put in or gone."""
    content, size = bytearray(data), len(data)
    kind = rng.choice(
        ["flip", "flips", "cut", "block", "zeros", "insert", "delete", "double", "empty"],
        p=[0.35, 0.15, 0.1, 0.1, 0.05, 0.1, 0.09, 0.05, 0.01],
    )
    at = int(rng.integers(size))
    length = int(min(size - at, rng.integers(1, 64)))
    if kind in ("flip", "flips"):
        for place in rng.integers(size, size=1 if kind == "flip" else rng.integers(2, 20)):
            content[place] ^= 1 << int(rng.integers(8))
    elif kind == "cut":
        del content[at:]
    elif kind == "block":
        content[at : at + length] = rng.bytes(length)
    elif kind == "zeros":
        content[at : at + length] = bytes(length)
    elif kind == "insert":
        content[at:at] = rng.bytes(length)
    elif kind == "delete":
        del content[at : at + length]
    elif kind == "double":
        content[at:at] = content[at : at + length]
    else:
        content.clear()
    return bytes(content)
