"""The rule that decides whether a target without a task holds classes or numbers.

``fsjax.select``, the loaders and the warnings of ``fit`` and of the estimators all use it. An
explicit task (``task=``) always overrides it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

#: More different whole numbers than this are classes only if there are on average
#: :data:`ROWS_OF_LABEL` rows for each.
MANY_LABELS = 30
ROWS_OF_LABEL = 5

#: Whole numbers with on average fewer rows each than this are never classes.
MIN_ROWS_OF_LABEL = 2

#: From this many different whole numbers on, a remark says what they are taken for.
WORTH_SAYING = 11


class TargetKind(NamedTuple):
    """What a target is taken for.

    Attributes:
      classes: whether it holds labels of classes, and not numbers.
      remark: what was decided, and how to override it; empty if the decision is clear.
    """

    classes: bool
    remark: str


def kind_of_target(values: np.ndarray) -> TargetKind:
    """Decide whether a target holds classes or numbers if no task is given.

    Text and booleans are classes, and fractions are numbers. Whole numbers, also those stored as
    floats, are classes unless there are more than 30 different ones with on average fewer than 5
    rows each, or more than 2 with on average fewer than 2 rows each.

    Args:
      values: ``(N,)`` without missing values.
    """
    if values.dtype.kind not in "iuf":
        return TargetKind(True, "")
    if values.dtype.kind == "f" and not np.array_equal(values, np.round(values)):
        return TargetKind(False, "")
    labels, rows = len(np.unique(values)), len(values)
    many = labels > MANY_LABELS and rows < ROWS_OF_LABEL * labels
    alone = labels > 2 and rows < MIN_ROWS_OF_LABEL * labels
    classes = not (many or alone)
    # Whether floats beyond 2^53 are whole is not known.
    if labels < WORTH_SAYING if classes else np.abs(values).max() > 2**53:
        return TargetKind(classes, "")
    taken = (f"{labels} classes", "regression") if classes else ("numbers", "classification")
    return TargetKind(
        classes,
        f"{labels} different whole numbers in {rows} rows are taken as {taken[0]}; "
        f"task='{taken[1]}' overrides this",
    )
