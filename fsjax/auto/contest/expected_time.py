"""How long rankings and folds will take: measured costs, and the pace of this machine."""

from __future__ import annotations

import numpy as np

from fsjax.auto.contest import network_settings
from fsjax.auto.contest.budget import Clock, Pace
from fsjax.auto.contest.fold_records import FoldKey, FoldRecords
from fsjax.auto.contest.method_names import ALL, of_library
from fsjax.auto.contest.problem import Problem
from fsjax.auto.contest.progress_file import Ledger
from fsjax.auto.contest.rankers import SIMPLE, expected_seconds
from fsjax.auto.contest.rule import CONSENSUS
from fsjax.auto.contest.schedule import SIMPLE_METHOD

#: Least effort of a simple method; a method that takes too long even then is left out.
_MIN_EFFORT = 0.1

#: Rankings of a fold that take as long as that of all rows and twice as many columns, where columns
#: and decoys are correlated (spectra, pictures), and seconds of the model of decoys by columns^3.
_DECOYS, _MODEL = 6.0, 5e-9


class ExpectedTime:
    """Expected seconds of the work of the contenders.

    Args:
      problem: data and settings.
      records: of the folds that ran.
      ledger: records the effort of each method.
      clock: the budget.
    """

    def __init__(
        self, problem: Problem, records: FoldRecords, ledger: Ledger, clock: Clock
    ) -> None:
        self._problem, self._records = problem, records
        self._ledger, self._clock = ledger, clock
        self._pace = Pace()
        self._compiled: set[str] = set()

    def learn(self, name: str, expected: float, seconds: float) -> None:
        """Compares the seconds that a ranking took with those that were expected."""
        self._pace.record(name, expected, seconds)
        if of_library(name):
            self._compiled.add(name)

    def effort(self, name: str) -> float:
        """The effort in (0, 1] at which a simple method runs; a resumed run keeps it."""

        def chosen() -> float:
            share = SIMPLE_METHOD * self._clock.usable / self._problem.folds
            full = self._simple(name, 1.0) * self._pace.of(name)
            return float(np.clip(share / full, _MIN_EFFORT, 1.0)) if full > 0 else 1.0

        return self._ledger.get(f"effort/{name}", chosen) if name in SIMPLE else 1.0

    def of_one(self, name: str) -> float:
        """Seconds that a simple method takes to rank the training rows of a fold.

        As measured, or as expected on this machine if it has not run.
        """
        if name == CONSENSUS:
            return sum(self.of_one(member) for member in self._records.members())
        pieces = self._records.first_round(name)
        seconds = [piece["seconds"] - piece["judging"] for piece in pieces]
        if not seconds and name in SIMPLE:
            return self.of_ranking(name) * self._pace.of(name)
        # The median: a single fold may have had to wait for the processor.
        return float(np.median(seconds)) if seconds else 0.0

    def of_decoys(self, *names: str, count: int = 1) -> float:
        """Seconds of the model of decoys, and of rankings beside them by some simple methods."""
        model = _MODEL * self._shape()[1] ** 3 * self._pace.of("decoys")
        return model + count * _DECOYS * sum(map(self.of_one, names))

    def of_rankings(self, name: str, count: int) -> float:
        """Seconds that a method takes for ``count`` rankings of other rows than those of the folds.

        Networks train them together, by a program of their own that is compiled first.
        """
        if of_library(name):
            expected = network_settings.network_seconds(name, *self._shape(), count)
            return expected * self._pace.of(name)
        return count * self.of_one(name)

    def of_ranking(self, name: str, folds: int = 1) -> float:
        """Seconds of a ranking, or of several folds together, on an idle machine."""
        if name in SIMPLE:
            return self._simple(name, self.effort(name))
        compiled = name in self._compiled
        return network_settings.network_seconds(name, *self._shape(), folds, kept=compiled)

    def of_judge(self) -> float:
        """Seconds that the judge takes for a fold of a method, as measured."""
        records = self._records
        seen = [
            piece["judging"]
            for name in self._problem.methods
            for piece in records.first_round(name)
        ]
        # The median: a single fold may have had to wait for the processor.
        return float(np.median(seen[-5:])) if seen else 0.0

    def of_fold(self, name: str, fold: FoldKey) -> float:
        """Seconds of a fold of a method on this machine, as busy as it is now; 0 if it ran."""
        records = self._records
        if records.have(name, fold):
            return 0.0
        if name == ALL:
            seconds = [piece["seconds"] for piece in records.first_round(ALL)]
            return float(np.median(seconds or [0.0]))
        if name == CONSENSUS:
            return self.of_judge() + sum(self.of_fold(member, fold) for member in records.members())
        return self.of_judge() + self.of_ranking(name) * self._pace.of(name)

    def of_round(self, name: str) -> float:
        """Seconds of the rest of the first round of a method."""
        if not of_library(name):
            return sum(self.of_fold(name, fold) for fold in self._records.folds[0])
        folds = self._problem.folds
        return self.of_ranking(name, folds) * self._pace.of(name) + folds * self.of_judge()

    def _simple(self, name: str, effort: float) -> float:
        y = self._problem.y
        outputs = 1 if y.ndim == 1 else y.shape[1]
        if self._problem.task == "classification":
            outputs = int(y.max()) + 1
        return expected_seconds(name, *self._shape(), outputs, effort)

    def _shape(self) -> tuple[int, int]:
        """Numbers of training rows in a fold, and of columns."""
        return len(self._problem.rounds[0][0].train), len(self._problem.design.names)
