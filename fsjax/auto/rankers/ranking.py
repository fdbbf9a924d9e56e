"""What a selector answers: units (columns, or groups of columns) in order of importance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

#: The score of columns that did not take part: below every other.
LEFT_OUT = -np.inf


class Ranking(NamedTuple):
    """Units in order of importance.

    Attributes:
      order: for each size, distinct units, best first; a ranking has one order for all sizes.
      scores: ``(G,)`` importance of every unit.
    """

    order: dict[int, np.ndarray]
    scores: np.ndarray


def rank_units(scores: np.ndarray, groups: np.ndarray, sizes: Sequence[int]) -> Ranking:
    """Units by the best score of their columns; ties go to the first.

    Args:
      scores: ``(D,)`` of the columns, larger is better.
      groups: ``(D,)`` the unit of each column, from 0 to G - 1.
      sizes: numbers of units that are wanted.
    """
    units = np.full(int(groups.max()) + 1, LEFT_OUT)
    np.maximum.at(units, groups, scores)
    order = np.argsort(-units, kind="stable")
    return Ranking({size: order[:size] for size in sizes}, units)


def scores_of_order(first: np.ndarray, relevance: np.ndarray) -> np.ndarray:
    """Scores ``(D,)`` in (0, 1] that fall evenly along an order of the columns.

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
