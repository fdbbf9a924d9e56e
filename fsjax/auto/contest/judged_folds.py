"""The judges on the folds: prepared rows, and scores of columns, each computed once."""

from __future__ import annotations

import numpy as np

from fsjax.auto.contest.fold_records import FoldKey
from fsjax.auto.contest.folds import parts
from fsjax.auto.contest.judge import Judge, Judged, judged
from fsjax.auto.contest.judge_choice import judge_of_fold
from fsjax.auto.contest.problem import Problem
from fsjax.auto.contest.progress_file import Ledger
from fsjax.auto.contest.rankers.parts import Part

#: Most values of the prepared folds that are kept in memory.
_NUMBERS = 60_000_000


class JudgedFolds:
    """Scores of columns in the folds of a problem.

    Args:
      problem: data and settings.
      judge: the model that predicts, if the problem has no others to choose from.
      ledger: records the choice for each fold.
    """

    def __init__(self, problem: Problem, judge: Judge, ledger: Ledger) -> None:
        self._problem, self._ledger = problem, ledger
        self._judges = {choice.name: choice for choice in problem.judges or (judge,)}
        self._prepared: dict[FoldKey, tuple[Part, Part]] = {}
        self._judged: dict[tuple[FoldKey, bytes], Judged] = {}

    def parts(self, fold: FoldKey) -> tuple[Part, Part]:
        """The prepared training and test rows of a fold; the latest ones are kept in memory."""
        if fold not in self._prepared:
            design = self._problem.design
            most = max(1, int(_NUMBERS / max(design.X.shape[0] * design.X.shape[1], 1)))
            while len(self._prepared) >= most:
                self._prepared.pop(next(iter(self._prepared)))
            number, place = fold
            rows = self._problem.rounds[number][place]
            self._prepared[fold] = parts(design, self._problem.y, rows, self._problem.weights)
        return self._prepared[fold]

    def judge(self, fold: FoldKey) -> Judge:
        """The model that predicts a fold, chosen by its training rows."""
        candidates, (number, place) = tuple(self._judges.values()), fold
        if len(candidates) == 1:
            return candidates[0]

        def work() -> dict[str, str]:
            rows = self._problem.rounds[number][place]
            return {"name": judge_of_fold(self._problem, rows, candidates).name}

        return self._judges[self._ledger.get(f"judge/{number}/{place}", work)["name"]]

    def known(self, fold: FoldKey, units: np.ndarray) -> bool:
        """Whether units were judged in a fold before."""
        return (fold, self._columns(units).tobytes()) in self._judged

    def of(self, fold: FoldKey, units: np.ndarray) -> Judged:
        """The scores of some units in a fold."""
        problem, columns = self._problem, self._columns(units)
        key = (fold, columns.tobytes())
        if key not in self._judged:
            self._judged[key] = judged(
                self.judge(fold), problem.metric, problem.task, *self.parts(fold), columns
            )
        return self._judged[key]

    def _columns(self, units: np.ndarray) -> np.ndarray:
        return self._problem.design.columns_of(units)
