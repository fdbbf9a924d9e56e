"""Columns of a table on the pixel grid of an image."""

from typing import Literal

import numpy as np

#: A grid more elongated than this fills its place with pixels that are not square.
MAX_ELONGATION = 4


def to_grid(values: np.ndarray, image_shape: tuple[int, ...], image_order: str = "C") -> np.ndarray:
    """Puts values ``(D,)`` on the pixel grid ``(H, W, C)``, with C = 1 where there are no channels.

    The shape is ``(H, W)`` or ``(H, W, C)``, of D entries; the order is ``'C'`` or ``'F'``, as in
    ``numpy.reshape``.
    """
    grid = np.asarray(values).reshape(image_shape, order=image_order)
    return grid.reshape(*image_shape[:2], -1)


def aspect_of(height: int, width: int) -> Literal["equal", "auto"]:
    """Matplotlib's aspect for a grid of so many pixels: square ones unless it is too elongated."""
    square = max(height, width) <= MAX_ELONGATION * min(height, width)
    return "equal" if square else "auto"
