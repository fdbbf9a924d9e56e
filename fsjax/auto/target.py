"""What ``fsjax.select`` predicts: the target as its task wants it, or as it looks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from fsjax.auto.models import OF_TASK
from fsjax.data.targets import encode_target
from fsjax.errors import DataError, check_choice
from fsjax.tasks import TABLE

#: Names of classes, where there are some.
Names = tuple[str, ...] | None

_WHERE = "the target"


def read_target(y: Any, task: str | None, rows: int) -> tuple[np.ndarray, str, Names]:
    """The target as its task wants it, the task, and names of classes.

    Args:
      y: labels or numbers, one or several for each row, or time and event.
      task: of :data:`fsjax.auto.models.OF_TASK`, or ``None`` for what y looks like.
      rows: of the table.

    Raises:
      ConfigError: for an unknown task.
      DataError: for a y that does not fit the task, or the table.
    """
    if task is not None:
        check_choice("task", task, OF_TASK)
    if len(y) != rows:
        raise DataError(f"y has {len(y)} values for {rows} rows of X; give one for each row")
    values = np.asarray(y)
    several = values.ndim > 1 and values.shape[1] > 1
    if several and task is None:
        task = "multilabel" if np.isin(values, (0, 1)).all() else "regression"
    if task not in (None, "classification"):
        return _as_numbers(y if several or task == "survival" else values.reshape(rows), task)
    if several:
        raise DataError("y has several columns; task='classification' needs one of labels")
    values = values.reshape(rows)
    found, names = encode_target(values, _WHERE)
    if names is not None:
        return found, "classification", names
    if task is None:
        return _as_numbers(values, "regression")
    found, labels = pd.factorize(values, sort=True)
    if len(labels) > rows / 2:
        raise DataError(
            f"the target has {len(labels)} different values in {rows} rows, which is too many "
            "for classes; choose task='regression'"
        )
    return found.astype(np.int32), task, tuple(map(str, labels))


def _as_numbers(y: Any, task: str) -> tuple[np.ndarray, str, Names]:
    found, _ = TABLE[task].check(*TABLE[task].read(y), _WHERE)
    found = np.asarray(found, np.float64)
    if not np.isfinite(found).all():
        raise DataError("the target has missing or infinite values; drop these rows")
    if (found == found[0]).all():
        raise DataError("the target has one value only; choose another column")
    return found, task, None
