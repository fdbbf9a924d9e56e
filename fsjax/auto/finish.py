"""After the choice: is it chance, how steady are the columns, how many of them are false."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from fsjax.auto.budget import Clock, timed
from fsjax.auto.chance import Chance, above_chance
from fsjax.auto.compete import ALL, Problem, ranking
from fsjax.auto.discoveries import decoy_model, false_discovery_rates
from fsjax.auto.folds import halves
from fsjax.auto.ledger import Ledger
from fsjax.auto.models import MAX_ROWS, judge
from fsjax.auto.preparation import Fold, Part, all_rows, parts
from fsjax.auto.rankers import SIMPLE
from fsjax.auto.rule import Choice

#: Draws the columns and their decoys, and the units of these.
Draw = Callable[[np.random.Generator], tuple[np.ndarray, np.ndarray]]

#: Shares of the budget that may be spent after each of the stages.
CHANCE_SHARE, DECOY_SHARE, HALVES_SHARE = 0.75, 0.9, 1.0

#: Pairs of complementary halves, and sets of decoys: for quick methods, and for networks.
PAIRS, SETS = (10, 3), (5, 2)

#: Sizes of the grid that permuted labels are tried with, at most.
_SIZES = 4

#: Rows that permuted labels are tried on, at most.
_ROWS = min(1000, MAX_ROWS)

#: p-value below which networks and forests, which permutations leave out, are no chance.
_LEVEL = 0.005


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


def chance_test(problem: Problem, ledger: Ledger, clock: Clock) -> Chance:
    """The best of the quick methods on the labels as they are, and permuted, draw by draw."""
    small = _fewer_rows(problem)
    real = ledger.get("chance/real", lambda: {"best": _quick_best(small, small.y)})["best"]
    found = Chance(real, ())
    seconds = 0.0
    while not found.settled:
        number = len(found.draws)
        key = f"chance/{number}"
        if key not in ledger and number and seconds > clock.left(CHANCE_SHARE):
            break
        clock.tell(f"permuted labels, draw {number + 1}")
        order = np.random.default_rng((problem.seed, 7, number)).permutation(len(small.y))
        made = ledger.get(
            key, lambda order=order: timed(lambda: {"best": _quick_best(small, small.y[order])})
        )
        seconds = made["seconds"]
        found = found._replace(draws=(*found.draws, made["best"]))
    return found


def better_than_chance(
    chance: Chance, honest: np.ndarray, level: np.ndarray, problem: Problem
) -> bool:
    """Whether anything was found: by permuted labels, or by the folds of what the rule chose."""
    fold = problem.rounds[0][0]
    share = len(fold.test) / len(fold.train)
    return chance.better or above_chance(honest, level, share) < _LEVEL


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


def _quick_best(problem: Problem, y: np.ndarray) -> float:
    """The best mean score of the quick methods and all columns over a round of folds."""
    step = -(-len(problem.sizes) // _SIZES)
    sizes = problem.sizes[::step]
    found: list[dict[object, float]] = []
    for fold in problem.rounds[0]:
        train, test = parts(problem.design, y, fold)
        scores: dict[object, float] = {}
        for name in ("univariate", "l1"):
            ranked = ranking(name, train, problem.task, problem.design.groups, sizes, problem.seed)
            for size, order in ranked.order.items():
                columns = problem.design.columns_of(order)
                scores[name, size] = judge(problem.metric, problem.task, train, test, columns)
        everything = np.arange(len(problem.design.names))
        scores[ALL] = judge(problem.metric, problem.task, train, test, everything)
        found.append(scores)
    return max(float(np.nanmean([one[key] for one in found])) for key in found[0])


def _fewer_rows(problem: Problem) -> Problem:
    """The problem on some of the rows, where there are many."""
    if len(problem.y) <= _ROWS:
        return problem
    kept = np.sort(np.random.default_rng(problem.seed).permutation(len(problem.y))[:_ROWS])
    new = np.full(len(problem.y), -1)
    new[kept] = np.arange(len(kept))
    folds = [Fold(*(new[part][new[part] >= 0] for part in fold)) for fold in problem.rounds[0]]
    design = problem.design.__class__(**{**problem.design.__dict__, "X": problem.design.X[kept]})
    y = problem.y[kept]
    if problem.task == "classification":
        y = np.unique(y, return_inverse=True)[1]
    return Problem(design, y, problem.task, problem.metric, [folds], problem.methods, problem.seed)


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
    deviation = X.std(axis=0)
    scaled = (X - X.mean(axis=0)) / np.where(deviation > 0, deviation, 1.0)
    found = ranking(
        statistic,
        Part(scaled, part.y),
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
