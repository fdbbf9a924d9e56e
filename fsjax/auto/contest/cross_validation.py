"""All contenders under cross-validation, cheapest first, until the time is spent."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any

import numpy as np

from fsjax.auto.contest import network_settings
from fsjax.auto.contest.budget import Clock, Pace, rounded
from fsjax.auto.contest.folds import Fold, parts
from fsjax.auto.contest.judge import Judged, judged
from fsjax.auto.contest.method_names import title
from fsjax.auto.contest.problem import Problem, with_kept
from fsjax.auto.contest.progress_file import Ledger, json_number
from fsjax.auto.contest.ranked_units import rank, rank_by_network
from fsjax.auto.contest.rankers import MEMBERS, SIMPLE, Ranking, expected_seconds, merged_ranking
from fsjax.auto.contest.rankers.parts import Part
from fsjax.auto.contest.rule import CONSENSUS, FoldScores, means_on_common_folds, paired_error

#: Name of the selection of all columns among the methods.
ALL = "all"

#: Name of the selection of random columns among the methods.
RANDOM = "random"

#: Methods with which every result is compared. They run first; without them there are no scores.
NEEDED = (ALL, RANDOM, "univariate")

#: Number of networks that run before simple methods for which there was no time at first.
_BEFORE_SIMPLE = 2

#: Beginning of the reason in :attr:`Contest.left_out` if there was no time for a method.
NO_TIME = "was not tried"

#: Methods that are behind the best one by more standard errors of the difference than this do not
#: take part in later rounds.
_BEHIND = 2.0

#: Share of the budget that a round of one simple method may take; its effort is reduced to fit.
_SIMPLE_SHARE = 0.06

#: Least effort of a simple method; a method that takes too long even then is left out.
_MIN_EFFORT = 0.1

#: Units of a ranking that are kept for merging it with others.
MERGED = 500

#: Key of the methods whose rankings the consensus merges.
_MEMBERS = "consensus/members"

#: Most values of the prepared folds that are kept in memory.
_NUMBERS = 60_000_000

#: The number of the round of a fold, and its number in the round.
FoldKey = tuple[int, int]


class Contest:
    """Cross-validation of the contenders.

    A piece is the result of one method in one fold: its scores by number of columns, its order of
    the units, and the seconds that it took. The ledger records it under ``fold/METHOD/ROUND/FOLD``.

    Args:
      problem: data and settings, with a judge; ValueError without one.
      ledger: records finished work.
      clock: the budget.

    Attributes:
      judge: that of the problem.
      left_out: why methods did not take part or did not finish.
    """

    def __init__(self, problem: Problem, ledger: Ledger, clock: Clock) -> None:
        if problem.judge is None:
            raise ValueError("the problem has no judge yet; fit_to_budget chooses one")
        self.problem, self.ledger, self.clock = problem, ledger, clock
        self.judge = problem.judge
        self.left_out: dict[str, str] = {}
        self._pace = Pace()
        self._prepared: dict[FoldKey, tuple[Part, Part]] = {}
        self._judged: dict[tuple[FoldKey, bytes], Judged] = {}
        self._compiled: set[str] = set()
        self._folds = [
            [(number, place) for place in range(len(folds))]
            for number, folds in enumerate(problem.rounds)
        ]
        self._pieces: dict[tuple[str, FoldKey], dict[str, Any]] = {
            (name, fold): ledger[_key(name, fold)]
            for name in (ALL, *problem.methods)
            for fold in chain(*self._folds)
            if _key(name, fold) in ledger
        }

    @property
    def late(self) -> list[str]:
        """The methods for which there was no time so far."""
        return [name for name, why in self.left_out.items() if why.startswith(NO_TIME)]

    def run_needed(self) -> None:
        """Runs :data:`NEEDED` fold by fold, because a few folds are enough for a result."""
        for fold in self._folds[0]:
            for name in NEEDED:
                if self.clock.left() <= self._need(name, fold):
                    return
                self._run(name, fold)

    def run_simple(self, share: float) -> None:
        """Runs the first round of the simple methods, and of their consensus."""
        for name in self.problem.methods:
            if name in SIMPLE and name not in NEEDED:
                self._round(name, 0, share)
        if CONSENSUS in self.problem.methods and self.members():
            # A run that is resumed may finish more of them; the consensus stays as it is.
            self.ledger.get(_MEMBERS, lambda: list(self.members()))
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
        for name in sorted(self.late, key=self._need_of_round):
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

    def scores(self) -> dict[tuple[str, int], np.ndarray]:
        """Scores ``(F,)`` over the folds of all rounds, by method and size; NaN where none ran.

        Methods that did not finish the first round are left out. If time was up before
        :data:`NEEDED` finished it, only the folds that these share count, and the methods that ran
        on all of these folds.
        """
        pieces, first, every = self._pieces, self._folds[0], list(chain(*self._folds))
        complete = sum(all((name, fold) in pieces for name in NEEDED) for fold in first)
        shared, missing = first[:complete], first[complete:]
        table: dict[tuple[str, int], np.ndarray] = {}
        for name in (ALL, *self.problem.methods):
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

    def costs(self) -> dict[tuple[str, int], float]:
        """Cost of the columns of each method and size, the mean over the first round of folds."""
        problem = self.problem
        table: dict[tuple[str, int], list[float]] = {}
        for name in problem.methods:
            for piece in self._first_round(name):
                for size, cost in piece["costs"].items():
                    table.setdefault((name, int(size)), []).append(cost)
        total = problem.design.num_units if problem.costs is None else float(problem.costs.sum())
        everything = {(ALL, problem.design.num_units): float(total)}
        return {**{key: float(np.mean(costs)) for key, costs in table.items()}, **everything}

    def chance_level(self) -> np.ndarray:
        """``(F,)`` scores without any column, by fold."""
        problem = self.problem
        return np.array([chance_score(problem, fold) for folds in problem.rounds for fold in folds])

    def seconds_of(self, name: str) -> float:
        """Seconds that a method takes to rank the training rows of a fold, as measured."""
        if name == CONSENSUS:
            return sum(self.seconds_of(member) for member in self.members())
        seconds = [piece["seconds"] - piece["judging"] for piece in self._first_round(name)]
        # The median: the first fold of a network includes its compilation.
        return float(np.median(seconds)) if seconds else 0.0

    def seconds_of_rankings(self, name: str, count: int) -> float:
        """Seconds that a method takes for ``count`` rankings of other rows than those of the folds.

        Networks train them together, by a program of their own that is compiled first.
        """
        if of_library(name):
            rows, columns = self._shape()
            expected = network_settings.network_seconds(name, rows, columns, count)
            return expected * self._pace.of(name)
        return count * self.seconds_of(name)

    def effort(self, name: str) -> float:
        """The effort in (0, 1] at which a simple method runs; a resumed run keeps it."""

        def chosen() -> float:
            share = _SIMPLE_SHARE * self.clock.usable / self.problem.folds
            full = self._expected_simple(name, 1.0) * self._pace.of(name)
            return float(np.clip(share / full, _MIN_EFFORT, 1.0)) if full > 0 else 1.0

        return self.ledger.get(f"effort/{name}", chosen) if name in SIMPLE else 1.0

    def members(self) -> tuple[str, ...]:
        """The simple methods whose rankings the consensus merges."""
        if _MEMBERS in self.ledger:
            return tuple(self.ledger[_MEMBERS])
        folds = self.problem.folds
        finished = [
            name
            for name in MEMBERS
            if name in self.problem.methods and len(self._first_round(name)) == folds
        ]
        return tuple(finished) if len(finished) > 1 else ()

    def piece(self, name: str, fold: FoldKey) -> dict[str, Any] | None:
        """The piece of a method in a fold, or None if it did not run."""
        return self._pieces.get((name, fold))

    def _first_round(self, name: str) -> list[dict[str, Any]]:
        """The finished pieces of a method in the first round, in the order of the folds."""
        pieces = (self.piece(name, fold) for fold in self._folds[0])
        return [piece for piece in pieces if piece is not None]

    def _need_of_round(self, name: str) -> float:
        """Expected seconds of the rest of the first round of a method."""
        if not of_library(name):
            return sum(self._need(name, fold) for fold in self._folds[0])
        folds = self.problem.folds
        return self._expected(name, folds) * self._pace.of(name) + folds * self._judging()

    def _round(self, name: str, number: int, share: float) -> bool:
        """Runs a round of a method; False if time ran out."""
        if not self.left_out.get(name, NO_TIME).startswith(NO_TIME):
            return True
        self.left_out.pop(name, None)
        run = self._run_together if of_library(name) else self._run_folds
        # A method that fails on this table must not end the contest of the others.
        try:
            need = run(name, self._folds[number], share)
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
            if (name, fold) in self._pieces:
                continue
            rest = [self._need(name, later) for later in folds[place:]]
            # A round starts only if all of it fits, and then continues while the next fold fits.
            if (sum(rest) if place == 0 else rest[0]) > self.clock.left(share):
                return sum(rest)
            self._tell(folds, f"{title(name)}, fold {place + 1} of {len(folds)}")
            self._run(name, fold)
        return None

    def _run_together(self, name: str, folds: Sequence[FoldKey], share: float) -> float | None:
        """Trains a network on all folds of a round; returns the seconds it needs if too many."""
        if all((name, fold) in self._pieces for fold in folds):
            return None
        need = self._need_of_round(name)
        if need > self.clock.left(share):
            return need
        self._tell(folds, title(name))
        start, expected = time.monotonic(), self._expected(name, len(folds))
        training_parts = [self._parts(fold)[0] for fold in folds]
        rankings = rank_by_network(self.problem, name, training_parts, self.problem.sizes)
        seconds = time.monotonic() - start
        self._pace.record(name, expected, seconds)
        self._compiled.add(name)
        for fold, ranking in zip(folds, rankings, strict=True):
            self._record(name, fold, self._scored(fold, ranking, seconds / len(folds)))
        return None

    def _tell(self, folds: Sequence[FoldKey], text: str) -> None:
        number, rounds = folds[0][0] + 1, len(self._folds)
        self.clock.tell(f"cross-validation, round {number} of {rounds}: {text}")

    def _run(self, name: str, fold: FoldKey) -> dict[str, Any]:
        """The piece of a method in a fold, computed if it is not there yet."""
        if (name, fold) not in self._pieces:
            self._record(name, fold, self._fold(name, fold))
        return self._pieces[name, fold]

    def _record(self, name: str, fold: FoldKey, piece: dict[str, Any]) -> None:
        self._pieces[name, fold] = self.ledger.get(_key(name, fold), lambda: piece)

    def _fold(self, name: str, fold: FoldKey) -> dict[str, Any]:
        """Selects on the training rows and scores on the test rows, for every size."""
        problem, start = self.problem, time.monotonic()
        if name == ALL:
            units = problem.design.num_units
            score = self._judge(fold, np.arange(units))
            seconds = time.monotonic() - start
            return {"scores": {units: score}, "seconds": seconds, "judging": seconds}
        if name == CONSENSUS:
            orders = [self._run(member, fold)["order"] for member in self.members()]
            ranking = with_kept(
                merged_ranking(orders, problem.design.num_units, problem.sizes), problem
            )
        else:
            train, seed = self._parts(fold)[0], problem.seed + fold[1]
            ranking = rank(problem, name, train, problem.sizes, seed, self.effort(name))
            self._pace.record(name, self._expected(name), time.monotonic() - start)
        return self._scored(fold, ranking, time.monotonic() - start)

    def _scored(self, fold: FoldKey, ranking: Ranking, seconds: float) -> dict[str, Any]:
        """The piece of a ranking, scored at every size, as JSON values."""
        start, costs = time.monotonic(), self.problem.costs
        scores = {size: self._judge(fold, order) for size, order in ranking.order.items()}
        judging = time.monotonic() - start
        return {
            "scores": scores,
            "costs": {
                size: float(len(order) if costs is None else costs[order].sum())
                for size, order in ranking.order.items()
            },
            "order": ranking.order[max(ranking.order)][:MERGED].tolist(),
            "seconds": seconds + judging,
            "judging": judging,
        }

    def _judge(self, fold: FoldKey, units: np.ndarray) -> float | None:
        """The score of some units, or None if it is not finite; JSON has no NaN."""
        problem = self.problem
        columns = problem.design.columns_of(units)
        return json_number(self._judged_on(fold, columns).score)

    def _judged_on(self, fold: FoldKey, columns: np.ndarray) -> Judged:
        problem, key = self.problem, (fold, columns.tobytes())
        if key not in self._judged:
            self._judged[key] = judged(
                self.judge, problem.metric, problem.task, *self._parts(fold), columns
            )
        return self._judged[key]

    def row_scores(self, name: str, fold: FoldKey, size: int) -> np.ndarray | None:
        """Scores ``(n,)`` of the test rows of a fold, by a method with ``size`` units.

        ``None`` if the method did not run there, the metric has no scores of rows, or a resumed run
        has no time to predict them again.
        """
        piece = self._pieces.get((name, fold))
        if name == ALL:
            units = np.arange(self.problem.design.num_units)
        elif piece is None or len(piece["order"]) < size:
            return None
        else:
            units = np.array(piece["order"][:size], int)
        return self._row_scores_of(fold, units)

    def random_row_scores(self, fold: FoldKey, size: int, draws: int) -> np.ndarray | None:
        """The mean of :meth:`row_scores` over random units: those that ran, and further draws.

        Args:
          draws: number of further draws, as far as there is time.
        """
        first = self.row_scores(RANDOM, fold, size)
        if first is None:
            return None
        scores = [first]
        for draw in range(draws):
            rng = np.random.default_rng((self.problem.seed, *fold, 31, draw))
            units = rng.permutation(self.problem.design.num_units)
            units = np.fromiter(dict.fromkeys([*self.problem.keep, *units]), int)[:size]
            drawn = self._row_scores_of(fold, units)
            if drawn is None:
                break
            scores.append(drawn)
        return np.mean(scores, axis=0)

    def _row_scores_of(self, fold: FoldKey, units: np.ndarray) -> np.ndarray | None:
        columns = self.problem.design.columns_of(units)
        known = (fold, columns.tobytes()) in self._judged
        if not known and self.clock.left() <= 2 * self._judging() / len(self.problem.sizes):
            return None
        return self._judged_on(fold, columns).rows

    def _parts(self, fold: FoldKey) -> tuple[Part, Part]:
        """The prepared training and test rows of a fold; the latest ones are kept in memory."""
        if fold not in self._prepared:
            design = self.problem.design
            most = max(1, int(_NUMBERS / max(design.X.shape[0] * design.X.shape[1], 1)))
            while len(self._prepared) >= most:
                self._prepared.pop(next(iter(self._prepared)))
            number, place = fold
            rows = self.problem.rounds[number][place]
            self._prepared[fold] = parts(design, self.problem.y, rows, self.problem.weights)
        return self._prepared[fold]

    def _expected(self, name: str, folds: int = 1) -> float:
        """Expected seconds of a ranking, or of several folds together, on an idle machine."""
        if name in SIMPLE:
            return self._expected_simple(name, self.effort(name))
        rows, columns = self._shape()
        compiled = name in self._compiled
        return network_settings.network_seconds(name, rows, columns, folds, kept=compiled)

    def _expected_simple(self, name: str, effort: float) -> float:
        y = self.problem.y
        outputs = 1 if y.ndim == 1 else y.shape[1]
        if self.problem.task == "classification":
            outputs = int(y.max()) + 1
        return expected_seconds(name, *self._shape(), outputs, effort)

    def _shape(self) -> tuple[int, int]:
        """Numbers of training rows in a fold, and of columns."""
        return len(self.problem.rounds[0][0].train), len(self.problem.design.names)

    def _judging(self) -> float:
        """Seconds that the judge takes for a fold of a method, as measured."""
        seen = [
            piece["judging"] for name in self.problem.methods for piece in self._first_round(name)
        ]
        # The median: a single fold may have had to wait for the processor.
        return float(np.median(seen[-5:])) if seen else 0.0

    def _need(self, name: str, fold: FoldKey) -> float:
        """Expected seconds of a fold on this machine, as busy as it is now."""
        if (name, fold) in self._pieces:
            return 0.0
        if name == ALL:
            seconds = [piece["seconds"] for piece in self._first_round(ALL)]
            return float(np.median(seconds or [0.0]))
        if name == CONSENSUS:
            return self._judging() + sum(self._need(member, fold) for member in self.members())
        return self._judging() + self._expected(name) * self._pace.of(name)

    def _still_in(self) -> Sequence[str]:
        """The methods that may still win, and take part in later rounds."""
        scores: FoldScores = self.scores()
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
            kept.update(self.members())
        # NEEDED ones stay for comparison; they cost little.
        return [name for name in (ALL, *self.problem.methods) if name in kept or name in NEEDED]


def chance_score(problem: Problem, fold: Fold) -> float:
    """The score without any column in a fold."""
    weights = problem.weights
    of_rows = () if weights is None else (weights[fold.train], weights[fold.test])
    return problem.metric.chance(problem.y[fold.train], problem.y[fold.test], *of_rows)


def of_library(name: str) -> bool:
    """Whether a contender is a method of the library, which ranks several folds as one program."""
    return name not in SIMPLE and name not in (ALL, CONSENSUS)


def _key(name: str, fold: FoldKey) -> str:
    return f"fold/{name}/{fold[0]}/{fold[1]}"
