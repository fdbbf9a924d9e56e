"""The one rule for whether a target without a task holds classes or numbers.

``fsjax.select``, the loaders and the warnings of ``fit`` and of the estimators all ask here. A task
that is named (``task=``) overrides the rule everywhere.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

#: Whole numbers of more different values than this need :data:`ROWS_OF_LABEL` rows each on average
#: to be classes.
MANY_LABELS = 30
ROWS_OF_LABEL = 5

#: Fewer rows than this for each different whole number on average are never classes.
LEAST_ROWS_OF_LABEL = 2

#: From so many different whole numbers on, it is worth saying what they are taken for.
WORTH_SAYING = 11


class TargetKind(NamedTuple):
    """What a target is taken for.

    Attributes:
      classes: whether it holds labels of classes, else numbers.
      remark: what was decided, and how to decide otherwise; empty where nothing else is likely.
    """

    classes: bool
    remark: str


def kind_of_target(values: np.ndarray) -> TargetKind:
    """Whether a target holds classes or numbers, where no task says so.

    Text and truth values are classes, and numbers with fractions are numbers. Whole numbers, also
    those stored as floats, are classes unless there are more than 30 different ones with fewer
    than 5 rows each on average, or more than 2 with fewer than 2 rows each.

    Args:
      values: ``(N,)``, none of them missing.
    """
    if values.dtype.kind not in "iuf":
        return TargetKind(True, "")
    if values.dtype.kind == "f" and not np.array_equal(values, np.round(values)):
        return TargetKind(False, "")
    labels, rows = len(np.unique(values)), len(values)
    many = labels > MANY_LABELS and rows < ROWS_OF_LABEL * labels
    alone = labels > 2 and rows < LEAST_ROWS_OF_LABEL * labels
    classes = not (many or alone)
    if classes and labels < WORTH_SAYING:
        return TargetKind(True, "")
    taken = (f"{labels} classes", "regression") if classes else ("numbers", "classification")
    return TargetKind(
        classes,
        f"{labels} different whole numbers in {rows} rows are taken as {taken[0]}; "
        f"task='{taken[1]}' overrides this",
    )
