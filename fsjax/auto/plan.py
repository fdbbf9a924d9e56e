"""How large the work may be: which rows, which judge and which numbers of columns fit the time."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from fsjax.auto.budget import Clock
from fsjax.auto.judge import Judge, Tried, choose_judge, judges_of
from fsjax.auto.preparation import parts
from fsjax.auto.problem import Problem, sizes_of
from fsjax.auto.progress_file import Ledger
from fsjax.auto.rankers import SIMPLE
from fsjax.auto.row_sample import on_rows, some_rows

#: Rows that take part in the comparison of methods: as many as there is time for.
ROWS: Final = (10_000, 6_000, 4_000, 2_500, 1_500, 1_000, 600, 300)

#: Numbers that the rows may hold together, as several folds of them are prepared at a time.
_NUMBERS: Final = 10_000_000

#: Rows and columns on which judges are tried, and folds of it for few rows and for others.
_TRIAL_ROWS, _TRIAL_COLUMNS, _TRIAL_FOLDS, _FEW = 1_000, 50, (5, 3), 300

#: Rows, and numbers of columns, that a judge has to leave time for to be chosen.
_LEAST_ROWS, _LEAST_SIZES = 1_500, 6

#: Share of the budget that the judge may take, for so many methods in a round of folds.
_SHARE, _METHODS = 0.3, 8

#: By which power of the rows, and of the columns, the seconds of a judge grow; others by the first.
_GROWTH: Final = {"rbf": 2.0}
_COLUMN_GROWTH: Final = {"rbf": 0.7, "linear": 0.7}


def plan(problem: Problem, user_judge: Judge | None, ledger: Ledger, clock: Clock) -> Problem:
    """The problem as the methods compete for it: fewer rows, a judge, numbers of columns.

    Args:
      problem: what is asked, with all rows.
      user_judge: the user's own, or ``None`` for the one that predicts best.
      ledger: keeps the plan, so that the same work goes on when it is started again.
      clock: the time.
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
    # A judge that would leave but few rows or numbers of columns tells less than a plain one.
    fewest = sizes_of(problem.design.num_units, len(problem.keep), thin=True)[:_LEAST_SIZES]
    grown = max(min(len(problem.y), _LEAST_ROWS) / len(trial.y), 1.0)

    def affordable(judge: Judge, seconds: float) -> bool:
        cost = _cost(judge.name, seconds, fewest, trial.folds, problem, grown, seen)
        return cost <= _SHARE * clock.usable

    candidates = (user_judge,) if user_judge else judges_of(problem.task)
    judge, tried = choose_judge(candidates, problem.task, problem.metric, splits, affordable)
    seconds = {one.name: one.seconds for one in tried}[judge.name]
    rows = len(folds[0].train)
    sizes, most = _fitting(judge, seconds, trial.folds, problem, rows, seen, clock)
    return {
        "rows": most,
        "judge": judge.name,
        "tried": [_plain(one) for one in tried] if len(candidates) > 1 else [],
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
    """The numbers of columns, and of rows, that the judge has time for: rows are given up first."""
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
    """Seconds in which a judge looks at the selections of all methods in a round of folds.

    Args:
      name: of the judge.
      seconds: of one fit in the trial.
      sizes: numbers of columns.
      folds: of a round.
      problem: what is asked.
      grown: rows, as a multiple of those of the trial.
      seen: columns of the trial.
    """
    width = len(problem.design.names) / problem.design.num_units
    power = _COLUMN_GROWTH.get(name, 1.0)
    columns = np.maximum(np.array(sizes) * width / seen, 0.3) ** power
    each = seconds * grown ** _GROWTH.get(name, 1.0)
    everything = max(len(problem.design.names) / seen, 1.0) ** power
    return folds * each * (_METHODS * float(columns.sum()) + everything)


def _plain(trial: Tried) -> list[Any]:
    """A trial as JSON values."""
    score = trial.score if np.isfinite(trial.score) else None
    return [trial.name, trial.words, score, trial.seconds]
