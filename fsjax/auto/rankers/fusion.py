"""The consensus of several rankings."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fsjax.auto.rankers.ranking import Ranking

#: Added to each rank. 60 is usual for long lists of documents, where being named by several lists
#: counts most; for the few best of many columns, the first places count most.
CONSTANT = 2


def consensus(
    orders: Sequence[Sequence[int] | np.ndarray], num_units: int, sizes: Sequence[int]
) -> Ranking:
    """Merges rankings by reciprocal rank fusion (Cormack, Clarke and Buettcher 2009).

    A unit scores the sum of ``1 / (2 + rank)`` over the rankings that name it.

    Args:
      orders: of each ranking, distinct units, best first; they may name some of the units only.
      num_units: G, the number of all units; those that no ranking names score 0 and come last.
      sizes: numbers of units that are wanted.
    """
    scores = np.zeros(num_units)
    for order in orders:
        scores[np.asarray(order, int)] += 1.0 / (CONSTANT + np.arange(1, len(order) + 1))
    merged = np.argsort(-scores, kind="stable")
    return Ranking({size: merged[:size] for size in sizes}, scores)
