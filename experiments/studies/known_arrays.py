"""Parts of a data set that an experiment requires."""

from __future__ import annotations

import numpy as np

from fsjax.data import Dataset
from fsjax.errors import DataError


def dense_arrays(data: Dataset) -> tuple[np.ndarray, np.ndarray]:
    """X ``(N, D)`` and y; DataError if the table is sparse, on disk, or has no target."""
    if not isinstance(data.X, np.ndarray) or data.y is None:
        raise DataError(f"{data.name} is not a dense table with a target")
    return data.X, data.y


def informative_columns(data: Dataset) -> np.ndarray:
    """The columns that determine the target; DataError if they are not known."""
    if data.informative is None:
        raise DataError(f"the informative columns of {data.name} are not known")
    return np.array(data.informative)
