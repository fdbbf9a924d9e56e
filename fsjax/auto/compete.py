"""All contenders under cross-validation, cheapest first, until the time is spent."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from scipy.sparse import issparse

from fsjax.auto import library
from fsjax.auto.budget import Clock, rounded, timed
from fsjax.auto.columns import Design
from fsjax.auto.ledger import Ledger
from fsjax.auto.models import Metric, judge
from fsjax.auto.preparation import Fold, Part, parts
from fsjax.auto.rankers import SIMPLE, Ranking, rank_units
from fsjax.auto.rule import Scores, standard_error
from fsjax.errors import ConfigError

#: Share of the budget that cross-validation may take.
SHARE = 0.65

#: Numbers of columns that are tried.
GRID = (1, 2, 3, 5, 8, 12, 20, 30, 50, 80, 120)

#: What stands for all columns among the methods.
ALL = "all"

#: These run whatever the time; without them there is no answer.
NEEDED = (ALL, "random", "univariate")

#: Why a method did not take part.
NO_TIME = "left out"

#: Methods behind the best by this many standard errors sit out the later rounds.
_BEHIND = 2.0

#: Seconds of a first and of a further fold at 450 rows and 30 columns, before any was measured.
_GUESS = {
    "icap": (1, 0.2),
    "l1_l21": (1, 0.1),
    "deep_lasso": (4, 0.5),
    "lassonet": (12, 7),
    "binmask": (12, 9),
    "stg": (30, 25),
}

#: Seconds of a forest's fold on a sparse table, by rows and the root of the number of columns.
_SPARSE_FOREST = 3e-5


@dataclass(frozen=True, eq=False)
class Problem:
    """What is asked, checked and prepared.

    Attributes:
      design: the columns as numbers.
      y: as :attr:`fsjax.tasks.Task.check` has it.
      task: what it is.
      metric: how predictions are judged.
      rounds: folds, round by round.
      methods: names of the contenders, cheapest first.
      seed: of all that is random.
      unsuited: methods that would compete as a rule and cannot here, and why.
    """

    design: Design
    y: np.ndarray
    task: str
    metric: Metric
    rounds: list[list[Fold]]
    methods: tuple[str, ...]
    seed: int
    unsuited: dict[str, str] = field(default_factory=dict)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Numbers of columns that are tried."""
        most = self.design.num_units - 1
        return tuple(size for size in GRID if size <= most) or (1,)

    @property
    def folds(self) -> int:
        """Folds of a round."""
        return len(self.rounds[0])


def ranking(
    name: str,
    part: Part,
    task: str,
    groups: np.ndarray,
    sizes: Sequence[int],
    seed: int,
) -> Ranking:
    """Ranks units by a simple selector or a method of the library."""
    if name in SIMPLE:
        return rank_units(SIMPLE[name](part, task, seed), groups, sizes)
    return library.rank(name, part, task, groups, sizes, seed)


def compete(
    problem: Problem, ledger: Ledger, clock: Clock, between: Callable[[], object]
) -> dict[str, str]:
    """Runs what the time allows; the pieces are in the ledger as ``fold/METHOD/ROUND/FOLD``.

    Args:
      problem: what is asked.
      ledger: of what is done.
      clock: the time.
      between: called after the first round of the simple methods, before expensive ones.

    Returns:
      Why, for methods that were left out or did not finish their first round.
    """
    why: dict[str, str] = {}
    everyone = (ALL, *problem.methods)
    simple = [name for name in everyone if name == ALL or name in SIMPLE]
    _round(problem, ledger, clock, 0, simple, why)
    between()
    _round(problem, ledger, clock, 0, [name for name in everyone if name not in simple], why)
    for number in range(1, len(problem.rounds)):
        _round(problem, ledger, clock, number, _still_in(problem, ledger), why)
    return why


def _round(
    problem: Problem,
    ledger: Ledger,
    clock: Clock,
    number: int,
    names: Sequence[str],
    why: dict[str, str],
) -> None:
    """The folds of a round for some methods; those that fail or find no time go to ``why``."""
    folds = problem.rounds[number]
    for name in names:
        if name in why:
            continue
        for place, fold in enumerate(folds):
            key = _key(name, number, place)
            if key in ledger:
                continue
            need = _expected(name, problem, ledger, number, place)
            if number == 0 and name in NEEDED:
                _check_time(ledger, clock)
            elif need > clock.left(SHARE):
                if number == 0:
                    why[name] = f"{NO_TIME}: about {rounded(need)} more were needed"
                break
            clock.tell(
                f"cross-validation, round {number + 1} of {len(problem.rounds)}: {name}, fold "
                f"{place + 1} of {len(folds)}"
            )
            work = partial(_fold, problem, name, fold, place)
            # A method that fails on this table is no reason to lose the others.
            try:
                ledger.get(key, partial(timed, work))
            except (ValueError, np.linalg.LinAlgError) as error:
                why[name] = f"failed{' in a later round' * (number > 0)}: {error}"
                break


def scores_of(problem: Problem, ledger: Ledger) -> dict[tuple[str, int], np.ndarray]:
    """Scores ``(F,)`` over the folds of all rounds, by method and size; NaN where it did not run.

    Methods that did not finish the first round are not among them.
    """
    found: dict[tuple[str, int], np.ndarray] = {}
    places = [(n, p) for n, folds in enumerate(problem.rounds) for p in range(len(folds))]
    for name in (ALL, *problem.methods):
        if any(_key(name, 0, place) not in ledger for place in range(problem.folds)):
            continue
        for index, (number, place) in enumerate(places):
            key = _key(name, number, place)
            if key not in ledger:
                continue
            for size, score in ledger[key]["scores"].items():
                values = found.setdefault((name, int(size)), np.full(len(places), np.nan))
                values[index] = np.nan if score is None else score
    return found


def chance_level(problem: Problem) -> np.ndarray:
    """``(F,)`` what is reached without any column, by fold."""
    return np.array(
        [
            problem.metric.chance(problem.y[fold.train], problem.y[fold.test])
            for folds in problem.rounds
            for fold in folds
        ]
    )


def _still_in(problem: Problem, ledger: Ledger) -> Sequence[str]:
    """Who takes part in later rounds: those that may still win."""
    scores: Scores = scores_of(problem, ledger)
    means = {key: float(np.nanmean(values)) for key, values in scores.items()}
    if not means:
        return ()
    top = max(means, key=lambda key: means[key])
    least = means[top] - _BEHIND * standard_error(scores[top], problem.folds)
    kept = {name for (name, _), mean in means.items() if mean >= least}
    # Those that are needed are for comparison, and they cost little.
    return [name for name in (ALL, *problem.methods) if name in kept or name in NEEDED]


def _fold(problem: Problem, name: str, fold: Fold, place: int) -> dict[str, Any]:
    """Selects on the training rows, judges on the test rows, for every size."""
    design, task, metric = problem.design, problem.task, problem.metric
    train, test = parts(design, problem.y, fold)
    if name == ALL:
        columns = np.arange(len(design.names))
        return {"scores": {design.num_units: _number(judge(metric, task, train, test, columns))}}
    found = ranking(name, train, task, design.groups, problem.sizes, problem.seed + place)
    scores = {
        size: _number(judge(metric, task, train, test, design.columns_of(order)))
        for size, order in found.order.items()
    }
    return {"scores": scores}


def _check_time(ledger: Ledger, clock: Clock) -> None:
    """Raises ConfigError if the budget is spent before there is anything to compare."""
    if clock.left() <= 0:
        raise ConfigError(
            f"the budget of {clock.total:.3g} s is spent before one round of the quickest methods "
            f"is done; choose a longer one, such as {max(60, 10 * round(clock.spent))}s"
            + (" (what is done is kept, the same command goes on)" if ledger.keeps else "")
        )


def _expected(name: str, problem: Problem, ledger: Ledger, number: int, place: int) -> float:
    """Seconds that the rest of the round will need."""
    rest = len(problem.rounds[number]) - place
    first, further = _guess(name, problem)
    if number == 0 and place == 0:
        return (first + rest * further) * _pace(problem, ledger)
    before = _key(name, number, place - 1) if place else _key(name, 0, 1)
    measured = rest * ledger[before]["seconds"] if before in ledger else 0.0
    if number == 0 and place == 1 and name not in SIMPLE:
        # The first fold of a network compiled what the second one only runs.
        return min(measured, rest * further * _pace(problem, ledger))
    return measured


def _guess(name: str, problem: Problem) -> tuple[float, float]:
    """Seconds that compilation, and a fold, should take."""
    rows, columns = len(problem.rounds[0][0].train), len(problem.design.names)
    if name == "forest" and issparse(problem.design.X):
        return 0.0, _SPARSE_FOREST * rows * np.sqrt(columns)
    first, further = _GUESS.get(name, (15, 10) if name not in SIMPLE else (0, 0))
    return first, further * max(0.2, rows / 450) * max(1.0, columns / 100)


def _pace(problem: Problem, ledger: Ledger) -> float:
    """How much longer than guessed first folds of networks take on this machine, as far as seen."""
    found = [
        ledger[key]["seconds"] / sum(_guess(name, problem))
        for name in problem.methods
        if name not in SIMPLE and (key := _key(name, 0, 0)) in ledger
    ]
    return float(np.median(found)) if found else 1.0


def _key(name: str, number: int, place: int) -> str:
    return f"fold/{name}/{number}/{place}"


def _number(value: float) -> float | None:
    """A number for JSON, which has no NaN."""
    return float(value) if np.isfinite(value) else None
