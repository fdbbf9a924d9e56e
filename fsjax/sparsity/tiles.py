"""Rectangular tiles of a mask whose connections are all there or all missing."""

from __future__ import annotations

import math

import numpy as np

#: Sides of the tiles that are looked for, the largest first.
_TILES = (64, 32, 16, 8, 4, 2)

#: Padded inputs of an output, as a share of all, above which a form by inputs or tiles never pays.
MOST_PADDED = 0.5


def tile_of(mask: np.ndarray) -> tuple[int, int] | None:
    """The largest tile, above 1 x 1, whose connections are all there or all missing."""
    sides = [(h, w) for h in (*_TILES, 1) for w in (*_TILES, 1) if h * w > 1]
    for height, width in sorted(sides, key=math.prod, reverse=True):
        if mask.shape[0] % height or mask.shape[1] % width:
            continue
        tiles = cut_into_tiles(mask, height, width)
        whole = tiles.all((2, 3))
        if (whole == tiles.any((2, 3))).all() and 0 < whole.mean() <= MOST_PADDED:
            return height, width
    return None


def cut_into_tiles(values: np.ndarray, height: int, width: int) -> np.ndarray:
    """``(O / w, I / h, h, w)`` tiles."""
    rows, columns = values.shape
    cut = values.reshape(rows // height, height, columns // width, width)
    return cut.transpose(2, 0, 1, 3)
