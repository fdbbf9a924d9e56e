"""Standardised rows, as the rankers take them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fsjax.tables.base import as_table
from fsjax.tables.checks import one_value
from fsjax.tables.columns import Columns, moments, scaled


class Part(NamedTuple):
    """Imputed and standardised rows.

    Attributes:
      X: ``(n, D)`` float64, mean 0 and deviation 1 in the training rows (0 if constant there);
        sparse columns have that deviation and are not centred.
      y: ``(n,)`` or ``(n, C)``.
      raw: the imputed rows before they were standardised, for methods with a scaling of their own;
        None if only X is known.
    """

    X: Columns
    y: np.ndarray
    raw: Columns | None = None


def standardise(rows: Columns, *others: Columns) -> tuple[Columns, ...]:
    """Columns ``(n, D)`` with mean 0 and deviation 1 in the first rows, 0 where constant there.

    Sparse columns are only divided by their deviation, and so stay sparse. Columns are constant in
    the sense of :func:`fsjax.data.constant_columns`.
    """
    table = as_table(rows)
    lowest, highest = table.limits()
    constant = one_value(lowest, highest, np.dtype(np.float64))
    # Moments are computed in [-1, 1]: squares of 1e-200 underflow, and 1e13 + v loses digits of v.
    shift = np.zeros_like(lowest) if table.sparse else lowest / 2 + highest / 2
    reach = np.maximum(highest - shift, shift - lowest)
    reach = np.where(constant | (reach == 0), 1.0, reach)
    mean, deviation = moments(scaled(rows, shift, reach))
    centre = shift + mean * reach
    scale = deviation * reach
    scale = np.where(constant | (scale == 0), np.inf, scale)
    return tuple(scaled(part, centre, scale) for part in (rows, *others))
