"""After the choice: the ranking on all rows, decoys, and stability selection."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from fsjax.auto import library
from fsjax.auto.compete import ALL, MERGED, Contest, of_library, rank
from fsjax.auto.discoveries import (
    NETWORK,
    NETWORK_SETS,
    decoy_model,
    false_discovery_rates,
    network_scores,
)
from fsjax.auto.folds import all_rows, halves
from fsjax.auto.problem import Problem, with_kept
from fsjax.auto.rankers import Ranking, consensus
from fsjax.auto.rankers.parts import Part, standardise
from fsjax.auto.rule import CONSENSUS, Choice
from fsjax.tables.columns import Columns

#: Draws a table of the columns and their decoys, and the units of its columns.
Draw = Callable[[np.random.Generator], tuple[Columns, np.ndarray]]

#: Pairs of complementary halves of the rows: the first aim, and the most.
PAIRS, MOST_PAIRS = 5, 25

#: Sets of decoys for quick methods: the first aim, and the most.
SETS, MOST_SETS = 5, 10

#: The contender whose training takes about as long as that of the network beside decoys.
SAME_COST = "deep_lasso"


class Frequencies(NamedTuple):
    """Selection frequencies over complementary halves of the rows.

    Attributes:
      frequency: ``(G,)`` share of the halves that select each unit, NaN if none ran.
      halves: number of halves that ran.
    """

    frequency: np.ndarray
    halves: int


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


def on_all_rows(problem: Problem, contest: Contest, choice: Choice) -> Ranking:
    """The ranking by the chosen method on all rows of the problem, at the chosen number."""
    method = "univariate" if choice.method == ALL else choice.method
    size = min(choice.size, problem.design.num_units)
    contest.clock.tell(f"{method} on all rows")
    piece = contest.ledger.get(
        f"rows/{method}/{size}", lambda: _plain(_rank(problem, contest, method, size, None))
    )
    scores = np.array([-np.inf if score is None else score for score in piece["scores"]])
    return Ranking({size: np.array(piece["order"], int)}, scores)


def full_order(ranking: Ranking) -> np.ndarray:
    """``(G,)`` all units, the selected ones first, the others by their scores."""
    first = ranking.order[max(ranking.order)]
    by_score = np.argsort(-ranking.scores, kind="stable")
    return np.concatenate([first, by_score[~np.isin(by_score, first)]])


def frequencies(contest: Contest, choice: Choice, share: float, pairs: int) -> Frequencies:
    """Selection frequencies over complementary halves of the rows (Shah and Samworth 2013).

    Args:
      contest: the methods under cross-validation.
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
    for first in range(0, pairs, together):
        numbers = range(first, min(first + together, pairs))
        need = contest.seconds_of_rankings(method, 2 * len(numbers))
        keys = [f"half/{method}/{choice.size}/{pair}" for pair in numbers]
        if any(key not in ledger for key in keys):
            if need > clock.left(share):
                break
            clock.tell(f"{method} on halves of the rows, pair {first + 1}")
            rows = [rows for pair in numbers for rows in _halves(problem, pair)]
            rankings = _rank_all(contest, method, choice.size, rows)
            for place, key in enumerate(keys):
                sides = rankings[2 * place : 2 * place + 2]
                orders = [side.order[max(side.order)][: choice.size].tolist() for side in sides]
                ledger.get(key, functools.partial(dict, orders=orders))
        for key in keys:
            for order in ledger[key]["orders"]:
                counts[order] += 1
                number += 1
    return Frequencies(counts / number if number else np.full(units, np.nan), number)


def _halves(problem: Problem, pair: int) -> list[np.ndarray]:
    return halves(problem.y, problem.task, problem.seed + pair, problem.row_groups, problem.ordered)


def _rank_all(
    contest: Contest, method: str, size: int, rows: Sequence[np.ndarray]
) -> list[Ranking]:
    """Rankings of several parts of the rows; those of a network train together."""
    problem = contest.problem
    if not of_library(method):
        return [_rank(problem, contest, method, size, part) for part in rows]
    parts = [all_rows(problem.design, problem.y, part) for part in rows]
    rankings = library.rank_folds(
        method, parts, problem.task, problem.design.groups, (size,), problem.seed
    )
    return [with_kept(ranking, problem) for ranking in rankings]


def beside_decoys(contest: Contest, statistic: str, share: float, sets: int) -> Decoys:
    """False discovery rates of the units, from their competition with decoys.

    Args:
      contest: the methods under cross-validation.
      statistic: the method whose importance is compared, see :func:`decoy_statistic`.
      share: of the budget that may be spent.
      sets: of decoys, at most; a network trains beside all of its sets at once.
    """
    problem, ledger, clock = contest.problem, contest.ledger, contest.clock
    units = problem.design.num_units
    part = functools.cache(lambda: all_rows(problem.design, problem.y))
    # Fitted once, and only if a set is missing.
    draw = functools.cache(lambda: decoy_model(part().X, problem.design.groups))
    network = statistic == NETWORK
    # There are twice as many columns.
    need = (
        2.0 * contest.seconds_of_rankings(SAME_COST, NETWORK_SETS)
        if network
        else 2.5 * contest.seconds_of(statistic)
    )
    unit_scores: list[list[float]] = []
    decoy_scores: list[list[float]] = []
    for number in range(1 if network else sets):
        key = f"decoys/{statistic}/{number}"
        if key not in ledger:
            if need > clock.left(share):
                break
            clock.tell(f"decoy columns, set {number + 1}")
        if network:
            work = functools.partial(_network_beside, problem, part, draw)
        else:
            work = functools.partial(_beside, contest, part, draw, statistic, number)
        piece = ledger.timed(key, work)
        need = piece["seconds"]
        unit_scores += piece["scores"]
        decoy_scores += piece["decoys"]
    if not unit_scores:
        return no_decoys(units, statistic)
    scores, decoys = np.array(unit_scores), np.array(decoy_scores)
    return Decoys(false_discovery_rates(scores, decoys), len(scores), statistic, scores, decoys)


def no_decoys(units: int, statistic: str) -> Decoys:
    """The result if no set of decoys ran."""
    none = np.zeros((0, units))
    return Decoys(np.full(units, np.nan), 0, statistic, none, none)


def _network_beside(
    problem: Problem, part: Callable[[], Part], draw: Callable[[], Draw]
) -> dict[str, list[list[float]]]:
    """Importance of units and decoys by the network, all sets trained as one program."""
    scores, decoys = network_scores(
        part(), draw(), problem.task, problem.design.num_units, NETWORK_SETS, problem.seed
    )
    return {"scores": scores.tolist(), "decoys": decoys.tolist()}


def _beside(
    contest: Contest,
    part: Callable[[], Part],
    draw: Callable[[], Draw],
    statistic: str,
    number: int,
) -> dict[str, list[list[float]]]:
    """Importance of the units and of their decoys, in one set."""
    problem = contest.problem
    X, groups = draw()(np.random.default_rng((problem.seed, 11, number)))
    (rows,) = standardise(X)
    units = problem.design.num_units
    ranking = rank(
        problem,
        statistic,
        Part(rows, part().y),
        (min(problem.sizes[-1], units),),
        problem.seed + number,
        contest.effort(statistic),
        groups,
    )
    scores = np.where(np.isfinite(ranking.scores), ranking.scores, 0.0)
    return {"scores": [scores[:units].tolist()], "decoys": [scores[units:].tolist()]}


def _rank(
    problem: Problem, contest: Contest, method: str, size: int, rows: np.ndarray | None
) -> Ranking:
    part = all_rows(problem.design, problem.y, rows)
    if method != CONSENSUS:
        return rank(problem, method, part, (size,), problem.seed, contest.effort(method))
    # As many units of each ranking as in cross-validation.
    most = min(max(contest.problem.sizes), MERGED)
    firsts = [
        rank(problem, member, part, (most,), problem.seed, contest.effort(member)).order[most]
        for member in contest.members()
    ]
    return with_kept(consensus(firsts, problem.design.num_units, (size,)), problem)


def _plain(ranking: Ranking) -> dict[str, Any]:
    """A ranking as JSON values."""
    return {
        "scores": [float(score) if np.isfinite(score) else None for score in ranking.scores],
        "order": ranking.order[max(ranking.order)].tolist(),
    }
