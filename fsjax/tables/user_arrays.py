"""Arrays from users' values; whatever NumPy would drop or invent silently is an error."""

from typing import Any

import numpy as np
from scipy.sparse import issparse

from fsjax.errors import ConfigError, DataError


def as_array(values: Any, where: str) -> np.ndarray:
    """The values as a dense array.

    Args:
        values: anything that ``np.asarray`` accepts.
        where: the name of the values in messages.

    Raises:
        ConfigError: for a sparse matrix.
        DataError: for rows of different lengths, and for masked values, whose mask would be lost.
    """
    if issparse(values):
        raise ConfigError(f"{where} is a sparse matrix; give an array, {where}.toarray()")
    check_masked(values, where)
    try:
        return np.asarray(values)
    except (ValueError, TypeError) as error:
        message = str(error).partition(". ")[0]
        advice = (
            "give rows of the same length" if "inhomogeneous" in str(error) else "give an array"
        )
        raise DataError(f"{where} is not an array ({message}); {advice}") from None


def check_masked(values: Any, where: str) -> None:
    """DataError for a masked array that has masked values."""
    if isinstance(values, np.ma.MaskedArray) and np.ma.getmaskarray(values).any():
        count = int(np.ma.getmaskarray(values).sum())
        raise DataError(
            f"{where} has {count} masked values; fill them ({where}.filled(...)), or leave these "
            "rows out"
        )
