"""Is it better than chance? The quick methods on the labels as they are, and permuted."""

from __future__ import annotations

import dataclasses
import functools

import numpy as np

from fsjax.auto.budget import Clock, timed
from fsjax.auto.chance import FEW, LEVEL, Chance, above_chance
from fsjax.auto.compete import ALL, Problem, ranking
from fsjax.auto.ledger import Ledger
from fsjax.auto.models import MAX_ROWS, judge
from fsjax.auto.preparation import Fold, Part, parts

#: Share of the budget that may be spent when the first draws end that are made before expensive
#: methods run; when those end without which nothing can be said; and when all end.
EARLY_SHARE, FIRST_SHARE, SHARE = 0.4, 0.9, 0.75

#: Sizes of the grid that are tried, at most.
_SIZES = 4

#: Rows, at most.
_ROWS = min(1000, MAX_ROWS)

#: p-value below which networks and forests, which permutations leave out, are no chance. Where
#: permutations are too few to tell, theirs.
_LEVEL = 0.005

#: A fold of a round, its training rows and its test rows.
Prepared = list[tuple[Fold, Part, Part]]


def chance_test(problem: Problem, ledger: Ledger, clock: Clock, early: bool = False) -> Chance:
    """The best of the quick methods on the labels as they are, and permuted, draw by draw.

    Args:
      problem: what is asked.
      ledger: of what is done.
      clock: the time.
      early: whether only the first draws are made, before expensive methods run.
    """
    small = _fewer_rows(problem)

    @functools.cache
    def prepared() -> Prepared:
        # The columns are the same, whatever the labels.
        return [(fold, *parts(small.design, small.y, fold)) for fold in small.rounds[0]]

    def best(y: np.ndarray) -> dict[str, float]:
        return {"best": _quick_best(small, prepared(), y)}

    found = Chance(ledger.get("chance/real", lambda: best(small.y))["best"], ())
    seconds = 0.0
    while not found.settled and not (early and len(found.draws) >= FEW):
        number = len(found.draws)
        key = f"chance/{number}"
        share = EARLY_SHARE if early else FIRST_SHARE if number < FEW else SHARE
        if key not in ledger and number and seconds > clock.left(share):
            break
        clock.tell(f"permuted labels, draw {number + 1}")
        order = np.random.default_rng((problem.seed, 7, number)).permutation(len(small.y))
        work = functools.partial(best, small.y[order])
        made = ledger.get(key, functools.partial(timed, work))
        seconds = made["seconds"]
        found = found._replace(draws=(*found.draws, made["best"]))
    return found


def better_than_chance(
    chance: Chance, honest: np.ndarray, nothing: np.ndarray, problem: Problem
) -> bool:
    """Whether anything was found: by permuted labels, or by the folds of what the rule chose."""
    fold = problem.rounds[0][0]
    share = len(fold.test) / len(fold.train)
    level = LEVEL if chance.unclear else _LEVEL
    return chance.better or above_chance(honest, nothing, share) < level


def _quick_best(problem: Problem, prepared: Prepared, y: np.ndarray) -> float:
    """The best mean score of the quick methods and all columns over a round of folds."""
    sizes = problem.sizes[:: -(-len(problem.sizes) // _SIZES)]
    found: list[dict[object, float]] = []
    for fold, train, test in prepared:
        train, test = train._replace(y=y[fold.train]), test._replace(y=y[fold.test])
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
    y = problem.y[kept]
    if problem.task == "classification":
        y = np.unique(y, return_inverse=True)[1]
    design = dataclasses.replace(problem.design, X=problem.design.X[kept])
    return dataclasses.replace(problem, design=design, y=y, rounds=[folds])
