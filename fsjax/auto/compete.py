"""All contenders under cross-validation, cheapest first, until the time is spent."""

from __future__ import annotations

import functools
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from fsjax.auto import contenders, library
from fsjax.auto.budget import Clock, Pace, rounded
from fsjax.auto.judge import judged
from fsjax.auto.preparation import parts
from fsjax.auto.problem import Problem, with_kept
from fsjax.auto.progress_file import Ledger
from fsjax.auto.rankers import MEMBERS, SIMPLE, Ranking, consensus, expected_seconds, rank_units
from fsjax.auto.rankers.parts import Part
from fsjax.auto.rule import CONSENSUS, Scores, levelled_means, paired_error

#: What stands for all columns among the methods.
ALL = "all"

#: These are there for comparison whatever the time; without them there is no score.
NEEDED = (ALL, "random", "univariate")

#: Why a method did not take part.
NO_TIME = "left out"

#: Methods behind the best by this many standard errors of the difference sit out later rounds.
_BEHIND = 2.0

#: Share of the budget that a round of one simple method may take: it is made cheaper to fit.
_SIMPLE_SHARE = 0.06

#: The least effort of a simple method: what would still take too long is left out.
_LEAST_EFFORT = 0.1

#: Units of a ranking that are kept for merging it with others.
MERGED = 500

#: Where the ledger keeps whose rankings the consensus merges.
_MEMBERS = "consensus/members"

#: Memory that prepared folds may take, in numbers.
_NUMBERS = 60_000_000


class Contest:
    """Cross-validation of the contenders, piece by piece.

    The pieces are in the ledger as ``fold/METHOD/ROUND/FOLD``.

    Args:
      problem: what is asked, with its judge; ValueError without one.
      ledger: of what is done.
      clock: the time.

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

    def run_needed(self) -> None:
        """What every answer is compared with, fold by fold, so that some folds are an answer."""
        for place in range(self.problem.folds):
            for name in NEEDED:
                if self.clock.left() <= self._need(name, 0, place):
                    return
                self._run(name, 0, place)

    def run_simple(self, share: float) -> None:
        """The first round of the simple methods, and of their consensus."""
        for name in self.problem.methods:
            if name in SIMPLE and name not in NEEDED:
                self._round(name, 0, share)
        if CONSENSUS in self.problem.methods and self.members():
            # More of them may be done when it is started again; the consensus stays what it is.
            self.ledger.get(_MEMBERS, lambda: list(self.members()))
            self._round(CONSENSUS, 0, share)

    def run_networks(self, share: float) -> None:
        """The first round of the library's methods."""
        for name in self.problem.methods:
            if name not in SIMPLE and name != CONSENSUS:
                self._network_round(name, 0, share)

    def run_further_rounds(self, share: float) -> None:
        """New folds for the methods that may still win."""
        for number in range(1, len(self.problem.rounds)):
            for name in self._still_in():
                network = name not in (ALL, CONSENSUS) and name not in SIMPLE
                run = self._network_round if network else self._round
                if not run(name, number, share):
                    return

    def scores(self) -> dict[tuple[str, int], np.ndarray]:
        """Scores ``(F,)`` over the folds of all rounds, by method and size; NaN where none ran.

        Methods that did not finish the first round are not among them, unless time was up before
        the needed ones did: then all that ran on as many folds as these.
        """
        problem, ledger = self.problem, self.ledger
        places = [(n, p) for n, folds in enumerate(problem.rounds) for p in range(len(folds))]
        least = sum(
            all(_key(name, 0, p) in ledger for name in NEEDED) for p in range(problem.folds)
        )
        table: dict[tuple[str, int], np.ndarray] = {}
        for name in (ALL, *problem.methods):
            if any(_key(name, 0, place) not in ledger for place in range(least)) or not least:
                continue
            for index, (number, place) in enumerate(places):
                key = _key(name, number, place)
                if key not in ledger or (number == 0 and place >= least):
                    continue
                for size, score in ledger[key]["scores"].items():
                    values = table.setdefault((name, int(size)), np.full(len(places), np.nan))
                    values[index] = np.nan if score is None else score
        return {key: values for key, values in table.items() if not np.isnan(values).all()}

    def costs(self) -> dict[tuple[str, int], float]:
        """Cost of the columns of each method and size, the mean over the first round of folds."""
        problem, ledger = self.problem, self.ledger
        table: dict[tuple[str, int], list[float]] = {}
        for name in problem.methods:
            for place in range(problem.folds):
                piece = ledger[key] if (key := _key(name, 0, place)) in ledger else {"costs": {}}
                for size, cost in piece["costs"].items():
                    table.setdefault((name, int(size)), []).append(cost)
        total = problem.design.num_units if problem.costs is None else float(problem.costs.sum())
        everything = {(ALL, problem.design.num_units): float(total)}
        return {**{key: float(np.mean(costs)) for key, costs in table.items()}, **everything}

    def chance_level(self) -> np.ndarray:
        """``(F,)`` what is reached without any column, by fold."""
        problem = self.problem
        return np.array(
            [
                problem.metric.chance(problem.y[fold.train], problem.y[fold.test])
                for folds in problem.rounds
                for fold in folds
            ]
        )

    def seconds_of(self, name: str) -> float:
        """Seconds that a method takes to rank the training rows of a fold, as last seen."""
        pieces = [
            self.ledger[key]["seconds"] - self.ledger[key]["judging"]
            for place in range(self.problem.folds)
            if (key := _key(name, 0, place)) in self.ledger
        ]
        if name == CONSENSUS:
            return sum(self.seconds_of(member) for member in self.members())
        # The first one of a network compiles.
        return float(np.median(pieces)) if pieces else 0.0

    def seconds_of_rankings(self, name: str, count: int) -> float:
        """Seconds in which a method ranks the rows so many times: networks do so together."""
        if name in SIMPLE or name == CONSENSUS:
            return count * self.seconds_of(name)
        return self._listed(name, count) * self._pace.of(name)

    def effort(self, name: str) -> float:
        """The effort in (0, 1] at which a simple method runs, kept so that it stays the same."""
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
        whole = [
            name
            for name in MEMBERS
            if name in self.problem.methods
            and all(_key(name, 0, place) in self.ledger for place in range(self.problem.folds))
        ]
        return tuple(whole) if len(whole) > 1 else ()

    def _round(self, name: str, number: int, share: float) -> bool:
        """The folds of a round; False where time ran out."""
        problem, folds = self.problem, self.problem.rounds[number]
        if name in self.left_out:
            return True
        for place in range(len(folds)):
            if _key(name, number, place) in self.ledger:
                continue
            rest = [self._need(name, number, later) for later in range(place, len(folds))]
            # What cannot end in time is not begun, and what has begun may end.
            need = sum(rest) if place == 0 else rest[0]
            if need > self.clock.left(share):
                if number == 0:
                    needed = rounded(max(sum(rest), 1.0))
                    self.left_out[name] = f"{NO_TIME}: about {needed} more were needed"
                return False
            self.clock.tell(
                f"cross-validation, round {number + 1} of {len(problem.rounds)}: {name}, fold "
                f"{place + 1} of {len(folds)}"
            )
            # A method that fails on this table is no reason to lose the others.
            try:
                self._run(name, number, place)
            except (ValueError, np.linalg.LinAlgError) as error:
                self.left_out[name] = _failure(error, number)
                break
        return True

    def _network_round(self, name: str, number: int, share: float) -> bool:
        """A round of a network, whose folds train together; False where time ran out."""
        problem, folds = self.problem, self.problem.rounds[number]
        keys = [_key(name, number, place) for place in range(len(folds))]
        if name in self.left_out or all(key in self.ledger for key in keys):
            return True
        listed = self._listed(name, len(folds))
        need = listed * self._pace.of(name) + len(folds) * self._judging()
        if need > self.clock.left(share):
            if number == 0:
                self.left_out[name] = f"{NO_TIME}: about {rounded(need)} more were needed"
            return False
        self.clock.tell(f"cross-validation, round {number + 1} of {len(problem.rounds)}: {name}")
        parts_of = [self._parts(number, place) for place in range(len(folds))]
        start = time.monotonic()
        # A method that fails on this table is no reason to lose the others.
        try:
            rankings = library.rank_folds(
                name,
                [train for train, _ in parts_of],
                problem.task,
                problem.design.groups,
                problem.sizes,
                problem.seed,
            )
        except (ValueError, np.linalg.LinAlgError) as error:
            self.left_out[name] = _failure(error, number)
            return True
        seconds = time.monotonic() - start
        self._pace.record(name, listed, seconds)
        self._compiled.add(name)
        for place, ranking in enumerate(rankings):
            piece = self._scored(number, place, with_kept(ranking, problem), seconds / len(folds))
            self.ledger.get(keys[place], functools.partial(dict, piece))
        return True

    def _run(self, name: str, number: int, place: int) -> dict[str, Any]:
        return self.ledger.get(_key(name, number, place), lambda: self._fold(name, number, place))

    def _fold(self, name: str, number: int, place: int) -> dict[str, Any]:
        """Selects on the training rows, judges on the test rows, for every size."""
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
        """A ranking judged at every size, as JSON values."""
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
        """Seconds of a ranking on an idle machine, by the tables of costs; of folds together."""
        problem = self.problem
        rows, columns = len(problem.rounds[0][0].train), len(problem.design.names)
        if name in SIMPLE:
            outputs = _outputs(problem)
            return expected_seconds(name, rows, columns, outputs, self.effort(name))
        return contenders.expected_seconds(name, rows, columns, folds, kept=name in self._compiled)

    def _judging(self) -> float:
        """Seconds in which a fold of a method is judged, as last seen."""
        seen = [
            self.ledger[key]["judging"]
            for name in self.problem.methods
            for place in range(self.problem.folds)
            if (key := _key(name, 0, place)) in self.ledger
        ]
        # A single fold that had to wait says little.
        return float(np.median(seen[-5:])) if seen else 0.0

    def _need(self, name: str, number: int, place: int) -> float:
        """Seconds that a fold should take here and now."""
        if _key(name, number, place) in self.ledger:
            return 0.0
        if name == ALL:
            before = [
                key for p in range(self.problem.folds) if (key := _key(ALL, 0, p)) in self.ledger
            ]
            return float(np.median([self.ledger[key]["seconds"] for key in before] or [0.0]))
        if name == CONSENSUS:
            members = sum(self._need(member, number, place) for member in self.members())
            return self._judging() + members
        return self._judging() + self._listed(name) * self._pace.of(name)

    def _still_in(self) -> Sequence[str]:
        """Who takes part in later rounds: those that may still win."""
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
        # Those that are needed are for comparison, and they cost little.
        return [name for name in (ALL, *self.problem.methods) if name in kept or name in NEEDED]


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
      sizes: numbers of units that are wanted.
      seed: of what is random in it.
      effort: in (0, 1], of simple methods.
      groups: ``(D,)`` the unit of each column, where they are not those of the problem.
    """
    units = problem.design.groups if groups is None else groups
    if name in SIMPLE:
        scores = SIMPLE[name](part, problem.task, seed, effort)
        ranking = rank_units(scores, units, sizes)
    else:
        ranking = library.rank(name, part, problem.task, units, sizes, seed)
    return with_kept(ranking, problem) if groups is None else ranking


def _outputs(problem: Problem) -> int:
    """Classes, or columns of the target."""
    if problem.task == "classification":
        return int(problem.y.max()) + 1
    return 1 if problem.y.ndim == 1 else problem.y.shape[1]


def _failure(error: Exception, number: int) -> str:
    """Why a method is left out that failed in a round."""
    return f"failed{' in a later round' * bool(number)}: {str(error).rstrip('.')}"


def _key(name: str, number: int, place: int) -> str:
    return f"fold/{name}/{number}/{place}"


def _number(value: float) -> float | None:
    """A number for JSON, which has no NaN."""
    return float(value) if np.isfinite(value) else None
