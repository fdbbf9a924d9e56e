"""Arrays that JAX takes over on a CPU, without a copy."""

from __future__ import annotations

import math

import numpy as np

#: Bytes at whose multiples XLA wants arrays to begin.
_BYTES = 64


def aligned(shape: tuple[int, ...], dtype: np.typing.DTypeLike) -> np.ndarray:
    """``np.empty(shape, dtype)`` where XLA on a CPU can use it as it lies."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    memory = np.empty(size + _BYTES, np.uint8)
    start = -memory.ctypes.data % _BYTES
    return memory[start : start + size].view(dtype).reshape(shape)
