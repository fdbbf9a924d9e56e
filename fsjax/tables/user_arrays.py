"""Arrays from what users hand over: nothing that NumPy would drop or make up without a word."""

from typing import Any

import numpy as np

from fsjax.errors import DataError


def as_array(values: Any, where: str) -> np.ndarray:
    """The values as an array.

    DataError, which calls them ``where``, for rows of different lengths, and for masked values,
    whose mask would be lost.
    """
    check_masked(values, where)
    try:
        return np.asarray(values)
    except (ValueError, TypeError) as error:
        told = str(error).partition(". ")[0]
        advice = (
            "give rows of the same length" if "inhomogeneous" in str(error) else "give an array"
        )
        raise DataError(f"{where} makes no array ({told}); {advice}") from None


def check_masked(values: Any, where: str) -> None:
    """DataError for a masked array of which values are masked."""
    if isinstance(values, np.ma.MaskedArray) and np.ma.getmaskarray(values).any():
        count = int(np.ma.getmaskarray(values).sum())
        raise DataError(
            f"{where} has {count} masked values; fill them ({where}.filled(...)), or leave these "
            "rows out"
        )
