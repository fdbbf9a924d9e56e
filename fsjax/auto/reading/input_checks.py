"""Checks of what ``fsjax.select`` is given: the seed, and the scale of the target."""

from __future__ import annotations

import numpy as np

from fsjax import DataError

#: Largest seed: folds and draws add small numbers to it, and random generators take 32 bits.
MAX_SEED = 2**31

#: Largest target, and inverse of its smallest spread, whose squares are computed.
_LARGEST = 1e100


def check_scale(target: np.ndarray) -> None:
    """DataError for a target ``(N,)`` or ``(N, C)`` whose squares are not float64 numbers."""
    spreads = np.ptp(target.astype(np.float64), axis=0)
    # Events of survival may be all alike.
    largest, spread = np.abs(target).max(), np.min(spreads, where=spreads > 0, initial=np.inf)
    if largest > _LARGEST or spread < 1 / _LARGEST:
        raise DataError(
            f"the target has values up to {largest:.3g} that differ by {spread:.3g}, whose squares "
            f"are beyond the range of numbers; scale it to values between {1 / _LARGEST:g} and "
            f"{_LARGEST:g}"
        )
