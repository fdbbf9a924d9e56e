"""NumPy arrays that JAX can use on a CPU without a copy."""

from __future__ import annotations

import math

import numpy as np

#: The alignment in bytes that XLA requires.
_BYTES = 64


def aligned(shape: tuple[int, ...], dtype: np.typing.DTypeLike) -> np.ndarray:
    """``np.empty(shape, dtype)`` with the alignment that XLA requires on a CPU."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    memory = np.empty(size + _BYTES, np.uint8)
    start = -memory.ctypes.data % _BYTES
    return memory[start : start + size].view(dtype).reshape(shape)
