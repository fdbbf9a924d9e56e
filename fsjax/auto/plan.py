"""Fits the work to the budget: number of rows, judge, and numbers of columns."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from fsjax.auto.budget import Clock
from fsjax.auto.judge import Judge, Tried, choose_judge, judges_of
from fsjax.auto.preparation import parts
from fsjax.auto.problem import Problem, on_rows, sizes_of, some_rows
from fsjax.auto.progress_file import Ledger
from fsjax.auto.rankers import SIMPLE

#: Numbers of rows on which methods are compared: the largest that there is time for.
ROWS: Final = (10_000, 6_000, 4_000, 2_500, 1_500, 1_000, 600, 300)

#: Most values of the compared rows; several folds of them are in memory at a time.
_NUMBERS: Final = 10_000_000

#: Most rows and columns on which judges are tried, their folds for few and for many rows, and the
#: number of rows that counts as many.
_TRIAL_ROWS, _TRIAL_COLUMNS, _TRIAL_FOLDS, _FEW = 1_000, 50, (5, 3), 300

#: Rows, and numbers of columns, that a judge must have time for to be chosen.
_LEAST_ROWS, _LEAST_SIZES = 1_500, 6

#: Share of the budget that the judge may take in a round of folds, and the methods of a round.
_SHARE, _METHODS = 0.3, 8

#: Power of the rows, and of the columns, by which the seconds of a judge grow; 1 by default.
_GROWTH: Final = {"rbf": 2.0}
_COLUMN_GROWTH: Final = {"rbf": 0.7, "linear": 0.7}


def plan(problem: Problem, user_judge: Judge | None, ledger: Ledger, clock: Clock) -> Problem:
    """The problem as methods compete on it: perhaps fewer rows, a judge, and numbers of columns.

    Args:
      problem: what is asked, with all rows.
      user_judge: the user's own judge, or ``None`` for the one that predicts best.
      ledger: records the plan, so that a resumed run does the same work.
      clock: the budget.
    """
    record = ledger.get("plan", lambda: _make(problem, user_judge, clock))
    sample = on_rows(problem, some_rows(problem, record["rows"]))
    judges = {
        judge.name: judge for judge in (user_judge, *judges_of(problem.task)) if judge is not None
    }
    return sample.replace(
        judge=judges[record["judge"]],
        tried=tuple(Tried(*fields) for fields in record["tried"]),
        sizes=tuple(record["sizes"]),
    )


def _make(problem: Problem, user_judge: Judge | None, clock: Clock) -> dict[str, Any]:
    trial = on_rows(problem, some_rows(problem, _TRIAL_ROWS))
    folds = trial.rounds[0][-_TRIAL_FOLDS[len(trial.y) >= _FEW] :]
    splits = []
    for fold in folds:
        train, test = parts(trial.design, trial.y, fold)
        scores = SIMPLE["univariate"](train, problem.task, problem.seed, 1.0)
        columns = np.sort(np.argsort(-scores, kind="stable")[:_TRIAL_COLUMNS])
        splits.append((train, test, columns))
    seen = min(_TRIAL_COLUMNS, len(problem.design.names))
    # A judge with time for only a few rows or numbers of columns is worth less than a plain one.
    fewest = sizes_of(problem.design.num_units, len(problem.keep), thin=True)[:_LEAST_SIZES]
    grown = max(min(len(problem.y), _LEAST_ROWS) / len(trial.y), 1.0)

    def affordable(judge: Judge, seconds: float) -> bool:
        cost = _cost(judge.name, seconds, fewest, trial.folds, problem, grown, seen)
        return cost <= _SHARE * clock.usable

    candidates = (user_judge,) if user_judge else judges_of(problem.task)
    judge, tried = choose_judge(candidates, problem.task, problem.metric, splits, affordable)
    seconds = {trial.name: trial.seconds for trial in tried}[judge.name]
    rows = len(folds[0].train)
    sizes, most = _fitting(judge, seconds, trial.folds, problem, rows, seen, clock)
    return {
        "rows": most,
        "judge": judge.name,
        "tried": [_plain(trial) for trial in tried] if len(candidates) > 1 else [],
        "sizes": list(sizes),
    }


def _fitting(
    judge: Judge,
    seconds: float,
    folds: int,
    problem: Problem,
    rows: int,
    seen: int,
    clock: Clock,
) -> tuple[tuple[int, ...], int]:
    """Numbers of columns, and rows, that the judge has time for: rows are reduced first."""
    units, kept = problem.design.num_units, len(problem.keep)
    available = min(len(problem.y), max(_NUMBERS // len(problem.design.names), ROWS[-1]))
    most = [count for count in ROWS if count < available] or [available]
    if available <= ROWS[0]:
        most = [available, *(count for count in most if count < available)]
    for thin in (False, True):
        sizes = sizes_of(units, kept, thin)
        for count in most:
            if thin or count >= min(available, _LEAST_ROWS):
                grown = max(count * (folds - 1) / folds / rows, 0.3)
                if _cost(judge.name, seconds, sizes, folds, problem, grown, seen) <= (
                    _SHARE * clock.usable
                ):
                    return sizes, count
    sizes = sizes_of(units, kept, thin=True)
    count = min(available, max(ROWS[-1], 1))
    grown = max(count * (folds - 1) / folds / rows, 0.3)
    while len(sizes) > 3 and (
        _cost(judge.name, seconds, sizes, folds, problem, grown, seen) > _SHARE * clock.usable
    ):
        sizes = sizes[:-1]
    return sizes, count


def _cost(
    name: str,
    seconds: float,
    sizes: tuple[int, ...],
    folds: int,
    problem: Problem,
    grown: float,
    seen: int,
) -> float:
    """Seconds that a judge takes for the selections of all methods in a round of folds.

    Args:
      name: of the judge.
      seconds: of one fit in the trial.
      sizes: numbers of columns.
      folds: number of folds in a round.
      problem: what is asked.
      grown: number of rows, as a multiple of those of the trial.
      seen: number of columns of the trial.
    """
    width = len(problem.design.names) / problem.design.num_units
    power = _COLUMN_GROWTH.get(name, 1.0)
    columns = np.maximum(np.array(sizes) * width / seen, 0.3) ** power
    seconds_per_fit = seconds * grown ** _GROWTH.get(name, 1.0)
    everything = max(len(problem.design.names) / seen, 1.0) ** power
    return folds * seconds_per_fit * (_METHODS * float(columns.sum()) + everything)


def _plain(trial: Tried) -> list[Any]:
    """A trial as JSON values."""
    score = trial.score if np.isfinite(trial.score) else None
    return [trial.name, trial.words, score, trial.seconds]
