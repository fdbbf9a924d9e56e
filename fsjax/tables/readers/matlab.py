"""MATLAB files of version 7 or older, which SciPy reads."""

from __future__ import annotations

import io
import math
import warnings
from collections.abc import Sequence
from typing import Final, TypeAlias

import numpy as np
import scipy.io
import scipy.sparse

from fsjax.engine.environment.memory_limits import check_bytes
from fsjax.errors import DataError

#: Bytes of a value of each class of MATLAB that is a matrix of numbers.
_BYTES: Final = {"double": 8, "single": 4, "logical": 1} | {
    f"{sign}int{8 * size}": size for sign in ("", "u") for size in (1, 2, 4, 8)
}

#: An array as SciPy reads it.
MatlabArray: TypeAlias = np.ndarray | scipy.sparse.csc_array


def read_arrays(
    data: bytes, wanted: Sequence[str], max_bytes: int | None = None
) -> dict[str, MatlabArray | None]:
    """Read arrays by name, in the order of the file; arrays that are not wanted are ``None``.

    Cells become text ``(N,)``; empty cells become empty text. The indices of sparse matrices are
    not checked.

    Args:
      wanted: names of the arrays to read.
      max_bytes: limit on the total size of those with numbers; half of the free memory by default.

    Raises:
      DataError: if the arrays are too large, or a wanted one holds neither numbers nor text.
      ValueError: with SciPy's message, if SciPy does not accept the file; other errors too.
    """
    file = io.BytesIO(data)
    with warnings.catch_warnings():
        # SciPy only warns of arrays that it cannot read, and of repeated names.
        warnings.simplefilter("error", scipy.io.matlab.MatReadWarning)
        # Of packed arrays only the beginning is unpacked.
        contents = scipy.io.whosmat(file, verify_compressed_data_integrity=False)
        needed = sum(
            math.prod(shape) * _BYTES.get(kind, 0)
            for name, shape, kind in contents
            if name in wanted
        )
        check_bytes(needed, max_bytes, "the arrays in it", "keep fewer columns")
        arrays = scipy.io.loadmat(file, variable_names=wanted)
    names = [name for name, _, _ in contents]
    return {name: _array(name, arrays[name]) if name in wanted else None for name in names}


def _array(name: str, array: MatlabArray) -> MatlabArray:
    """Numbers as they are, or the first value of each cell as text ``(N,)``."""
    if scipy.sparse.issparse(array):
        return scipy.sparse.csc_array(array)
    cells = [np.asarray(cell).ravel() for cell in array.ravel()] if array.dtype == object else []
    if array.dtype.kind == "V" or any(cell.dtype.kind in "OV" for cell in cells):
        raise DataError(f"{name!r} is not an array of numbers or text; save a matrix")
    return np.array([str(cell[0]) if cell.size else "" for cell in cells]) if cells else array
