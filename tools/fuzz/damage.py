"""Bytes of a file, damaged in one of the usual ways."""

from __future__ import annotations

import numpy as np


def damaged(data: bytes, rng: np.random.Generator) -> bytes:
    """The bytes with bits flipped, cut short, a block replaced, zeroed, doubled, put in or gone."""
    found, size = bytearray(data), len(data)
    kind = rng.choice(
        ["flip", "flips", "cut", "block", "zeros", "insert", "delete", "double", "empty"],
        p=[0.35, 0.15, 0.1, 0.1, 0.05, 0.1, 0.09, 0.05, 0.01],
    )
    at = int(rng.integers(size))
    length = int(min(size - at, rng.integers(1, 64)))
    if kind in ("flip", "flips"):
        for place in rng.integers(size, size=1 if kind == "flip" else rng.integers(2, 20)):
            found[place] ^= 1 << int(rng.integers(8))
    elif kind == "cut":
        del found[at:]
    elif kind == "block":
        found[at : at + length] = rng.bytes(length)
    elif kind == "zeros":
        found[at : at + length] = bytes(length)
    elif kind == "insert":
        found[at:at] = rng.bytes(length)
    elif kind == "delete":
        del found[at : at + length]
    elif kind == "double":
        found[at:at] = found[at : at + length]
    else:
        found.clear()
    return bytes(found)
