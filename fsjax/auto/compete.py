"""All contenders under cross-validation, cheapest first, until the time is spent."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from fsjax.auto import library, network_contenders
from fsjax.auto.budget import Clock, Pace, rounded
from fsjax.auto.folds import parts
from fsjax.auto.judge import judged
from fsjax.auto.problem import Problem, with_kept
from fsjax.auto.progress_file import Ledger
from fsjax.auto.rankers import MEMBERS, SIMPLE, Ranking, consensus, expected_seconds, rank_units
from fsjax.auto.rankers.parts import Part
from fsjax.auto.rule import CONSENSUS, Scores, levelled_means, paired_error

#: What stands for all columns among the methods.
ALL = "all"

#: What every answer is compared with; they run first, and without them there are no scores.
NEEDED = (ALL, "random", "univariate")

#: How the reason begins if there was no time for a method.
NO_TIME = "was not tried"

#: Methods behind the best by this many standard errors of the difference sit out later rounds.
_BEHIND = 2.0

#: Share of the budget that a round of one simple method may take: it is made cheaper to fit.
_SIMPLE_SHARE = 0.06

#: The least effort of a simple method; if that would still take too long, it is left out.
_LEAST_EFFORT = 0.1

#: Units of a ranking that are kept for merging it with others.
MERGED = 500

#: Key of the methods whose rankings the consensus merges.
_MEMBERS = "consensus/members"

#: Memory that prepared folds may take, in numbers.
_NUMBERS = 60_000_000


class Contest:
    """Cross-validation of the contenders, piece by piece.

    A piece is one fold of one method: its scores by number of columns, its order of the units, and
    the seconds that it took. The ledger keeps it as ``fold/METHOD/ROUND/FOLD``.

    Args:
      problem: what is asked, with its judge; ValueError without one.
      ledger: records finished work.
      clock: the budget.

    Attributes:
      judge: that of the problem.
      left_out: why methods did not take part or did not finish.
    """

    def __init__(self, problem: Problem, ledger: Ledger, clock: Clock) -> None:
        if problem.judge is None:
            raise ValueError("the problem has no judge yet; fsjax.auto.plan.plan chooses one")
        self.problem, self.ledger, self.clock = problem, ledger, clock
        self.judge = problem.judge
        self.left_out: dict[str, str] = {}
        self._pace = Pace()
        self._prepared: dict[tuple[int, int], tuple[Part, Part]] = {}
        self._judged: dict[tuple[int, int, bytes], float] = {}
        self._compiled: set[str] = set()
        self._pieces: dict[tuple[str, int, int], dict[str, Any]] = {}
        for name in (ALL, *problem.methods):
            for number, folds in enumerate(problem.rounds):
                for place in range(len(folds)):
                    if (key := _key(name, number, place)) in ledger:
                        self._pieces[name, number, place] = ledger[key]

    def run_needed(self) -> None:
        """Runs what every answer is compared with, fold by fold: a few folds are enough for one."""
        for place in range(self.problem.folds):
            for name in NEEDED:
                if self.clock.left() <= self._need(name, 0, place):
                    return
                self._run(name, 0, place)

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
        """Runs the first round of the library's methods."""
        for name in filter(of_library, self.problem.methods):
            self._round(name, 0, share)

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
        problem, pieces = self.problem, self._pieces
        places = [(n, p) for n, folds in enumerate(problem.rounds) for p in range(len(folds))]
        least = sum(
            all((name, 0, place) in pieces for name in NEEDED) for place in range(problem.folds)
        )
        table: dict[tuple[str, int], np.ndarray] = {}
        for name in (ALL, *problem.methods):
            if any((name, 0, place) not in pieces for place in range(least)) or not least:
                continue
            for index, (number, place) in enumerate(places):
                piece = pieces.get((name, number, place))
                if piece is None or (number == 0 and place >= least):
                    continue
                for size, score in piece["scores"].items():
                    values = table.setdefault((name, int(size)), np.full(len(places), np.nan))
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
        return np.array(
            [
                problem.metric.chance(problem.y[fold.train], problem.y[fold.test])
                for folds in problem.rounds
                for fold in folds
            ]
        )

    def seconds_of(self, name: str) -> float:
        """Seconds that a method takes to rank the training rows of a fold, as measured."""
        if name == CONSENSUS:
            return sum(self.seconds_of(member) for member in self.members())
        seconds = [piece["seconds"] - piece["judging"] for piece in self._first_round(name)]
        # The median: the first fold of a network includes its compilation.
        return float(np.median(seconds)) if seconds else 0.0

    def seconds_of_rankings(self, name: str, count: int) -> float:
        """Seconds that a method takes for ``count`` rankings, which networks train together."""
        if of_library(name):
            return self._listed(name, count) * self._pace.of(name)
        return count * self.seconds_of(name)

    def effort(self, name: str) -> float:
        """The effort in (0, 1] at which a simple method runs; a resumed run keeps it."""
        problem = self.problem

        def chosen() -> float:
            share = _SIMPLE_SHARE * self.clock.usable / problem.folds
            rows, columns = len(problem.rounds[0][0].train), len(problem.design.names)
            full = expected_seconds(name, rows, columns, _outputs(problem), 1.0)
            full *= self._pace.of(name)
            return float(np.clip(share / full, _LEAST_EFFORT, 1.0)) if full > 0 else 1.0

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

    def piece(self, name: str, number: int, place: int) -> dict[str, Any] | None:
        """The piece of a method in a fold of a round, or None if it did not run."""
        return self._pieces.get((name, number, place))

    def _first_round(self, name: str) -> list[dict[str, Any]]:
        """The finished pieces of a method in the first round, in the order of the folds."""
        places = range(len(self.problem.rounds[0]))
        pieces = (self._pieces.get((name, 0, place)) for place in places)
        return [piece for piece in pieces if piece is not None]

    def _round(self, name: str, number: int, share: float) -> bool:
        """Runs a round of a method; False if time ran out."""
        if name in self.left_out:
            return True
        run = self._run_together if of_library(name) else self._run_folds
        # A method that fails on this table must not end the contest of the others.
        try:
            missing = run(name, number, share)
        except (ValueError, np.linalg.LinAlgError) as error:
            when = " in a later round" if number else ""
            self.left_out[name] = f"failed{when}: {str(error).rstrip('.')}"
            return True
        if missing is not None and number == 0:
            self.left_out[name] = f"{NO_TIME}: about {rounded(missing)} more were needed"
        return missing is None

    def _run_folds(self, name: str, number: int, share: float) -> float | None:
        """Runs the folds of a round one by one; returns the seconds that are missing, if any."""
        folds = len(self.problem.rounds[number])
        for place in range(folds):
            if (name, number, place) in self._pieces:
                continue
            rest = [self._need(name, number, later) for later in range(place, folds)]
            # A round starts only if all of it fits, and then goes on while the next fold fits.
            if (sum(rest) if place == 0 else rest[0]) > self.clock.left(share):
                return sum(rest)
            self._tell(number, f"{name}, fold {place + 1} of {folds}")
            self._run(name, number, place)
        return None

    def _run_together(self, name: str, number: int, share: float) -> float | None:
        """Trains a network on all folds of a round; returns the seconds that are missing if any."""
        problem, folds = self.problem, len(self.problem.rounds[number])
        if all((name, number, place) in self._pieces for place in range(folds)):
            return None
        listed = self._listed(name, folds)
        need = listed * self._pace.of(name) + folds * self._judging()
        if need > self.clock.left(share):
            return need
        self._tell(number, name)
        training_parts = [self._parts(number, place)[0] for place in range(folds)]
        groups, sizes = problem.design.groups, problem.sizes
        start = time.monotonic()
        rankings = library.rank_folds(
            name, training_parts, problem.task, groups, sizes, problem.seed
        )
        seconds = time.monotonic() - start
        self._pace.record(name, listed, seconds)
        self._compiled.add(name)
        for place, ranking in enumerate(rankings):
            piece = self._scored(number, place, with_kept(ranking, problem), seconds / folds)
            self._record(name, number, place, piece)
        return None

    def _tell(self, number: int, text: str) -> None:
        rounds = len(self.problem.rounds)
        self.clock.tell(f"cross-validation, round {number + 1} of {rounds}: {text}")

    def _run(self, name: str, number: int, place: int) -> dict[str, Any]:
        """The piece of a method in a fold, computed if it is not there yet."""
        if (name, number, place) not in self._pieces:
            self._record(name, number, place, self._fold(name, number, place))
        return self._pieces[name, number, place]

    def _record(self, name: str, number: int, place: int, piece: dict[str, Any]) -> None:
        kept = self.ledger.get(_key(name, number, place), lambda: piece)
        self._pieces[name, number, place] = kept

    def _fold(self, name: str, number: int, place: int) -> dict[str, Any]:
        """Selects on the training rows and scores on the test rows, for every size."""
        problem, start = self.problem, time.monotonic()
        train, test = self._parts(number, place)
        if name == ALL:
            columns = np.arange(len(problem.design.names))
            score = _number(judged(self.judge, problem.metric, problem.task, train, test, columns))
            seconds = time.monotonic() - start
            return {
                "scores": {problem.design.num_units: score},
                "seconds": seconds,
                "judging": seconds,
            }
        if name == CONSENSUS:
            pieces = [self._run(member, number, place)["order"] for member in self.members()]
            merged = consensus(pieces, problem.design.num_units, problem.sizes)
            ranking = with_kept(merged, problem)
        else:
            seed = problem.seed + place
            ranking = rank(problem, name, train, problem.sizes, seed, self.effort(name))
            self._pace.record(name, self._listed(name), time.monotonic() - start)
        return self._scored(number, place, ranking, time.monotonic() - start)

    def _scored(self, number: int, place: int, ranking: Ranking, seconds: float) -> dict[str, Any]:
        """The piece of a ranking, scored at every size, as JSON values."""
        start = time.monotonic()
        train, test = self._parts(number, place)
        scores = {
            size: self._judge(number, place, train, test, order)
            for size, order in ranking.order.items()
        }
        largest = ranking.order[max(ranking.order)]
        costs = self.problem.costs
        judging = time.monotonic() - start
        return {
            "scores": scores,
            "costs": {
                size: float(len(order) if costs is None else costs[order].sum())
                for size, order in ranking.order.items()
            },
            "order": largest[:MERGED].tolist(),
            "seconds": seconds + judging,
            "judging": judging,
        }

    def _judge(
        self, number: int, place: int, train: Part, test: Part, order: np.ndarray
    ) -> float | None:
        problem = self.problem
        columns = problem.design.columns_of(order)
        key = (number, place, columns.tobytes())
        if key not in self._judged:
            self._judged[key] = judged(
                self.judge, problem.metric, problem.task, train, test, columns
            )
        return _number(self._judged[key])

    def _parts(self, number: int, place: int) -> tuple[Part, Part]:
        if (number, place) not in self._prepared:
            size = self.problem.design.X.shape
            most = max(1, int(_NUMBERS / max(size[0] * size[1], 1)))
            while len(self._prepared) >= most:
                self._prepared.pop(next(iter(self._prepared)))
            fold = self.problem.rounds[number][place]
            self._prepared[number, place] = parts(self.problem.design, self.problem.y, fold)
        return self._prepared[number, place]

    def _listed(self, name: str, folds: int = 1) -> float:
        """Expected seconds of a ranking, or of several folds together, on an idle machine."""
        problem = self.problem
        rows, columns = len(problem.rounds[0][0].train), len(problem.design.names)
        if name in SIMPLE:
            outputs = _outputs(problem)
            return expected_seconds(name, rows, columns, outputs, self.effort(name))
        compiled = name in self._compiled
        return network_contenders.expected_seconds(name, rows, columns, folds, kept=compiled)

    def _judging(self) -> float:
        """Seconds that the judge takes for a fold of a method, as measured."""
        seen = [
            piece["judging"] for name in self.problem.methods for piece in self._first_round(name)
        ]
        # The median: a single fold may have had to wait for the processor.
        return float(np.median(seen[-5:])) if seen else 0.0

    def _need(self, name: str, number: int, place: int) -> float:
        """Expected seconds of a fold on this machine, as busy as it is now."""
        if (name, number, place) in self._pieces:
            return 0.0
        if name == ALL:
            seconds = [piece["seconds"] for piece in self._first_round(ALL)]
            return float(np.median(seconds or [0.0]))
        if name == CONSENSUS:
            members = sum(self._need(member, number, place) for member in self.members())
            return self._judging() + members
        return self._judging() + self._listed(name) * self._pace.of(name)

    def _still_in(self) -> Sequence[str]:
        """The methods that may still win, and take part in later rounds."""
        scores: Scores = self.scores()
        allowed = {key: values for key, values in scores.items() if key[0] != "random"}
        if not allowed:
            return ()
        means = levelled_means(allowed)
        top = max(means, key=lambda key: means[key])

        def near(key: tuple[str, int]) -> bool:
            behind = scores[top] - scores[key]
            known = behind[~np.isnan(behind)]
            reach = _BEHIND * paired_error(known, self.problem.folds)
            return len(known) > 0 and float(known.mean()) <= reach

        kept = {key[0] for key in allowed if near(key)}
        if CONSENSUS in kept:
            kept.update(self.members())
        # The needed ones stay for comparison; they cost little.
        return [name for name in (ALL, *self.problem.methods) if name in kept or name in NEEDED]


def of_library(name: str) -> bool:
    """Whether a contender is a method of the library, which ranks several folds as one program."""
    return name not in SIMPLE and name not in (ALL, CONSENSUS)


def rank(
    problem: Problem,
    name: str,
    part: Part,
    sizes: Sequence[int],
    seed: int,
    effort: float = 1.0,
    groups: np.ndarray | None = None,
) -> Ranking:
    """Ranks units by a simple selector or a method of the library, those to be kept first.

    Args:
      problem: what is asked.
      name: of the method.
      part: prepared rows.
      sizes: numbers of units to select.
      seed: of the random draws.
      effort: in (0, 1], of simple methods.
      groups: ``(D,)`` the unit of each column, where they are not those of the problem.
    """
    units = problem.design.groups if groups is None else groups
    if name in SIMPLE:
        scores = SIMPLE[name](part, problem.task, seed, effort)
        ranking = rank_units(scores, units, sizes)
    else:
        (ranking,) = library.rank_folds(name, [part], problem.task, units, sizes, seed)
    return with_kept(ranking, problem) if groups is None else ranking


def _outputs(problem: Problem) -> int:
    """Classes, or columns of the target."""
    if problem.task == "classification":
        return int(problem.y.max()) + 1
    return 1 if problem.y.ndim == 1 else problem.y.shape[1]


def _key(name: str, number: int, place: int) -> str:
    return f"fold/{name}/{number}/{place}"


def _number(value: float) -> float | None:
    """A number for JSON, which has no NaN."""
    return float(value) if np.isfinite(value) else None
