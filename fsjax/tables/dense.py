"""Sparse matrices from files as dense tables: checked first, and not larger than memory allows."""

from __future__ import annotations

import math

import numpy as np
import scipy.sparse

from fsjax.environment.memory_limits import check_bytes
from fsjax.errors import DataError


def dense(
    matrix: scipy.sparse.spmatrix | scipy.sparse.sparray, max_bytes: int | None = None
) -> np.ndarray:
    """The matrix ``(N, D)`` as an array.

    Raises:
      DataError: if its indices do not fit its shape, which would write beyond the array, or if the
        array would take more than ``max_bytes``, by default half of the free memory.
    """
    check_size(matrix.shape, matrix.dtype, max_bytes)
    if matrix.format in ("csr", "csc"):
        try:
            matrix.check_format(full_check=True)
        except ValueError as error:
            raise DataError(
                f"its sparse matrix is damaged: {error}; save or download it again"
            ) from None
    return matrix.toarray()


def check_size(shape: tuple[int, ...], dtype: np.dtype, max_bytes: int | None = None) -> None:
    """DataError for an array that would take more memory than is allowed.

    See :func:`fsjax.environment.memory_limits.limit_of`.
    """
    size = " x ".join(f"{length:,}" for length in shape)
    needed = math.prod(map(int, shape)) * dtype.itemsize
    check_bytes(needed, max_bytes, f"a dense table of {size}", "keep fewer columns")
