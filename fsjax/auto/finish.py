"""After the choice: how steady the columns are, and how many of them are false."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from fsjax.auto.budget import Clock, timed
from fsjax.auto.compete import ALL, Problem, ranking
from fsjax.auto.discoveries import decoy_model, false_discovery_rates
from fsjax.auto.folds import halves
from fsjax.auto.ledger import Ledger
from fsjax.auto.preparation import Part, all_rows, standardise
from fsjax.auto.rankers import SIMPLE
from fsjax.auto.rule import Choice
from fsjax.auto.sparse import Columns

#: Draws the columns and their decoys, and the units of these.
Draw = Callable[[np.random.Generator], tuple[Columns, np.ndarray]]

#: Shares of the budget that may be spent after each of the stages.
DECOY_SHARE, HALVES_SHARE = 0.9, 1.0

#: Pairs of complementary halves, and sets of decoys: for quick methods, and for networks.
PAIRS, SETS = (10, 3), (5, 2)


class Steadiness(NamedTuple):
    """How the columns fare beyond a single ranking.

    Attributes:
      scores: ``(G,)`` importance on all rows.
      order: units by importance, the best first.
      frequency: ``(G,)`` share of halves of the rows that select the unit, NaN where none ran.
      halves: how many ran.
      rates: ``(G,)`` estimated false discovery rate, NaN where no decoys ran.
      sets: of decoys.
      statistic: the method whose importance competed with decoys.
    """

    scores: np.ndarray
    order: np.ndarray
    frequency: np.ndarray
    halves: int
    rates: np.ndarray
    sets: int
    statistic: str


def steadiness(
    problem: Problem,
    choice: Choice,
    statistic: str,
    ledger: Ledger,
    clock: Clock,
    better: bool,
) -> Steadiness:
    """Ranks on all rows, beside decoys, and on complementary halves, as far as time allows.

    Where nothing is better than chance there is no selection to ask about.
    """
    method = choice.method
    scores, order = _on_all_rows(problem, method, choice.size, ledger, clock)
    if not better:
        unknown = np.full(problem.design.num_units, np.nan)
        return Steadiness(scores, order, unknown, 0, unknown, 0, statistic)
    rates, sets = _decoys(problem, statistic, ledger, clock)
    frequency, number = _halves(problem, method, choice.size, ledger, clock)
    return Steadiness(scores, order, frequency, number, rates, sets, statistic)


def decoy_statistic(choice: Choice, means: dict[str, float]) -> str:
    """Whose importance competes with decoys: the path of Lasso, unless it predicts worse.

    Args:
      choice: what was chosen, and the least score that is not worse.
      means: the best mean score of each method.
    """
    for name in ("l1", "forest"):
        if means.get(name, -np.inf) >= choice.threshold:
            return name
    # What a column says by itself is no less linear, and does not see what others say as well.
    return "l1" if choice.method in (ALL, "random", "univariate") else choice.method


def _on_all_rows(
    problem: Problem, method: str, size: int, ledger: Ledger, clock: Clock
) -> tuple[np.ndarray, np.ndarray]:
    if method == ALL:
        method = "univariate"
    clock.tell(f"{method} on all rows")
    made = ledger.get(f"rows/{method}/{size}", lambda: _rank(problem, method, size, None))
    scores = np.array([-np.inf if one is None else one for one in made["scores"]])
    first = np.array(made["order"], int)
    by_score = np.argsort(-scores, kind="stable")
    return scores, np.concatenate([first, by_score[~np.isin(by_score, first)]])


def _halves(
    problem: Problem, method: str, size: int, ledger: Ledger, clock: Clock
) -> tuple[np.ndarray, int]:
    """How often complementary halves select each unit (Shah and Samworth 2013)."""
    units = problem.design.num_units
    if method == ALL or size >= units:
        return np.full(units, np.nan), 0
    counts, number = np.zeros(units), 0
    seconds = _of_a_fold(method, ledger)
    for pair in range(PAIRS[method not in SIMPLE]):
        parts_of = halves(problem.y, problem.task, problem.seed + pair)
        for half, rows in enumerate(parts_of):
            key = f"half/{method}/{size}/{pair}/{half}"
            if key not in ledger and seconds > clock.left(HALVES_SHARE):
                return (counts / number if number else np.full(units, np.nan)), number
            clock.tell(f"{method} on halves of the rows, pair {pair + 1}")
            made = ledger.get(
                key, lambda rows=rows: timed(lambda: _rank(problem, method, size, rows))
            )
            seconds = made["seconds"]
            counts[made["order"][:size]] += 1
            number += 1
    return counts / number, number


def _decoys(
    problem: Problem, statistic: str, ledger: Ledger, clock: Clock
) -> tuple[np.ndarray, int]:
    units = problem.design.num_units
    real: list[Sequence[float]] = []
    decoys: list[Sequence[float]] = []
    part = all_rows(problem.design, problem.y)
    # Made once, and only if a set is not there yet.
    draw = functools.cache(lambda: decoy_model(part.X, problem.design))
    # Twice as many columns take longer.
    seconds = 3 * _of_a_fold(statistic, ledger)
    for number in range(SETS[statistic not in SIMPLE]):
        key = f"decoys/{statistic}/{number}"
        if key not in ledger and seconds > clock.left(DECOY_SHARE):
            break
        clock.tell(f"decoy columns, set {number + 1}")
        made = ledger.get(
            key,
            lambda number=number: timed(
                lambda: _beside_decoys(problem, part, draw(), statistic, number)
            ),
        )
        seconds = made["seconds"]
        values = np.array([0.0 if one is None else one for one in made["scores"]])
        real.append(values[:units])
        decoys.append(values[units:])
    if not real:
        return np.full(units, np.nan), 0
    return false_discovery_rates(np.array(real), np.array(decoys)), len(real)


def _of_a_fold(method: str, ledger: Ledger) -> float:
    """Seconds that a method took for its second fold, which compiled nothing; 0 if not known."""
    key = f"fold/{method}/0/1"
    return ledger[key]["seconds"] if method not in SIMPLE and key in ledger else 0.0


def _beside_decoys(problem: Problem, part: Part, draw: Draw, statistic: str, number: int) -> dict:
    """Importance of the units and of their decoys."""
    X, groups = draw(np.random.default_rng((problem.seed, 11, number)))
    found = ranking(
        statistic,
        Part(*standardise(X), part.y),
        problem.task,
        groups,
        (problem.sizes[-1],),
        problem.seed + number,
    )
    return {"scores": _plain(found.scores)}


def _rank(problem: Problem, method: str, size: int, rows: np.ndarray | None) -> dict:
    part = all_rows(problem.design, problem.y, rows)
    found = ranking(method, part, problem.task, problem.design.groups, (size,), problem.seed)
    return {"scores": _plain(found.scores), "order": found.order[size].tolist()}


def _plain(values: np.ndarray) -> list[float | None]:
    return [float(one) if np.isfinite(one) else None for one in values]
