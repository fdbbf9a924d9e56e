"""Finds tiles in a mask: rectangles whose connections are all active or all inactive."""

from __future__ import annotations

import math

import numpy as np

#: Lengths of the sides of tiles.
_SIDES = (64, 32, 16, 8, 4, 2)

#: Largest share of stored inputs per output, including padding, at which fan-in or tiles can be
#: faster than a dense matrix.
MAX_PADDED = 0.5


def tile_of(mask: np.ndarray) -> tuple[int, int] | None:
    """The largest tile ``(height, width)`` that fits a mask ``(I, O)``.

    Returns:
      ``None`` if there is no tile larger than 1 x 1, or if more than half of the tiles are active.
    """
    sizes = [(h, w) for h in (*_SIDES, 1) for w in (*_SIDES, 1) if h * w > 1]
    for height, width in sorted(sizes, key=math.prod, reverse=True):
        if mask.shape[0] % height or mask.shape[1] % width:
            continue
        tiles = cut_into_tiles(mask, height, width)
        active = tiles.all((2, 3))
        if (active == tiles.any((2, 3))).all() and 0 < active.mean() <= MAX_PADDED:
            return height, width
    return None


def cut_into_tiles(values: np.ndarray, height: int, width: int) -> np.ndarray:
    """Splits a matrix ``(I, O)`` into tiles, ``(O / w, I / h, h, w)``."""
    rows, columns = values.shape
    cut = values.reshape(rows // height, height, columns // width, width)
    return cut.transpose(2, 0, 1, 3)
