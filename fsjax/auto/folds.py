"""Which rows teach and which judge: cross-validation that suits the table."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    StratifiedGroupKFold,
    StratifiedKFold,
    TimeSeriesSplit,
)

from fsjax.auto.preparation import Fold
from fsjax.errors import ConfigError, DataError
from fsjax.tasks import TABLE

#: Folds of a round, as a rule.
FOLDS = 5

#: Rounds of new folds by the number of rows: few rows make single rounds noisy.
_ROUNDS = ((150, 4), (1500, 2))


def rounds_of(
    y: np.ndarray,
    task: str,
    seed: int,
    row_groups: Sequence | None = None,
    ordered: bool = False,
) -> list[list[Fold]]:
    """Rounds of cross-validation; in each round every row judges once (but the first of a series).

    Args:
      y: ``(N,)`` or ``(N, C)`` target.
      task: classes are spread evenly over the folds.
      seed: of the shuffling.
      row_groups: ``(N,)`` labels of rows that belong together, such as patients: they stay on one
        side of every split.
      ordered: whether the rows are in order of time: earlier rows teach, later ones judge.

    Raises:
      ConfigError: for groups that do not fit, or together with ``ordered``.
      DataError: if there are too few rows, rows of a class, or groups.
    """
    rows = np.arange(len(y))
    if ordered:
        if row_groups is not None:
            raise ConfigError("choose either groups of rows or the order of time, not both")
        return [[Fold(*one) for one in TimeSeriesSplit(_count(len(y) // 2, "rows")).split(rows)]]
    rounds = next((count for most, count in _ROUNDS if len(y) < most), 1)
    strata = TABLE[task].strata(y)
    if row_groups is not None:
        labels = np.asarray(row_groups)
        if labels.shape != (len(y),):
            raise ConfigError(f"row_groups has shape {labels.shape}; give one of the {len(y)} rows")
        count = _count(len(np.unique(labels)), "groups of rows")
        kind = GroupKFold if strata is None else StratifiedGroupKFold
        made = [kind(count, shuffle=True, random_state=seed + i) for i in range(rounds)]
        return [[Fold(*one) for one in maker.split(rows, strata, labels)] for maker in made]
    if strata is None:
        kind, count = KFold, _count(len(y), "rows")
    else:
        least = int(np.unique(strata, return_counts=True)[1].min())
        told = "rows of the rarest class" if TABLE[task].classes else "rows with, or without, event"
        kind, count = StratifiedKFold, _count(least, told)
    made = [kind(count, shuffle=True, random_state=seed + i) for i in range(rounds)]
    return [[Fold(*one) for one in maker.split(rows, strata)] for maker in made]


def halves(y: np.ndarray, task: str, seed: int) -> list[np.ndarray]:
    """The rows of two complementary halves."""
    strata, rows = TABLE[task].strata(y), np.arange(len(y))
    kind = KFold if strata is None else StratifiedKFold
    return [one for one, _ in kind(2, shuffle=True, random_state=seed).split(rows, strata)]


def _count(available: int, what: str) -> int:
    if available < 2:
        raise DataError(
            f"there are {available} {what}; cross-validation needs at least 2, better {FOLDS}"
        )
    return min(FOLDS, available)
