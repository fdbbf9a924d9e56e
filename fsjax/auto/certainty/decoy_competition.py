"""The competition of columns and decoys, as far as there is time for it."""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np
from scipy.sparse import issparse

from fsjax.auto.certainty.false_discovery import (
    NETWORK,
    NETWORK_SETS,
    Draw,
    decoy_model,
    drawn_decoys,
    false_discovery_rates,
    known_rates,
    network_scores,
    simple_scores,
)
from fsjax.auto.certainty.quick_statistic import better_predictor
from fsjax.auto.contest.cross_validation import Contest
from fsjax.auto.contest.folds import all_rows
from fsjax.auto.contest.problem import Problem
from fsjax.auto.contest.rankers.parts import Part, standardise

#: With fewer rows, or groups of rows, no forest compares columns with decoys: on tables of 30
#: correlated columns 0.32 of its selection at a rate of 0.2 was false with 60 groups, and 0.17 with
#: 100. The Lasso path depends less on how well correlations are estimated.
FOREST_ROWS = 100

#: The contender whose training takes about as long as that of the network beside decoys.
SAME_COST = "deep_lasso"


class Decoys(NamedTuple):
    """Result of the competition of units and decoys.

    Attributes:
      rates: ``(G,)`` estimated false discovery rate, NaN if no set of decoys ran.
      sets: M, number of sets of decoys.
      statistic: the method whose importance was compared.
      scores: ``(M, G)`` importance of the units beside each set.
      decoys: ``(M, G)`` importance of their decoys.
    """

    rates: np.ndarray
    sets: int
    statistic: str
    scores: np.ndarray
    decoys: np.ndarray

    @property
    def known_rates(self) -> np.ndarray:
        """``(G,)`` the rates that these sets suffice for, NaN for the others."""
        return known_rates(self.scores, self.decoys)


def why_no_decoys(problem: Problem) -> str | None:
    """Why false discovery rates cannot be estimated for these rows; ``None`` if they can.

    Rows of decoys must depend on each other as those of columns do. With series that are correlated
    at 0.5 from row to row, a third of the columns that were selected at a rate of 0.1 were false.
    """
    if problem.ordered:
        return "rows of decoys do not depend on earlier rows, as those in order of time may"
    if problem.row_groups is not None and issparse(problem.design.X):
        return "decoys of a sparse table do not keep the groups of rows together"
    return None


def quick_statistic(contest: Contest, share: float) -> str:
    """``l1`` or ``forest``, whichever predicts better from columns and decoys; ``l1`` without time.

    Also ``l1`` for fewer than :data:`FOREST_ROWS` rows or groups of rows.

    Args:
      share: of the budget that may be spent.
    """
    problem, ledger = contest.problem, contest.ledger
    groups = problem.row_groups
    independent = len(problem.y) if groups is None else len(np.unique(groups))
    if why_no_decoys(problem) or independent < FOREST_ROWS:
        return "l1"
    key = "decoys/statistic"
    need = contest.expected.of_decoys("l1", "forest", count=problem.folds)
    if key not in ledger and need > contest.clock.left(share):
        return "l1"

    def work() -> dict[str, str]:
        contest.clock.tell("decoy columns, choice of a statistic")
        part = all_rows(problem.design, problem.y, None, problem.weights)
        both, _ = drawn_decoys(_decoys_of(problem, part), problem.seed, 0)
        (rows,) = standardise(both, weights=part.weights)
        folds, seed = problem.rounds[0], problem.seed
        compared = Part(rows, part.y, weights=part.weights)
        return {"name": better_predictor(compared, problem.task, folds, seed)}

    return str(ledger.get(key, work)["name"])


def compete_with_decoys(contest: Contest, statistic: str, share: float, sets: int) -> Decoys:
    """False discovery rates of the units, from their competition with decoys.

    Args:
      statistic: the method whose importance is compared, see :func:`decoy_statistic`.
      share: of the budget that may be spent.
      sets: of decoys, at most; a network trains beside all of its sets at once.
    """
    problem, ledger, clock = contest.problem, contest.ledger, contest.clock
    units = problem.design.num_units
    if why_no_decoys(problem):
        return no_decoys(units, statistic)
    part = functools.cache(lambda: all_rows(problem.design, problem.y, None, problem.weights))
    # Fitted once, and only if a set is missing.
    draw = functools.cache(lambda: _decoys_of(problem, part()))
    network = statistic == NETWORK
    need = (
        2.0 * contest.expected.of_rankings(SAME_COST, NETWORK_SETS)  # Twice as many columns.
        if network
        else contest.expected.of_decoys(statistic)
    )

    def work(number: int) -> dict[str, list[list[float]]]:
        arguments = part(), draw(), problem.task, units
        if network:
            scores, decoys = network_scores(*arguments, NETWORK_SETS, problem.seed)
        else:
            effort = contest.expected.effort(statistic)
            scores, decoys = simple_scores(*arguments, statistic, number, problem.seed, effort)
        return {"scores": scores.tolist(), "decoys": decoys.tolist()}

    unit_scores: list[list[float]] = []
    decoy_scores: list[list[float]] = []
    for number in range(1 if network else sets):
        key = f"decoys/{statistic}/{number}"
        if key not in ledger:
            if need > clock.left(share):
                break
            clock.tell(f"decoy columns, set {number + 1}")
        piece = ledger.timed(key, functools.partial(work, number))
        need = piece["seconds"]
        unit_scores += piece["scores"]
        decoy_scores += piece["decoys"]
    if not unit_scores:
        return no_decoys(units, statistic)
    scores, decoys = np.array(unit_scores), np.array(decoy_scores)
    return Decoys(false_discovery_rates(scores, decoys), len(scores), statistic, scores, decoys)


def _decoys_of(problem: Problem, part: Part) -> Draw:
    return decoy_model(part.X, problem.design.groups, problem.row_groups)


def no_decoys(units: int, statistic: str) -> Decoys:
    """The result if no set of decoys ran."""
    none = np.zeros((0, units))
    return Decoys(np.full(units, np.nan), 0, statistic, none, none)
