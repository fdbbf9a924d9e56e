"""Sparse matrices from files as dense tables: checked first, and not larger than memory allows."""

from __future__ import annotations

import math
import os

import numpy as np
import scipy.sparse

from fsjax.errors import DataError

#: A table may take this share of the machine's memory.
MEMORY_SHARE = 0.5

#: Bytes of memory that are counted on where the system does not tell.
UNKNOWN_MEMORY = 8 * 2**30


def dense(matrix: scipy.sparse.spmatrix | scipy.sparse.sparray) -> np.ndarray:
    """The matrix ``(N, D)`` as an array.

    Raises:
      DataError: if its indices do not fit its shape, which would write beyond the array, or if the
        array would take more than :data:`MEMORY_SHARE` of the memory.
    """
    check_size(matrix.shape, matrix.dtype)
    if matrix.format in ("csr", "csc"):
        try:
            matrix.check_format(full_check=True)
        except ValueError as error:
            raise DataError(
                f"its sparse matrix is damaged: {error}; save or download it again"
            ) from None
    return matrix.toarray()


def check_size(shape: tuple[int, ...], dtype: np.dtype) -> None:
    """DataError for an array that would take more than :data:`MEMORY_SHARE` of the memory."""
    needed, limit = math.prod(map(int, shape)) * dtype.itemsize, MEMORY_SHARE * memory()
    if needed > limit:
        size = " x ".join(f"{length:,}" for length in shape)
        raise DataError(
            f"as a dense table of {size} it would need {needed / 2**30:,.1f} GiB, and "
            f"{limit / 2**30:,.1f} GiB, half of this machine's memory, are allowed; keep fewer "
            "columns"
        )


def memory() -> int:
    """Bytes of the machine's memory."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return UNKNOWN_MEMORY
