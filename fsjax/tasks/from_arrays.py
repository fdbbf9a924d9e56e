"""The user's own arrays as a data set, and the target that a task wants of a data set."""

import dataclasses

import pandas as pd
from numpy.typing import ArrayLike

from fsjax.errors import ConfigError, DataError
from fsjax.tables.checks import check_column_names, check_dates, check_text, numeric_columns
from fsjax.tables.dataset import CheckedDataset, Dataset
from fsjax.tables.streamed import StreamedTable, streamed_if_large
from fsjax.tables.user_arrays import check_row_order, numbers_of, plain_columns
from fsjax.tasks import TABLE, Task, name_of
from fsjax.tasks.targets import check_present


def as_dataset(
    x: ArrayLike, y: ArrayLike | None = None, task: str | Task = "classification"
) -> Dataset:
    """Make a data set, named ``table``, from arrays.

    Args:
        x: ``(N, D)`` numbers, as an array, a pandas frame, whose column names are kept, or a
            SciPy sparse matrix or array. Frames with sparse columns count as sparse. In nullable
            and Arrow-backed columns, missing values become NaN. A ``numpy.memmap`` or an array of
            another library (h5py, zarr, Dask) that takes more than half of the free memory is read
            while it is used.
        y: ``(N,)`` labels of any kind, ``(N,)`` or ``(N, C)`` targets, ``(N, 2)`` time and event
            (also as records with a boolean field, or a frame), or ``None``.
        task: one of ``fsjax.tasks.TASKS``, or a registered task. For ``'classification'`` labels,
            also whole numbers that are stored as floats, become classes from 0 in sorted order;
            for other tasks numbers stay as they are.

    Raises:
        ConfigError: if X is not a table, y is sparse or has another number of rows, or the task is
            unknown.
        DataError: if a column of a frame does not hold numbers, if column names are repeated, if X
            or y is not an array or has masked values, if y has missing or infinite values, or if
            it has the row labels of X in another order.
    """
    check_row_order(x, y=y)
    x = plain_columns(x)
    names = numeric_columns(x, "X") if isinstance(x, pd.DataFrame) else None
    check_column_names(x)
    check_dates(x)
    x = streamed_if_large(x)
    if not isinstance(x, StreamedTable):
        x = numbers_of(x)
    check_text(x)
    if x.ndim != 2:
        raise ConfigError(f"X has shape {x.shape}; give a table (rows, columns)")
    if y is None:
        return Dataset(name="table", X=x, y=None, feature_names=names)
    y, classes = TABLE[name_of(task)].target.read(y)
    if len(y) != x.shape[0]:
        raise ConfigError(
            f"X has {x.shape[0]} rows but y has {len(y)}; give one target for each row"
        )
    check_present(y)
    return Dataset(name="table", X=x, y=y, feature_names=names, class_names=classes)


def check_task(dataset: Dataset, task: str | Task) -> Dataset:
    """Check that a data set has the target that a task needs.

    Args:
        dataset: any data set.
        task: one of ``fsjax.tasks.TASKS``, or a registered task.

    Returns:
        The data set itself. Where the task needs numbers and whole numbers were read as classes, a
        copy whose ``y`` holds the original numbers as float32.

    Raises:
        ConfigError: for an unknown task.
        DataError: if the target does not fit the task.
    """
    task = name_of(task)
    target = TABLE[task].target
    if not target.supervised or isinstance(dataset, CheckedDataset):
        return dataset
    if dataset.y is None:
        raise DataError(
            f"task={task} needs a target, but {dataset.name} has none; give y (data.target in a "
            "config), or choose task=reconstruction"
        )
    y, names = target.check(dataset.y, dataset.class_names, dataset.name)
    if y is dataset.y:
        return dataset
    return dataclasses.replace(dataset, y=y, class_names=names)
