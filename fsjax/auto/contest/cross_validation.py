"""All contenders under cross-validation, cheapest first, until the time is spent."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import chain

import numpy as np

from fsjax.auto.contest import rule
from fsjax.auto.contest.budget import Clock, rounded
from fsjax.auto.contest.expected_time import ExpectedTime
from fsjax.auto.contest.fold_records import NEEDED, FoldKey, FoldRecords, Piece
from fsjax.auto.contest.judged_folds import JudgedFolds
from fsjax.auto.contest.method_names import ALL, RANDOM, of_library, title
from fsjax.auto.contest.problem import Problem, with_kept
from fsjax.auto.contest.progress_file import Ledger, json_number
from fsjax.auto.contest.ranked_units import rank, rank_by_network
from fsjax.auto.contest.rankers import SIMPLE, Ranking, merged_ranking
from fsjax.auto.contest.rule import CONSENSUS, Choice, means_on_common_folds, paired_error

#: Number of networks that run before simple methods for which there was no time at first.
_BEFORE_SIMPLE = 2

#: Beginning of the reason in :attr:`Contest.left_out` if there was no time for a method.
NO_TIME = "was not tried"

#: Methods that are behind the best one by more standard errors of the difference than this do not
#: take part in later rounds.
_BEHIND = 2.0

#: Units of a ranking that are kept for merging it with others.
MERGED = 500


class Contest:
    """Cross-validation of the contenders.

    Args:
      problem: data and settings, with a judge; ValueError without one.
      ledger: records finished work.
      clock: the budget.

    Attributes:
      judge: that of the problem.
      records: what ran in each fold.
      judged: the judges on the folds.
      expected: how long work will take.
      left_out: why methods did not take part or did not finish.
    """

    def __init__(self, problem: Problem, ledger: Ledger, clock: Clock) -> None:
        if problem.judge is None:
            raise ValueError("the problem has no judge yet; fit_to_budget chooses one")
        self.problem, self.ledger, self.clock = problem, ledger, clock
        self.judge = problem.judge
        self.records = FoldRecords(problem, ledger)
        self.judged = JudgedFolds(problem, problem.judge, ledger)
        self.expected = ExpectedTime(problem, self.records, ledger, clock)
        self.left_out: dict[str, str] = {}

    @property
    def late(self) -> list[str]:
        """The methods for which there was no time so far."""
        return [name for name, why in self.left_out.items() if why.startswith(NO_TIME)]

    def judges_of_folds(self) -> Counter[str]:
        """The models that predict, in words, and the number of folds in which each does."""
        folds = [fold for fold in chain(*self.records.folds) if self.records.have(ALL, fold)]
        return Counter(self.judged.judge(fold).words for fold in folds)

    def run_needed(self, share: float) -> None:
        """Runs :data:`NEEDED` fold by fold, because a few folds are enough for a result."""
        for fold in self.records.folds[0]:
            for name in NEEDED:
                if self.clock.left(share) <= self.expected.of_fold(name, fold):
                    return
                self._run(name, fold)

    def run_simple(self, share: float) -> None:
        """Runs the first round of the simple methods, and of their consensus."""
        for name in self.problem.methods:
            if name in SIMPLE and name not in NEEDED:
                self._round(name, 0, share)
        if CONSENSUS in self.problem.methods and self.records.members():
            self.records.keep_members()
            self._round(CONSENSUS, 0, share)

    def run_networks(self, share: float) -> None:
        """Runs the first round of the library's methods.

        Simple ones that had no time before come after the first two, the most promising ones:
        readers compare with them.
        """
        for place, name in enumerate(filter(of_library, self.problem.methods)):
            if place == _BEFORE_SIMPLE:
                self.run_simple(share)
            self._round(name, 0, share)

    def run_left_out(self, reserved: Callable[[str], float]) -> bool:
        """Runs the cheapest of the methods for which there was no time, if there is time now.

        Args:
          reserved: the seconds that will be needed after a method.

        Returns:
          Whether a method finished.
        """
        for name in sorted(self.late, key=self.expected.of_round):
            self._round(name, 0, 1.0 - reserved(name) / self.clock.usable)
            if name not in self.left_out:
                return True
        return False

    def run_further_rounds(self, share: float) -> None:
        """Runs new folds for the methods that may still win."""
        for number in range(1, len(self.problem.rounds)):
            for name in self._still_in():
                if not self._round(name, number, share):
                    return

    def choice(self) -> Choice | None:
        """What the rule says so far, if anything was scored."""
        scores, problem = self.records.scores(), self.problem
        if not scores:
            return None
        return rule.choose(scores, problem.folds, self.records.costs(), problem.metric.margin)

    def _round(self, name: str, number: int, share: float) -> bool:
        """Runs a round of a method; False if time ran out."""
        if not self.left_out.get(name, NO_TIME).startswith(NO_TIME):
            return True
        self.left_out.pop(name, None)
        run = self._run_together if of_library(name) else self._run_folds
        # A method that fails on this table must not end the contest of the others.
        try:
            need = run(name, self.records.folds[number], share)
        except (ValueError, np.linalg.LinAlgError) as error:
            when = " in a later round" if number else ""
            self.left_out[name] = f"failed{when}: {str(error).rstrip('.')}"
            return True
        if need is not None and number == 0:
            self.left_out[name] = (
                f"{NO_TIME}: about {rounded(need)} were needed, more than was left"
            )
        return need is None

    def _run_folds(self, name: str, folds: Sequence[FoldKey], share: float) -> float | None:
        """Runs the folds of a round one by one; returns the seconds that it needs if too many."""
        for place, fold in enumerate(folds):
            if self.records.have(name, fold):
                continue
            rest = [self.expected.of_fold(name, later) for later in folds[place:]]
            # A round starts only if all of it fits, and then continues while the next fold fits.
            if (sum(rest) if place == 0 else rest[0]) > self.clock.left(share):
                return sum(rest)
            self._tell(folds, f"{title(name)}, fold {place + 1} of {len(folds)}")
            self._run(name, fold)
        return None

    def _run_together(self, name: str, folds: Sequence[FoldKey], share: float) -> float | None:
        """Trains a network on all folds of a round; returns the seconds it needs if too many."""
        if all(self.records.have(name, fold) for fold in folds):
            return None
        need = self.expected.of_round(name)
        if need > self.clock.left(share):
            return need
        self._tell(folds, title(name))
        start, expected = time.monotonic(), self.expected.of_ranking(name, len(folds))
        training_parts = [self.judged.parts(fold)[0] for fold in folds]
        rankings = rank_by_network(self.problem, name, training_parts, self.problem.sizes)
        seconds = time.monotonic() - start
        self.expected.learn(name, expected, seconds)
        for fold, ranking in zip(folds, rankings, strict=True):
            self.records.record(name, fold, self._scored(fold, ranking, seconds / len(folds)))
        return None

    def _tell(self, folds: Sequence[FoldKey], text: str) -> None:
        number, rounds = folds[0][0] + 1, len(self.records.folds)
        self.clock.tell(f"cross-validation, round {number} of {rounds}: {text}")

    def _run(self, name: str, fold: FoldKey) -> Piece:
        """The piece of a method in a fold, computed if it is not there yet."""
        piece = self.records.piece(name, fold)
        return self.records.record(name, fold, self._fold(name, fold)) if piece is None else piece

    def _fold(self, name: str, fold: FoldKey) -> Piece:
        """Selects on the training rows and scores on the test rows, for every size."""
        problem, start = self.problem, time.monotonic()
        if name == ALL:
            units = problem.design.num_units
            score = self._score(fold, np.arange(units))
            seconds = time.monotonic() - start
            return {"scores": {str(units): score}, "seconds": seconds, "judging": seconds}
        if name == CONSENSUS:
            orders = [self._run(member, fold)["order"] for member in self.records.members()]
            ranking = with_kept(
                merged_ranking(orders, problem.design.num_units, problem.sizes), problem
            )
        else:
            train, (number, place) = self.judged.parts(fold)[0], fold
            # So that each round draws random columns of its own.
            seed = problem.seed + number * problem.folds + place
            effort = self.expected.effort(name)
            ranking = rank(problem, name, train, problem.sizes, seed, effort)
            expected = self.expected.of_ranking(name)
            self.expected.learn(name, expected, time.monotonic() - start)
        return self._scored(fold, ranking, time.monotonic() - start)

    def _scored(self, fold: FoldKey, ranking: Ranking, seconds: float) -> Piece:
        """The piece of a ranking, scored at every size."""
        start, costs = time.monotonic(), self.problem.costs
        scores = {str(size): self._score(fold, order) for size, order in ranking.order.items()}
        judging = time.monotonic() - start
        return {
            "scores": scores,
            "costs": {
                str(size): float(len(order) if costs is None else costs[order].sum())
                for size, order in ranking.order.items()
            },
            "order": ranking.order[max(ranking.order)][:MERGED].tolist(),
            "seconds": seconds + judging,
            "judging": judging,
        }

    def _score(self, fold: FoldKey, units: np.ndarray) -> float | None:
        """The score of some units, or None if it is not finite; JSON has no NaN."""
        return json_number(self.judged.of(fold, units).score)

    def _still_in(self) -> Sequence[str]:
        """The methods that may still win, and take part in later rounds."""
        scores = self.records.scores()
        allowed = {key: values for key, values in scores.items() if key[0] != RANDOM}
        if not allowed:
            return ()
        means = means_on_common_folds(allowed)
        top = max(means, key=lambda key: means[key])

        def near(key: tuple[str, int]) -> bool:
            behind = scores[top] - scores[key]
            known = behind[~np.isnan(behind)]
            reach = _BEHIND * paired_error(known, self.problem.folds)
            return len(known) > 0 and float(known.mean()) <= reach

        kept = {key[0] for key in allowed if near(key)}
        if CONSENSUS in kept:
            kept.update(self.records.members())
        # NEEDED ones stay for comparison; they cost little.
        return [name for name in (ALL, *self.problem.methods) if name in kept or name in NEEDED]
