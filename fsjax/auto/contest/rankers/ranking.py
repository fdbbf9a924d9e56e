"""Rankings: units (columns, or groups of columns) in order of importance, and their consensus."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

#: Score of columns that did not take part, below all others.
LEFT_OUT = -np.inf


#: Added to each rank by the consensus. The usual 60 suits long lists of documents, where it counts
#: most to be named by several lists; for the few best of many columns, first places count most.
_RANK_CONSTANT = 2


class Ranking(NamedTuple):
    """Units in order of importance.

    Attributes:
      order: for each size, distinct units, best first; all sizes share one order.
      scores: ``(G,)`` importance of every unit.
    """

    order: dict[int, np.ndarray]
    scores: np.ndarray


def rank_units(scores: np.ndarray, groups: np.ndarray, sizes: Sequence[int]) -> Ranking:
    """Ranks units by the best score of their columns; ties keep the order of the units.

    Args:
      scores: ``(D,)`` of the columns, larger is better.
      groups: ``(D,)`` the unit of each column, from 0 to G - 1.
    """
    units = np.full(int(groups.max()) + 1, LEFT_OUT)
    np.maximum.at(units, groups, scores)
    order = np.argsort(-units, kind="stable")
    return Ranking({size: order[:size] for size in sizes}, units)


def scores_of_order(first: np.ndarray, relevance: np.ndarray) -> np.ndarray:
    """Scores ``(D,)`` in (0, 1] that decrease evenly along an order of the columns.

    Args:
      first: distinct columns, best first.
      relevance: ``(D,)`` orders the columns that are not in ``first``; those with
        :data:`LEFT_OUT` keep it.
    """
    scores = np.full(len(relevance), LEFT_OUT)
    others = np.setdiff1d(np.flatnonzero(relevance > LEFT_OUT), first)
    order = np.concatenate([first, others[np.argsort(-relevance[others], kind="stable")]])
    scores[order] = 1.0 - np.arange(len(order)) / len(relevance)
    return scores


def merged_ranking(
    orders: Sequence[Sequence[int] | np.ndarray], num_units: int, sizes: Sequence[int]
) -> Ranking:
    """Merges rankings by reciprocal rank fusion (Cormack, Clarke and Buettcher 2009).

    A unit scores the sum of ``1 / (2 + rank)`` over the rankings that name it.

    Args:
      orders: distinct units of each ranking, best first; not all units need to be in a ranking.
      num_units: G, the number of units; those in no ranking score 0 and come last.
    """
    scores = np.zeros(num_units)
    for order in orders:
        scores[np.asarray(order, int)] += 1.0 / (_RANK_CONSTANT + np.arange(1, len(order) + 1))
    merged = np.argsort(-scores, kind="stable")
    return Ranking({size: merged[:size] for size in sizes}, scores)
