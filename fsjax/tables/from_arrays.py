"""The user's own arrays as a data set."""

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.sparse import csr_array

from fsjax.errors import ConfigError
from fsjax.tables.checks import check_names, check_text, numeric_columns
from fsjax.tables.dataset import Dataset
from fsjax.tables.nullable import frame_values, plain_columns
from fsjax.tables.sparse import as_csr, stays_sparse
from fsjax.tables.user_arrays import as_array
from fsjax.tasks import TABLE, Task, name_of
from fsjax.tasks.targets import check_present


def as_dataset(
    x: ArrayLike, y: ArrayLike | None = None, task: str | Task = "classification"
) -> Dataset:
    """Make a data set, named ``table``, from arrays.

    Args:
        x: ``(N, D)`` numbers, as an array, a pandas frame, whose column names are kept, or a
            SciPy sparse matrix or array. Frames with sparse columns count as sparse. In nullable
            and Arrow-backed columns, missing values become NaN.
        y: ``(N,)`` labels of any kind, ``(N,)`` or ``(N, C)`` targets, ``(N, 2)`` time and event
            (also as records with a boolean field, or a frame), or ``None``.
        task: one of ``fsjax.tasks.TASKS``, or a registered task. For ``'classification'`` labels,
            also whole numbers that are stored as floats, become classes from 0 in sorted order;
            for other tasks numbers stay as they are.

    Raises:
        ConfigError: if X is not a table, y is sparse or has another number of rows, or the task is
            unknown.
        DataError: if a column of a frame does not hold numbers, if column names are repeated, if X
            or y is not an array or has masked values, or if y has missing or infinite values.
    """
    x = plain_columns(x)
    names = numeric_columns(x, "X") if isinstance(x, pd.DataFrame) else None
    check_names(x)
    x = _values(x)
    if x.ndim != 2:
        raise ConfigError(f"X has shape {x.shape}; give a table (rows, columns)")
    if y is None:
        return Dataset(name="table", X=x, y=None, feature_names=names)
    y, classes = TABLE[name_of(task)].read(y)
    if len(y) != x.shape[0]:
        raise ConfigError(
            f"X has {x.shape[0]} rows but y has {len(y)}; give one target for each row"
        )
    check_present(y)
    return Dataset(name="table", X=x, y=y, feature_names=names, class_names=classes)


def _values(x: Any) -> np.ndarray | csr_array:
    """The numbers of a table; DataError, which names the columns, for text in an array."""
    if stays_sparse(x):
        return as_csr(x)
    if isinstance(x, pd.DataFrame):
        return frame_values(x)
    x = as_array(x, "X")
    check_text(x)
    return x
