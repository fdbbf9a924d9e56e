"""Dense tables: conversion of sparse matrices from files, and the limit on their memory."""

from __future__ import annotations

import math

import numpy as np
import scipy.sparse

from fsjax.environment.memory_limits import check_bytes
from fsjax.errors import DataError


def dense(
    matrix: np.ndarray | scipy.sparse.spmatrix | scipy.sparse.sparray, max_bytes: int | None = None
) -> np.ndarray:
    """The table ``(N, D)`` as an array; an array is returned as it is.

    Raises:
      DataError: if the indices of a sparse matrix do not fit its shape, because SciPy would write
        beyond the array, or if the array would take more than ``max_bytes``, by default half of
        the free memory.
    """
    if isinstance(matrix, np.ndarray):
        return matrix
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
    """DataError for an array that would take more memory than ``max_bytes``.

    :func:`fsjax.environment.memory_limits.limit_of` has the default.
    """
    size = " x ".join(f"{length:,}" for length in shape)
    needed = math.prod(map(int, shape)) * dtype.itemsize
    check_bytes(needed, max_bytes, f"a dense table of {size}", "keep fewer columns")
