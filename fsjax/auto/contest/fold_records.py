"""What the contenders did in each fold: the finished pieces, and the scores and costs in them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import NotRequired, TypedDict

import numpy as np

from fsjax.auto.contest.folds import Fold
from fsjax.auto.contest.method_names import ALL, RANDOM
from fsjax.auto.contest.problem import Problem
from fsjax.auto.contest.progress_file import Ledger
from fsjax.auto.contest.rankers import MEMBERS

#: Methods with which every result is compared. They run first; without them there are no scores.
NEEDED = (ALL, RANDOM, "univariate")

#: Key of the methods whose rankings the consensus merges.
_MEMBERS = "consensus/members"

#: The number of the round of a fold, and its number in the round.
FoldKey = tuple[int, int]


class Piece(TypedDict):
    """The result of one method in one fold, as JSON values.

    Attributes:
      scores: by number of columns, ``None`` where not finite.
      costs: of the columns, by their number.
      order: the units, best first.
      seconds: that it took, with the judge.
      judging: seconds of the judge.
    """

    scores: dict[str, float | None]
    costs: NotRequired[dict[str, float]]
    order: NotRequired[list[int]]
    seconds: float
    judging: float


class FoldRecords:
    """The pieces of all methods; the ledger has them under ``fold/METHOD/ROUND/FOLD``.

    Args:
      problem: data and settings.
      ledger: records finished work.

    Attributes:
      folds: the keys of the folds, round by round.
    """

    def __init__(self, problem: Problem, ledger: Ledger) -> None:
        self._problem, self._ledger = problem, ledger
        self.folds = [
            [(number, place) for place in range(len(folds))]
            for number, folds in enumerate(problem.rounds)
        ]
        self._pieces: dict[tuple[str, FoldKey], Piece] = {
            (name, fold): ledger[_key(name, fold)]
            for name in (ALL, *problem.methods)
            for fold in chain(*self.folds)
            if _key(name, fold) in ledger
        }

    def piece(self, name: str, fold: FoldKey) -> Piece | None:
        """The piece of a method in a fold, or None if it did not run."""
        return self._pieces.get((name, fold))

    def have(self, name: str, fold: FoldKey) -> bool:
        """Whether a method ran in a fold."""
        return (name, fold) in self._pieces

    def record(self, name: str, fold: FoldKey, piece: Piece) -> Piece:
        """Keeps a finished piece, and returns it."""
        kept = self._pieces[name, fold] = self._ledger.get(_key(name, fold), lambda: piece)
        return kept

    def first_round(self, name: str) -> list[Piece]:
        """The finished pieces of a method in the first round, in the order of the folds."""
        pieces = (self.piece(name, fold) for fold in self.folds[0])
        return [piece for piece in pieces if piece is not None]

    def scores(self) -> dict[tuple[str, int], np.ndarray]:
        """Scores ``(F,)`` over the folds of all rounds, by method and size; NaN where none ran.

        Methods that did not finish the first round are left out. If time was up before
        :data:`NEEDED` finished it, only the folds that these share count, and the methods that ran
        on all of these folds.
        """
        pieces, first, every = self._pieces, self.folds[0], list(chain(*self.folds))
        complete = sum(all((name, fold) in pieces for name in NEEDED) for fold in first)
        shared, missing = first[:complete], first[complete:]
        table: dict[tuple[str, int], np.ndarray] = {}
        for name in (ALL, *self._problem.methods):
            if not shared or any((name, fold) not in pieces for fold in shared):
                continue
            for index, fold in enumerate(every):
                piece = pieces.get((name, fold))
                if piece is None or fold in missing:
                    continue
                for size, score in piece["scores"].items():
                    values = table.setdefault((name, int(size)), np.full(len(every), np.nan))
                    values[index] = np.nan if score is None else score
        return {key: values for key, values in table.items() if not np.isnan(values).all()}

    def rounds(self, name: str = "", size: int = 0) -> int:
        """In how many rounds a method has scores of that size in all folds; by default, any."""
        scores = self.scores()
        of = [scores[name, size]] if name else scores.values()
        known = max((int((~np.isnan(values)).sum()) for values in of), default=0)
        return known // self._problem.folds

    def costs(self) -> dict[tuple[str, int], np.ndarray] | None:
        """Costs of the columns ``(F,)``, as :meth:`scores`; ``None`` if all cost the same."""
        problem = self._problem
        if problem.costs is None:
            return None
        every = list(chain(*self.folds))
        table = {(ALL, problem.design.num_units): np.full(len(every), problem.costs.sum())}
        for (name, fold), piece in self._pieces.items():
            for size, cost in piece.get("costs", {}).items():
                values = table.setdefault((name, int(size)), np.full(len(every), np.nan))
                values[every.index(fold)] = cost
        return table

    def members(self) -> tuple[str, ...]:
        """The simple methods whose rankings the consensus merges."""
        if _MEMBERS in self._ledger:
            return tuple(self._ledger[_MEMBERS])
        folds = self._problem.folds
        finished = [
            name
            for name in MEMBERS
            if name in self._problem.methods and len(self.first_round(name)) == folds
        ]
        return tuple(finished) if len(finished) > 1 else ()

    def keep_members(self) -> None:
        """Records the members: a run that is resumed may finish more of them."""
        self._ledger.get(_MEMBERS, lambda: list(self.members()))


def chance_level(problem: Problem) -> np.ndarray:
    """``(F,)`` scores without any column, by fold."""
    return np.array([chance_score(problem, fold) for folds in problem.rounds for fold in folds])


def chance_score(problem: Problem, fold: Fold) -> float:
    """The score without any column in a fold."""
    weights = problem.weights
    of_rows: Sequence[np.ndarray] = ()
    if weights is not None:
        of_rows = (weights[fold.train], weights[fold.test])
    return problem.metric.chance(problem.y[fold.train], problem.y[fold.test], *of_rows)


def _key(name: str, fold: FoldKey) -> str:
    return f"fold/{name}/{fold[0]}/{fold[1]}"
