"""Scaling as a pair of arrays, fitted on some rows and applied to any, with float64 statistics."""

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from fsjax.errors import DataError, check_choice
from fsjax.tables.base import RawTable, as_table
from fsjax.tables.checks import is_constant

_ROWS_AT_A_TIME = 4096

#: Values that are scaled at a time.
_ENTRIES = 2**16

_FIXED = {"mnist": (0.1306, 0.3080), "fashion_mnist": (0.2873, 0.3529), "unit255": (0.0, 1.0)}
"""Mean and standard deviation of pixels in [0, 1] (IP-CAE's experiments)."""

KINDS = (
    "none",
    "minmax",
    "maxabs",
    "standard",
    "scalar",
    "scalar255",
    "unit255",
    "mnist",
    "fashion_mnist",
)
"""The kinds of :func:`fit_scaler`."""


class Scaler(NamedTuple):
    """``(X - shift) * scale``; both parts float64, broadcasting against (N, D)."""

    shift: np.ndarray
    scale: np.ndarray


def apply(scaler: Scaler, X: np.ndarray) -> np.ndarray:
    """Scale (N, D) rows of any numeric type; returns (N, D) float32.

    Values that float32 cannot represent, such as times in seconds, are shifted before they are
    rounded.
    """
    X = np.asarray(X)
    if np.can_cast(X.dtype, np.float32) and is_single(scaler):
        scaled = np.array(X, dtype=np.float32)
        shift, scale = (
            np.broadcast_to(np.asarray(part, np.float32), scaled.shape) for part in scaler
        )
        for block in _blocks(scaled.shape):
            scaled[block] -= shift[block]
            scaled[block] *= scale[block]
        return scaled
    scaled = np.empty(X.shape, np.float32)
    with np.errstate(over="ignore"):
        for start in range(0, len(X), _ROWS_AT_A_TIME):
            rows = slice(start, start + _ROWS_AT_A_TIME)
            scaled[rows] = (X[rows] - scaler.shift) * scaler.scale
    return scaled


def is_single(scaler: Scaler) -> bool:
    """Whether float32 can represent the scaling; not if all values of a column are below 1e-38."""
    return max(np.abs(part).max(initial=0.0) for part in scaler) <= np.finfo(np.float32).max


def _blocks(shape: tuple[int, ...]) -> Iterator[tuple[slice, ...]]:
    """Slices of an array of one or two axes, small enough to stay in the cache."""
    step = max(_ENTRIES // max(math.prod(shape[1:]), 1), 1)
    for row in range(0, shape[0], step):
        rows = slice(row, row + step)
        if len(shape) == 1:
            yield (rows,)
            continue
        for column in range(0, shape[1], _ENTRIES):
            yield rows, slice(column, column + _ENTRIES)


def apply_sparse(scaler: Scaler, X: csr_array) -> tuple[np.ndarray, np.ndarray]:
    """Scale sparse (N, D) rows; the values equal those that :func:`apply` gives for dense rows.

    Returns:
        The stored values, (nnz,) float32, and what 0 becomes in each column, (D,) float32.
    """
    shift, scale = (np.broadcast_to(part, X.shape[1:]) for part in scaler)
    values = np.empty(X.nnz, np.float32)
    for start in range(0, X.nnz, _ROWS_AT_A_TIME):
        block = slice(start, start + _ROWS_AT_A_TIME)
        columns = X.indices[block]
        values[block] = apply(Scaler(shift[columns], scale[columns]), X.data[block])
    return values, apply(scaler, np.zeros((1, X.shape[1]), X.dtype))[0]


def fit_scaler(kind: str, X: RawTable) -> Scaler:
    """Fit a scaling to the rows of ``X``.

    Args:
        kind: ``'none'``; ``'minmax'``, each column to [0, 1]; ``'maxabs'``, each column over
            its largest absolute value, which leaves zeros unchanged; ``'standard'``, each column
            to mean 0 and standard deviation 1 (population); ``'scalar'``, one mean and one standard
            deviation for the whole matrix (WAST's reference code), without constant columns whose
            values lie outside those of all other columns; ``'scalar255'``, the statistics
            of the matrix applied to the matrix divided by 255, as that code does by accident to
            bytes (PCMAC), which leaves them almost constant; ``'unit255'``, divided by 255;
            ``'mnist'`` and ``'fashion_mnist'``, divided by 255 and normalised with the fixed pixel
            mean and standard deviation of that data set (IP-CAE's experiments).
        X: (N, D) finite values, dense, sparse or on disk; the last three kinds need pixels from 0
            to 255.

    Returns:
        The scaling. For ``'minmax'``, ``'maxabs'`` and ``'standard'``, columns that are constant in
        ``X`` become 0 in every row that is scaled, and for ``'scalar'`` those that do not count.

    Raises:
        ConfigError: for an unknown kind.
        DataError: if ``X`` has no rows, or is already in [0, 1] where 0 to 255 is needed.

    Examples:
      >>> print(fsjax.data.KINDS)
      >>> scaler = fsjax.data.fit_scaler("standard", data.X[:80])  # a data.Scaler
      >>> test = fsjax.data.apply(scaler, data.X[80:])
      >>> print(fsjax.data.paper_scaling("coil20"))
    """
    check_choice("scaling", kind, KINDS)
    if X.shape[0] == 0:
        raise DataError(f"cannot fit the scaling {kind!r} on 0 rows; give some training rows")
    if kind == "none":
        return Scaler(np.zeros(()), np.ones(()))
    table = as_table(X)
    lowest, highest = table.limits()
    constant = is_constant(lowest, highest, X.dtype)
    shift: np.ndarray | float = 0.0
    scale: np.ndarray | float = 1.0
    if kind == "minmax":
        shift = lowest.astype(np.float64)
        scale = np.where(constant, 0.0, _inverse(highest.astype(np.float64) - shift))
    elif kind == "maxabs":
        largest = np.maximum(-lowest.astype(np.float64), highest.astype(np.float64))
        scale = _inverse(np.where(constant, 0.0, largest))
    elif kind == "standard":
        shift, deviations = table.moments()
        scale = np.where(constant, 0.0, _inverse(deviations))
    elif kind in ("scalar", "scalar255"):
        far = _far_constants(lowest, highest, constant)
        shift, std = _pooled(*table.moments(), ~far) if far.any() else table.whole_moments()
        scale = 0.0 if is_constant(lowest.min(), highest.max(), X.dtype) else _inverse(std)
        scale = np.where(far, 0.0, scale) if far.any() else scale
        if kind == "scalar255":
            shift, scale = 255.0 * shift, scale / 255.0
    elif kind in _FIXED:
        if 0 < (largest := highest.max()) <= 1:
            raise DataError(
                f"scaling {kind!r} needs pixels from 0 to 255, but the largest value is {largest}; "
                "choose scaling 'none' or 'standard' for values already in [0, 1]"
            )
        mean, std = _FIXED[kind]
        shift, scale = 255.0 * mean, 1.0 / (255.0 * std)
    return Scaler(np.asarray(shift, np.float64), np.asarray(scale, np.float64))


def _far_constants(lowest: np.ndarray, highest: np.ndarray, constant: np.ndarray) -> np.ndarray:
    """Constant columns outside the range of the others, unlike the empty pixels of images."""
    if constant.all():
        return np.zeros_like(constant)
    least, most = lowest[~constant].min(), highest[~constant].max()
    return constant & ((lowest < least) | (highest > most))


def _pooled(means: np.ndarray, deviations: np.ndarray, counts: np.ndarray) -> tuple[float, float]:
    """Mean and standard deviation of all values of the columns that count."""
    mean = means[counts].mean()
    return mean, math.sqrt(np.mean(deviations[counts] ** 2 + (means[counts] - mean) ** 2))


def _inverse(spread: np.ndarray | float) -> np.ndarray:
    """``1 / spread``; 0 where the spread is 0 or the inverse is not finite."""
    usable = spread > 1.0 / float(np.finfo(np.float64).max)
    return np.where(usable, 1.0 / np.where(usable, spread, 1.0), 0.0)
