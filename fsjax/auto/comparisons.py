"""The selection against all columns, random ones, and the other methods, paired over test rows.

The selection was chosen as the best on these folds. So each fold compares what the rule chooses
from the other folds of its round. All models predict the test rows again, as only their scores are
recorded; the differences of a row are averaged over the rounds, and their spread between rows, or
groups of rows, gives the interval.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from fsjax.auto import rule, statements
from fsjax.auto.compete import ALL, Contest
from fsjax.auto.differences import Difference, difference, row_difference
from fsjax.auto.folds import parts
from fsjax.auto.judge import fitted
from fsjax.auto.method_names import selected_by
from fsjax.auto.problem import Problem
from fsjax.auto.row_scores import ROW_SCORES
from fsjax.auto.rule import Choice
from fsjax.auto.statements import Comparison
from fsjax.report.wording import count

#: Random columns that each fold compares with; their mean counts.
DRAWS: Final = 5

#: Share of the time that is left which comparisons may take.
_SHARE: Final = 0.3

#: Blocks of neighbouring rows in order of time, which count as dependent.
_BLOCKS: Final = 20

_RANDOM: Final = "random"


class _Place(NamedTuple):
    """A fold, and the choice of the rule from the other folds of its round."""

    number: int
    fold: int
    choice: Choice


def comparisons(contest: Contest, choice: Choice) -> list[Comparison]:
    """The choice against all columns, random ones, and other methods with as many columns.

    What there is no time for is not compared. Metrics that are not sums over rows, and selections
    whose order is not recorded, are compared over the folds.
    """
    if choice.method == ALL:
        return []
    problem, scores = contest.problem, contest.scores()
    units, number = problem.design.num_units, statements.columns(choice.size)
    others = {ALL: f"all {units:,} columns"}
    for name, size in scores:
        if size == choice.size and name not in (ALL, choice.method):
            others[name] = f"{number} {selected_by(name)}"
    others = {
        name: against
        for name, against in others.items()
        if (name, units if name == ALL else choice.size) in scores
    }
    paired_rows = _PairedRows(contest, choice)
    by_row = problem.metric.name in ROW_SCORES and all(map(paired_rows.recorded, others))
    over = _paired_over(problem) if by_row else "the folds"
    rows = []
    for name, against in others.items():
        if by_row:
            paired = paired_rows.against(name)
        else:
            key = (name, units if name == ALL else choice.size)
            paired = difference(scores[choice.method, choice.size], scores[key], problem.share)
        if paired is None:
            continue
        row = Comparison(name, against, paired, paired.verdict(problem.metric.margin), over)
        # All columns and random ones first, then those that come closest.
        rows.append((-np.inf if name in (ALL, _RANDOM) else paired.mean, row))
    return [row for _, row in sorted(rows, key=lambda entry: entry[0])]


def _paired_over(problem: Problem) -> str:
    """What the differences are the mean over, in words."""
    clusters = count(len(problem.y), "row")
    if problem.ordered:
        clusters = f"{_BLOCKS} blocks of {clusters}"
    elif problem.row_groups is not None:
        clusters = f"{len(np.unique(problem.row_groups))} groups of rows"
    rounds = len(problem.rounds)
    return clusters if rounds == 1 else f"{clusters}, in up to {rounds} rounds of cross-validation"


class _PairedRows:
    """Predicts test rows from the columns of the choice and of others, within the time left."""

    def __init__(self, contest: Contest, choice: Choice) -> None:
        problem = contest.problem
        self._contest, self._choice = contest, choice
        self._row_score = ROW_SCORES.get(problem.metric.name)
        left = contest.clock.left()
        self._least = left * (1.0 - _SHARE) if left < np.inf else -np.inf
        self._values: dict[tuple[int, int, bytes], np.ndarray] = {}
        scores = contest.scores()
        margin, folds = problem.metric.margin, problem.folds
        self._places = [
            _Place(number, fold, nested)
            for number in range(len(problem.rounds))
            for fold, nested in enumerate(
                rule.nested_choices(rule.round_scores(scores, folds, number), folds, margin)
            )
            if nested is not None
        ]

    def recorded(self, name: str) -> bool:
        """Whether the units are known that the choices of the first round and a method selected."""
        return all(
            self._units(place, place.choice.method, place.choice.size) is not None
            and self._sets(place, name) is not None
            for place in self._places
            if place.number == 0
        )

    def against(self, name: str) -> Difference | None:
        """The difference from a method; None if there is no time for the first round."""
        problem = self._contest.problem
        total, times = np.zeros(len(problem.y)), np.zeros(len(problem.y), int)
        means: list[float] = []
        for number in range(len(problem.rounds)):
            places = [place for place in self._places if place.number == number]
            if number and any(self._sets(place, name) is None for place in places):
                break
            for place in places:
                if self._contest.clock.left() <= self._least:
                    return None if number == 0 else self._result(total, times, means)
                values = self._difference(place, name)
                if values is None:
                    continue
                rows = problem.rounds[number][place.fold].test
                total[rows] += values
                times[rows] += 1
                means.append(float(values.mean()))
        return self._result(total, times, means)

    def _result(self, total: np.ndarray, times: np.ndarray, means: list[float]) -> Difference:
        values = np.where(times > 0, total / np.maximum(times, 1), np.nan)
        share = self._contest.problem.share
        return row_difference(values, self._clusters(), np.array(means), share)

    def _clusters(self) -> np.ndarray:
        problem = self._contest.problem
        rows = np.arange(len(problem.y))
        if problem.ordered:
            return rows * _BLOCKS // len(rows)
        return rows if problem.row_groups is None else problem.row_groups

    def _difference(self, place: _Place, name: str) -> np.ndarray | None:
        """Differences of the test rows ``(n,)`` of a fold."""
        units = self._units(place, place.choice.method, place.choice.size)
        sets = self._sets(place, name)
        if units is None or sets is None:
            return None
        return self._scored(place, units) - np.mean(
            [self._scored(place, other) for other in sets], axis=0
        )

    def _sets(self, place: _Place, name: str) -> list[np.ndarray] | None:
        """The units of a method, as many as are chosen; for random ones several draws."""
        problem = self._contest.problem
        size = self._choice.size if place.choice.method == ALL else place.choice.size
        if name != _RANDOM:
            units = self._units(place, name, size)
            return None if units is None else [units]
        kept = np.array(problem.keep, int)
        others = np.setdiff1d(np.arange(problem.design.num_units), kept)
        draws = []
        for draw in range(DRAWS):
            rng = np.random.default_rng((problem.seed, place.number, place.fold, draw))
            drawn = rng.choice(others, max(size - len(kept), 0), replace=False)
            draws.append(np.concatenate([kept, drawn]))
        return draws

    def _units(self, place: _Place, name: str, size: int) -> np.ndarray | None:
        """The units that a method selected in a fold; None if they are not recorded."""
        if name == ALL:
            return np.arange(self._contest.problem.design.num_units)
        piece = self._contest.piece(name, (place.number, place.fold))
        if piece is None or len(piece["order"]) < size:
            return None
        return np.array(piece["order"][:size], int)

    def _scored(self, place: _Place, units: np.ndarray) -> np.ndarray:
        """The parts of the test rows ``(n,)`` of a fold in the score."""
        problem = self._contest.problem
        columns = problem.design.columns_of(np.sort(units))
        key = (place.number, place.fold, columns.tobytes())
        if key not in self._values:
            fold = problem.rounds[place.number][place.fold]
            train, test = parts(problem.design, problem.y, fold)
            model, X = fitted(self._contest.judge, problem.task, train, test, columns)
            assert self._row_score is not None
            self._values[key] = self._row_score(model, X, test.y, problem.y)
        return self._values[key]
