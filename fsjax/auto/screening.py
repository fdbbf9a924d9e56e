"""Which rows and columns of a large table a network trains on: a stratified draw, the best by F."""

from __future__ import annotations

import numpy as np

from fsjax.auto.rankers import univariate
from fsjax.auto.rankers.parts import Part
from fsjax.tables.columns import Columns, densify
from fsjax.tasks import TABLE

#: The most columns that a network trains on. On arcene and ALLAML networks selected better from the
#: best 1,000 columns than from all, and cost a fifth (docs/selecting.md).
MOST_COLUMNS = 1000


def screened_columns(part: Part, task: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Sure independence screening (Fan and Lv 2008) of a table with more than MOST_COLUMNS.

    Args:
      part: training rows.
      task: the task.
      seed: not used by the statistic; passed on.

    Returns:
      The columns that are kept, ascending, and all others in descending order of their univariate
      F statistic in these rows. Without screening the second array is empty.
    """
    columns = np.arange(part.X.shape[1])
    if len(columns) <= MOST_COLUMNS:
        return columns, columns[:0]
    best_first = np.argsort(-univariate(part, task, seed), kind="stable")
    return np.sort(best_first[:MOST_COLUMNS]), best_first[MOST_COLUMNS:]


def drawn_rows(y: np.ndarray, task: str, most: int, seed: int) -> np.ndarray:
    """At most so many row numbers, ascending, with every stratum of the target in proportion.

    Each stratum (class, or event and censored) keeps at least one row where ``most`` allows it.
    """
    rows = np.arange(len(y))
    if len(rows) <= most:
        return rows
    rng = np.random.default_rng((seed, 23))
    strata = TABLE[task].strata(y)
    shuffled = rng.permutation(rows)
    if strata is None:
        return np.sort(shuffled[:most])
    _, label, count = np.unique(strata[shuffled], return_inverse=True, return_counts=True)
    # The place of each row within its stratum, as a share of it: the smallest shares are drawn,
    # and so the first row of every stratum before any second one.
    by_label = np.argsort(label, kind="stable")
    place = np.empty(len(rows))
    place[by_label] = np.arange(len(rows)) - np.repeat(np.cumsum(count) - count, count)
    share = np.where(place == 0, -1.0, place / count[label])
    return np.sort(shuffled[np.argsort(share, kind="stable")[:most]])


def dense_columns(rows: Columns, columns: np.ndarray) -> np.ndarray:
    """Some columns of dense or sparse rows as a dense array ``(n, len(columns))``."""
    return densify(rows[:, columns])
