"""Stability selection: how often halves of the rows select each column."""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np

from fsjax.auto.contest.cross_validation import Contest
from fsjax.auto.contest.folds import halves
from fsjax.auto.contest.method_names import ALL, of_library, title
from fsjax.auto.contest.problem import Problem
from fsjax.auto.contest.row_rankings import rankings_of
from fsjax.auto.contest.rule import Choice
from fsjax.auto.contest.schedule import PAIRS


class Frequencies(NamedTuple):
    """Selection frequencies over complementary halves of the rows.

    Attributes:
      frequency: ``(G,)`` share of the halves that select each unit, NaN if none ran.
      halves: number of halves that ran.
    """

    frequency: np.ndarray
    halves: int


def frequencies(contest: Contest, choice: Choice, share: float, pairs: int) -> Frequencies:
    """Selection frequencies over complementary halves of the rows (Shah and Samworth 2013).

    Args:
      choice: the method, and how many units it selects.
      share: of the budget that may be spent.
      pairs: of halves, at most.
    """
    problem, ledger, clock = contest.problem, contest.ledger, contest.clock
    units, method = problem.design.num_units, choice.method
    if method == ALL or choice.size >= units:
        return Frequencies(np.full(units, np.nan), 0)
    # Pairs that are ranked at once: networks compile once for all of them.
    together = PAIRS if of_library(method) else 1
    counts, number = np.zeros(units), 0
    need = contest.expected.of_rankings(method, 2 * together)
    for first in range(0, pairs, together):
        numbers = range(first, min(first + together, pairs))
        keys = [f"half/{method}/{choice.size}/{pair}" for pair in numbers]
        if any(key not in ledger for key in keys):
            if need > clock.left(share):
                break
            clock.tell(f"{title(method)} on halves of the rows, pair {first + 1}")
            before = clock.spent
            rows = [rows for pair in numbers for rows in _halves(problem, pair)]
            rankings = rankings_of(problem, contest, method, choice.size, rows)
            for place, key in enumerate(keys):
                sides = rankings[2 * place : 2 * place + 2]
                orders = [side.order[max(side.order)][: choice.size].tolist() for side in sides]
                ledger.get(key, functools.partial(dict, orders=orders))
            need = clock.spent - before
        for key in keys:
            for order in ledger[key]["orders"]:
                counts[order] += 1
                number += 1
    return Frequencies(counts / number if number else np.full(units, np.nan), number)


def _halves(problem: Problem, pair: int) -> list[np.ndarray]:
    return halves(problem.y, problem.task, problem.seed + pair, problem.row_groups, problem.ordered)
