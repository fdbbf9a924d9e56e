"""The problem that ``fsjax.select`` solves: checked data, and the settings of the comparison."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split

from fsjax.auto.contest.folds import Fold, rounds_of
from fsjax.auto.contest.judge import Judge, Tried
from fsjax.auto.contest.rankers import Ranking
from fsjax.auto.contest.scoring import Metric
from fsjax.auto.reading.columns import Design
from fsjax.tasks import get_task

#: The first numbers of columns that are tried, and the factor between further ones.
GRID, GROWTH = (1, 2, 3, 5, 8, 12, 20, 30, 50, 80, 120), 1.6

#: With a slow judge, only every second number of columns is tried.
THIN = 2


#: Rows of each class that a sample keeps, as far as there are so many, and fewest groups of rows.
_CLASS_ROWS, _GROUPS = 20, 10


@dataclass(frozen=True, eq=False)
class Problem:
    """Data and settings of a selection.

    Attributes:
      design: the columns as numbers.
      y: ``(N,)`` or ``(N, C)``, as :attr:`fsjax.tasks.Task.check` returns it.
      task: the task that y is for.
      metric: how predictions are scored.
      rounds: folds, round by round.
      methods: names of the contenders, cheapest first.
      seed: of all random draws.
      sizes: numbers of units that are tried, ascending; each includes the units of ``keep``.
      judge: the model that predicts best in cross-validation; ``None`` until it is chosen.
      judges: those among which each fold chooses by its training rows; ``judge`` alone if empty.
      tried: results of the judges in cross-validation.
      row_groups: ``(N,)`` numbers of groups of rows, or ``None``.
      ordered: whether the rows are in order of time.
      keep: units that are always selected.
      costs: ``(G,)`` of the units, or ``None`` if all cost the same.
      weights: ``(N,)`` above 0 of the rows, 1 on average, or ``None`` if all count alike.
      unranked: the target in its own unit if y has its normal scores, or ``None``.
    """

    design: Design
    y: np.ndarray
    task: str
    metric: Metric
    rounds: list[list[Fold]]
    methods: tuple[str, ...]
    seed: int
    sizes: tuple[int, ...] = ()
    judge: Judge | None = None
    judges: tuple[Judge, ...] = ()
    tried: tuple[Tried, ...] = ()
    row_groups: np.ndarray | None = None
    ordered: bool = False
    keep: tuple[int, ...] = ()
    costs: np.ndarray | None = None
    weights: np.ndarray | None = None
    unranked: np.ndarray | None = None

    @property
    def folds(self) -> int:
        """Number of folds in a round."""
        return len(self.rounds[0])

    @property
    def share(self) -> float:
        """Test rows for each training row."""
        fold = self.rounds[0][-1]
        return len(fold.test) / len(fold.train)

    def replace(self, **changes: Any) -> Problem:
        """A copy with other values."""
        return dataclasses.replace(self, **changes)


def sizes_of(units: int, kept: int = 0, thin: bool = False) -> tuple[int, ...]:
    """Numbers of units that are tried: 1, 2, 3, 5, 8, ... up to half of them.

    Of up to 240 units, more than half are tried as well.

    Args:
      kept: number of units that are always selected.
      thin: whether to try only every second number.
    """
    most = units - 1 if units <= 2 * GRID[-1] else units // 2
    sizes = [size for size in GRID if size <= most]
    while (size := round(GRID[-1] * GROWTH ** (len(sizes) - len(GRID) + 1))) <= most:
        sizes.append(size)
    sizes = sizes[::THIN] if thin else sizes
    return tuple(dict.fromkeys(min(max(size, kept, 1), units - 1) for size in sizes)) or (1,)


def with_kept(ranking: Ranking, problem: Problem) -> Ranking:
    """A ranking with the units of ``keep`` first, and with importance divided by any costs."""
    if not problem.keep and problem.costs is None:
        return ranking
    scores = ranking.scores
    if problem.costs is not None:
        finite = np.isfinite(scores)
        low = scores[finite].min() if finite.any() else 0.0
        # Importance is shifted to start at 0, so that division by a cost cannot raise it.
        scores = np.where(finite, (scores - min(low, 0.0)) / problem.costs, scores)
    by_score = np.argsort(-scores, kind="stable")
    keep = np.asarray(problem.keep, int)

    def first(order: np.ndarray, size: int) -> np.ndarray:
        wanted = order if problem.costs is None else by_score
        wanted = np.concatenate([wanted, by_score])
        return np.fromiter(dict.fromkeys([*keep, *wanted]), int)[: max(size, len(keep))]

    return Ranking({size: first(order, size) for size, order in ranking.order.items()}, scores)


def on_rows(problem: Problem, rows: np.ndarray) -> Problem:
    """The problem on some of its rows, with new folds of these rows."""
    y, unranked, design = problem.y, problem.unranked, problem.design
    groups, weights = problem.row_groups, problem.weights
    if len(rows) < len(y):
        y = y[rows]
        unranked = None if unranked is None else unranked[rows]
        design = dataclasses.replace(design, X=design.X[rows])
        groups = None if groups is None else groups[rows]
        weights = None if weights is None else weights[rows]
    rounds = rounds_of(y, problem.task, problem.seed, groups, problem.ordered)
    changed = problem.replace(y=y, design=design, row_groups=groups, weights=weights)
    return changed.replace(rounds=rounds, unranked=unranked)


def design_of_units(table: Design, units: Sequence[int]) -> Design:
    """The design with some of its units, renumbered."""
    columns = table.columns_of(units)
    number = np.full(table.num_units, -1)
    number[list(units)] = np.arange(len(units))
    return dataclasses.replace(
        table,
        X=table.X[:, columns],
        names=tuple(table.names[column] for column in columns),
        groups=number[table.groups[columns]],
        units=tuple(table.units[unit] for unit in units),
    )


def of_units(problem: Problem, units: Sequence[int]) -> Problem:
    """The problem with some of its units."""
    number = {unit: place for place, unit in enumerate(units)}
    return problem.replace(
        design=design_of_units(problem.design, units),
        keep=tuple(number[unit] for unit in problem.keep if unit in number),
        costs=None if problem.costs is None else problem.costs[list(units)],
    )


def in_proportion(problem: Problem) -> Problem:
    """The problem with rows repeated or left out in proportion to their weights, now all equal.

    Systematic sampling: a row occurs as often as its weight says, up to rounding at random. Copies
    of a row are a group. In a series they would depend on each other in the order of time, so that
    its rows count alike.
    """
    weights, count = problem.weights, len(problem.y)
    if weights is None or problem.ordered:
        return problem.replace(weights=None)
    ends = np.cumsum(weights) * (count / weights.sum())
    marks = np.arange(count) + np.random.default_rng((problem.seed, 41)).random()
    rows = np.minimum(np.searchsorted(ends, marks), count - 1)
    groups = np.arange(count) if problem.row_groups is None else problem.row_groups
    return problem.replace(
        y=problem.y[rows],
        unranked=None if problem.unranked is None else problem.unranked[rows],
        design=dataclasses.replace(problem.design, X=problem.design.X[rows]),
        row_groups=groups[rows],
        weights=None,
    )


def representative_rows(problem: Problem, most: int) -> np.ndarray:
    """About ``most`` rows: a sample stratified by class, whole groups, or the latest rows."""
    count = len(problem.y)
    rows = np.arange(count)
    if count <= most:
        return rows
    if problem.ordered:
        return rows[-most:]
    rng = np.random.default_rng(problem.seed)
    if problem.row_groups is not None:
        labels, sizes = np.unique(problem.row_groups, return_counts=True)
        order = rng.permutation(len(labels))
        number = max(_GROUPS, int((np.cumsum(sizes[order]) <= most).sum()))
        return rows[np.isin(problem.row_groups, labels[order[:number]])]
    strata = get_task(problem.task).target.strata(problem.y)
    sizes = np.array([count]) if strata is None else np.unique(strata, return_counts=True)[1]
    # Rare classes need enough rows for the folds; the split leaves out a row of each class or more.
    if strata is not None and (
        sizes.min() * most < _CLASS_ROWS * count or count - most < len(sizes)
    ):
        kept = _at_least(strata, most, rng)
    else:
        kept, _ = train_test_split(
            rows, train_size=most, random_state=problem.seed, stratify=strata
        )
    return np.sort(kept)


def _at_least(strata: np.ndarray, most: int, rng: np.random.Generator) -> np.ndarray:
    """Rows in proportion to the classes, but at least :data:`_CLASS_ROWS` of each."""
    shuffled = rng.permutation(len(strata))
    kept = []
    for label, size in zip(*np.unique(strata, return_counts=True), strict=True):
        wanted = max(_CLASS_ROWS, round(most * size / len(strata)))
        kept.append(shuffled[strata[shuffled] == label][:wanted])
    return np.concatenate(kept)
