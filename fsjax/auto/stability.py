"""After the choice: the ranking on all rows, decoys, and stability selection over halves."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from fsjax.auto import library
from fsjax.auto.budget import Clock, timed
from fsjax.auto.compete import ALL, MERGED, Contest, rank
from fsjax.auto.discoveries import (
    NETWORK,
    NETWORK_SETS,
    decoy_model,
    false_discovery_rates,
    network_scores,
)
from fsjax.auto.folds import halves
from fsjax.auto.preparation import all_rows
from fsjax.auto.problem import Problem, with_kept
from fsjax.auto.progress_file import Ledger
from fsjax.auto.rankers import SIMPLE, Ranking, consensus
from fsjax.auto.rankers.parts import Part, standardise
from fsjax.auto.rule import CONSENSUS, Choice
from fsjax.tables.columns import Columns

#: Draws the columns and their decoys, and the units of these.
Draw = Callable[[np.random.Generator], tuple[Columns, np.ndarray]]

#: Pairs of complementary halves: those that are aimed at first, and those at most.
PAIRS, MOST_PAIRS = 5, 25

#: Sets of decoys of quick methods: those that are aimed at first, and those at most.
SETS, MOST_SETS = 5, 10

#: The contender whose training costs about what the network beside decoys does.
PRICED_LIKE = "deep_lasso"


class Frequencies(NamedTuple):
    """How often complementary halves of the rows select each unit.

    Attributes:
      frequency: ``(G,)`` share of the halves, NaN where none ran.
      halves: how many ran.
    """

    frequency: np.ndarray
    halves: int


class Decoys(NamedTuple):
    """How the units fare beside their decoys.

    Attributes:
      rates: ``(G,)`` estimated false discovery rate, NaN where no set of decoys ran.
      sets: of decoys.
      statistic: the method whose importance competed with decoys.
      scores: ``(M, G)`` importance of the units beside each set.
      decoys: ``(M, G)`` importance of their decoys.
    """

    rates: np.ndarray
    sets: int
    statistic: str
    scores: np.ndarray
    decoys: np.ndarray


def on_all_rows(
    problem: Problem, contest: Contest, choice: Choice, ledger: Ledger, clock: Clock
) -> Ranking:
    """The ranking by the chosen method on all rows of the table, at the chosen number."""
    method = "univariate" if choice.method == ALL else choice.method
    size = min(choice.size, problem.design.num_units)
    clock.tell(f"{method} on all rows")
    piece = ledger.get(
        f"rows/{method}/{size}", lambda: _plain(_rank(problem, contest, method, size, None))
    )
    scores = np.array([-np.inf if score is None else score for score in piece["scores"]])
    return Ranking({size: np.array(piece["order"], int)}, scores)


def full_order(ranking: Ranking) -> np.ndarray:
    """``(G,)`` all units, the selected ones first, the others by their scores."""
    first = ranking.order[max(ranking.order)]
    by_score = np.argsort(-ranking.scores, kind="stable")
    return np.concatenate([first, by_score[~np.isin(by_score, first)]])


def frequencies(
    problem: Problem,
    contest: Contest,
    choice: Choice,
    ledger: Ledger,
    clock: Clock,
    share: float,
    pairs: int,
) -> Frequencies:
    """How often complementary halves select each unit (Shah and Samworth 2013).

    Args:
      problem: what is asked.
      contest: for what is known of the methods.
      choice: the method, and how many units it selects.
      ledger: of what is done.
      clock: the time.
      share: of the budget that may be spent.
      pairs: of halves, at most.
    """
    units, method = problem.design.num_units, choice.method
    if method == ALL or choice.size >= units:
        return Frequencies(np.full(units, np.nan), 0)
    together = _together(method)
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
            rankings = _rank_all(problem, contest, method, choice.size, rows)
            for place, key in enumerate(keys):
                sides = rankings[2 * place : 2 * place + 2]
                orders = [side.order[max(side.order)][: choice.size].tolist() for side in sides]
                ledger.get(key, functools.partial(dict, orders=orders))
        for key in keys:
            for order in ledger[key]["orders"]:
                counts[order] += 1
                number += 1
    return Frequencies(counts / number if number else np.full(units, np.nan), number)


def _together(method: str) -> int:
    """Pairs of halves that are ranked by one program: networks compile once for all of them."""
    return 1 if method in SIMPLE or method == CONSENSUS else PAIRS


def _halves(problem: Problem, pair: int) -> list[np.ndarray]:
    return halves(problem.y, problem.task, problem.seed + pair, problem.row_groups, problem.ordered)


def _rank_all(
    problem: Problem, contest: Contest, method: str, size: int, rows: Sequence[np.ndarray]
) -> list[Ranking]:
    """Rankings of several parts of the rows; those of a network train together."""
    if _together(method) == 1:
        return [_rank(problem, contest, method, size, part) for part in rows]
    parts = [all_rows(problem.design, problem.y, part) for part in rows]
    rankings = library.rank_folds(
        method, parts, problem.task, problem.design.groups, (size,), problem.seed
    )
    return [with_kept(ranking, problem) for ranking in rankings]


def beside_decoys(
    problem: Problem,
    statistic: str,
    contest: Contest,
    ledger: Ledger,
    clock: Clock,
    share: float,
    sets: int,
) -> Decoys:
    """False discovery rates of the units, from competition with their decoys.

    Args:
      problem: what is asked.
      statistic: the method whose importance competes, see :func:`decoy_statistic`.
      contest: for what is known of the methods.
      ledger: of what is done.
      clock: the time.
      share: of the budget that may be spent.
      sets: of decoys, at most; a network trains beside all of its sets at once.
    """
    units = problem.design.num_units
    part = functools.cache(lambda: all_rows(problem.design, problem.y))
    # Made once, and only if a set is not there yet.
    draw = functools.cache(lambda: decoy_model(part().X, problem.design))
    network = statistic == NETWORK
    # Twice as many columns take longer.
    need = (
        2.0 * contest.seconds_of_rankings(PRICED_LIKE, NETWORK_SETS)
        if network
        else 2.5 * contest.seconds_of(statistic)
    )
    real: list[list[float]] = []
    false: list[list[float]] = []
    for number in range(1 if network else sets):
        key = f"decoys/{statistic}/{number}"
        if key not in ledger:
            if need > clock.left(share):
                break
            clock.tell(f"decoy columns, set {number + 1}")
        if network:
            work = functools.partial(_network_beside, problem, part, draw)
        else:
            work = functools.partial(_beside, problem, contest, part, draw, statistic, number)
        piece = ledger.get(key, functools.partial(timed, work))
        need = piece["seconds"]
        real += piece["scores"]
        false += piece["decoys"]
    if not real:
        return no_decoys(units, statistic)
    scores, decoys = np.array(real), np.array(false)
    return Decoys(false_discovery_rates(scores, decoys), len(real), statistic, scores, decoys)


def no_decoys(units: int, statistic: str) -> Decoys:
    """What is known of decoys where none ran."""
    none = np.zeros((0, units))
    return Decoys(np.full(units, np.nan), 0, statistic, none, none)


def _network_beside(
    problem: Problem, part: Callable[[], Part], draw: Callable[[], Draw]
) -> dict[str, list[list[float]]]:
    """Importance of units and decoys by the network, all sets in one program."""
    scores, decoys = network_scores(
        part(), draw(), problem.task, problem.design.num_units, NETWORK_SETS, problem.seed
    )
    return {"scores": scores.tolist(), "decoys": decoys.tolist()}


def _beside(
    problem: Problem,
    contest: Contest,
    part: Callable[[], Part],
    draw: Callable[[], Draw],
    statistic: str,
    number: int,
) -> dict[str, list[list[float]]]:
    """Importance of the units and of their decoys, in one set."""
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
