"""Detects numbers that may stand for a missing value, such as -999; they are not changed."""

from __future__ import annotations

import numpy as np

#: Codes that statistics packages, sensors and netCDF write for missing values.
CODES = (
    *(sign * code for code in (9, 99, 999, 9999, 99999, 999999) for sign in (1, -1)),
    -1.0, -32768.0, 32767.0, -2147483648.0, 2147483647.0,
    9.969209968386869e36, -1e30, 1e30, 1e20, -1e20, 1e36,
)  # fmt: skip

#: Fewest other different values from which one can be said to be far away.
_LEAST_OTHERS = 5

#: Fewest rows with such a value, and its distance from the others as a multiple of their range: for
#: any value, and for known codes.
_LEAST_ROWS, _FAR, _FAR_OF_CODE = 3, 10.0, 1.0


def sentinel(values: np.ndarray) -> str | None:
    """A remark on a repeated value that is far from all others, or ``None``.

    A known code is far from a distance of the range of the other values on, any other value from
    ten times that range on.

    Args:
      values: ``(N,)``, NaN where missing.
    """
    distinct, counts = np.unique(values[~np.isnan(values)], return_counts=True)
    if len(distinct) <= _LEAST_OTHERS:
        return None
    for place, others in ((0, distinct[1:]), (-1, distinct[:-1])):
        value, count = float(distinct[place]), int(counts[place])
        nearest = others[0] if place == 0 else others[-1]
        gap = abs(nearest / 2 - value / 2)
        extent = others[-1] / 2 - others[0] / 2
        if count < _LEAST_ROWS or gap <= _FAR_OF_CODE * extent:
            continue
        if gap > _FAR * extent or np.isclose(value, CODES, rtol=1e-6).any():
            return (
                f"has {value:.7g} in {count} of {len(values)} rows, far from all other values "
                f"({others[0]:.4g} to {others[-1]:.4g}); if it stands for a missing value, leave "
                "these cells empty"
            )
    return None
