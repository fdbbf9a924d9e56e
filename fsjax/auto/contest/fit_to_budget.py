"""Fits the work to the budget: number of rows, judge, and numbers of columns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from fsjax.auto.contest import schedule
from fsjax.auto.contest.budget import Clock
from fsjax.auto.contest.judge import Judge, Tried, choose_judge, judges_of
from fsjax.auto.contest.judge_choice import TRIAL_COLUMNS, TRIAL_ROWS, trial_splits
from fsjax.auto.contest.problem import Problem, on_rows, representative_rows, sizes_of
from fsjax.auto.contest.progress_file import Ledger, json_number

#: Numbers of rows on which methods are compared: the largest that there is time for.
ROWS: Final = (10_000, 6_000, 4_000, 2_500, 1_500, 1_000, 600, 300)

#: Most values of the compared rows; several folds of them are in memory at a time.
_NUMBERS: Final = 10_000_000

#: Folds in which judges are tried for few and for many rows, and the number that counts as many.
_TRIAL_FOLDS, _FEW = (5, 3), 300

#: Rows, and numbers of columns, that a judge must have time for to be chosen.
_MIN_ROWS, _MIN_SIZES = 1_500, 6

#: Methods of a round of folds.
_METHODS = 8

#: Power of the rows, and of the columns, by which the seconds of a judge grow; 1 by default.
_GROWTH: Final = {"rbf": 2.0}
_COLUMN_GROWTH: Final = {"rbf": 0.7, "linear": 0.7}


def fit_to_budget(
    problem: Problem, user_judge: Judge | None, ledger: Ledger, clock: Clock
) -> Problem:
    """The problem as methods compete on it: perhaps fewer rows, judges, and numbers of columns.

    Args:
      problem: data and settings, with all rows.
      user_judge: the user's own judge, or ``None`` for the one that predicts best.
      ledger: records the plan, so that a resumed run does the same work.
    """
    record = ledger.get("plan", lambda: _make(problem, user_judge, clock))
    sample = on_rows(problem, representative_rows(problem, record["rows"]))
    judges = {
        judge.name: judge for judge in (user_judge, *judges_of(problem.task)) if judge is not None
    }
    return sample.replace(
        judge=judges[record["judge"]],
        judges=tuple(judges[name] for name in record.get("judges", [record["judge"]])),
        tried=tuple(Tried(*fields) for fields in record["tried"]),
        sizes=tuple(record["sizes"]),
    )


def _make(problem: Problem, user_judge: Judge | None, clock: Clock) -> dict[str, Any]:
    """The plan as JSON values."""
    trial = on_rows(problem, representative_rows(problem, TRIAL_ROWS))
    folds = trial.rounds[0][-_TRIAL_FOLDS[len(trial.y) >= _FEW] :]
    splits = trial_splits(trial, folds)
    num_columns, units = len(problem.design.names), problem.design.num_units
    seen = min(TRIAL_COLUMNS, num_columns)
    # A judge with time for only a few rows or numbers of columns is worth less than a plain one.
    fewest = sizes_of(units, len(problem.keep), thin=True)[:_MIN_SIZES]
    most_grown = max(min(len(problem.y), _MIN_ROWS) / len(trial.y), 1.0)

    def affordable(
        judge: Judge,
        seconds: float,
        sizes: tuple[int, ...] = fewest,
        grown: float = most_grown,
    ) -> bool:
        """Whether there is time for the selections of all methods in a round of folds.

        ``seconds`` are those of a fit in the trial, whose rows are multiplied by ``grown``.
        """
        power = _COLUMN_GROWTH.get(judge.name, 1.0)
        columns = np.maximum(np.array(sizes) * (num_columns / units) / seen, 0.3) ** power
        seconds_per_fit = seconds * grown ** _GROWTH.get(judge.name, 1.0)
        all_columns = max(num_columns / seen, 1.0) ** power
        fits = _METHODS * float(columns.sum()) + all_columns
        return trial.folds * seconds_per_fit * fits <= schedule.JUDGE * clock.usable

    candidates = (user_judge,) if user_judge else judges_of(problem.task)
    judge, tried = choose_judge(candidates, problem.task, problem.metric, splits, affordable)
    seconds = {result.name: result.seconds for result in tried}

    def fits(sizes: tuple[int, ...], rows: int, judge: Judge = judge) -> bool:
        grown = rows * (trial.folds - 1) / trial.folds / len(folds[0].train)
        return affordable(judge, seconds[judge.name], sizes, max(grown, 0.3))

    sizes, rows = _fitting(problem, fits)
    scored = {result.name for result in tried if not np.isnan(result.score)}
    fitting = [
        choice.name
        for choice in candidates
        if choice == judge or (choice.name in scored and fits(sizes, rows, choice))
    ]
    return {
        "rows": rows,
        "judge": judge.name,
        "judges": fitting,
        "tried": [
            [trial.name, trial.words, json_number(trial.score), trial.seconds]
            for trial in (tried if len(candidates) > 1 else ())
        ],
        "sizes": list(sizes),
    }


def _fitting(
    problem: Problem, fits: Callable[[tuple[int, ...], int], bool]
) -> tuple[tuple[int, ...], int]:
    """Numbers of columns, and rows, that the judge has time for: rows are reduced first."""
    units, kept = problem.design.num_units, len(problem.keep)
    available = min(len(problem.y), max(_NUMBERS // len(problem.design.names), ROWS[-1]))
    counts = [count for count in ROWS if count < available] or [available]
    if available <= ROWS[0]:
        counts = [available, *(count for count in counts if count < available)]
    for thin in (False, True):
        sizes = sizes_of(units, kept, thin)
        for count in counts:
            if (thin or count >= min(available, _MIN_ROWS)) and fits(sizes, count):
                return sizes, count
    count = min(available, ROWS[-1])
    while len(sizes) > 3 and not fits(sizes, count):
        sizes = sizes[:-1]
    return sizes, count
