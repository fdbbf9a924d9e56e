"""What ``fsjax.select`` is asked, checked and prepared."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np

from fsjax.auto.columns import Design
from fsjax.auto.judge import Judge, Tried
from fsjax.auto.preparation import Fold
from fsjax.auto.rankers import Ranking
from fsjax.auto.scoring import Metric

#: The first numbers of columns that are tried, and by how much the others grow.
GRID, GROWTH = (1, 2, 3, 5, 8, 12, 20, 30, 50, 80, 120), 1.6

#: Where the judge is slow, every second number of columns is tried.
THIN = 2


@dataclass(frozen=True, eq=False)
class Problem:
    """What is asked.

    Attributes:
      design: the columns as numbers.
      y: ``(N,)`` or ``(N, C)``, as :attr:`fsjax.tasks.Task.check` has it.
      task: what y is.
      metric: how predictions are scored.
      rounds: folds, round by round.
      methods: names of the contenders, cheapest first.
      seed: of all that is random.
      sizes: numbers of units that are tried, ascending; those that are kept are among them.
      judge: the model that judges; ``None`` until it is chosen.
      tried: how the judges did in the inner validation.
      row_groups: ``(N,)`` numbers of rows that belong together, or ``None``.
      ordered: whether the rows are in order of time.
      keep: units that are always selected.
      costs: ``(G,)`` of the units, or ``None`` where all cost the same.
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
    tried: tuple[Tried, ...] = ()
    row_groups: np.ndarray | None = None
    ordered: bool = False
    keep: tuple[int, ...] = ()
    costs: np.ndarray | None = None

    @property
    def folds(self) -> int:
        """Folds of a round."""
        return len(self.rounds[0])

    @property
    def share(self) -> float:
        """Test rows for each training row."""
        fold = self.rounds[0][-1]
        return len(fold.test) / len(fold.train)

    def replace(self, **changes: Any) -> Problem:
        """The same with other values."""
        return dataclasses.replace(self, **changes)


def sizes_of(units: int, kept: int = 0, thin: bool = False) -> tuple[int, ...]:
    """Numbers of units that are tried: 1, 2, 3, 5, 8, ... to half of them (at least to 3).

    Args:
      units: that there are.
      kept: those that are always selected.
      thin: whether every second number is enough.
    """
    most = units - 1 if units <= 2 * GRID[-1] else units // 2
    sizes = [size for size in GRID if size <= most]
    while (size := round(GRID[-1] * GROWTH ** (len(sizes) - len(GRID) + 1))) <= most:
        sizes.append(size)
    sizes = sizes[::THIN] if thin else sizes
    return tuple(dict.fromkeys(min(max(size, kept, 1), units - 1) for size in sizes)) or (1,)


def with_kept(ranking: Ranking, problem: Problem) -> Ranking:
    """A ranking in which the units to be kept are first, and cheap ones before costly ones.

    Where units have costs, their importance is divided by them.
    """
    if not problem.keep and problem.costs is None:
        return ranking
    scores = ranking.scores
    if problem.costs is not None:
        finite = np.isfinite(scores)
        low = scores[finite].min() if finite.any() else 0.0
        # Importance starts at 0: a cost divides it, and does not change its sign.
        scores = np.where(finite, (scores - min(low, 0.0)) / problem.costs, scores)
    by_score = np.argsort(-scores, kind="stable")
    keep = np.asarray(problem.keep, int)

    def first(order: np.ndarray, size: int) -> np.ndarray:
        wanted = order if problem.costs is None else by_score
        wanted = np.concatenate([wanted, by_score])
        return np.fromiter(dict.fromkeys([*keep, *wanted]), int)[: max(size, len(keep))]

    return Ranking({size: first(order, size) for size, order in ranking.order.items()}, scores)
