"""Expected run times of the simple selectors, from which their effort is chosen.

The constants were measured on one server core with dense tables of 60 to 800,000 rows and 8 to
20,000 columns. There, forests and the shadow test are within a factor of 1.6 of the estimate, and
the others within 3 if they take more than 0.1 s; sparse tables may differ more.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from fsjax.auto.contest.rankers import elimination, filters, greedy, lasso, trees


def expected_seconds(name: str, rows: int, columns: int, outputs: int, effort: float) -> float:
    """Approximate CPU seconds of a simple selector on one core.

    Args:
      name: of :data:`fsjax.auto.contest.rankers.SIMPLE`.
      outputs: classes, or columns of the target.
      effort: in (0, 1].
    """
    # Every selector draws its sample from all rows.
    return 1e-7 * rows + _SECONDS[name](rows, columns, max(1, outputs - 1), effort)


def _random(rows: int, columns: int, outputs: int, effort: float) -> float:
    return 1e-4 + 1e-8 * columns


def _univariate(rows: int, columns: int, outputs: int, effort: float) -> float:
    return 1e-3 + 1.5e-8 * min(rows, filters.ROWS * effort) * columns


def _l1(rows: int, columns: int, outputs: int, effort: float) -> float:
    seen = min(rows, effort * min(lasso.ROWS, lasso.VALUES / columns))
    if seen <= columns:
        return outputs * (0.02 + 8e-8 * seen * columns * max(effort, 0.3))
    return 1e-10 * seen * columns**2 + outputs * (0.003 + 5e-8 * columns**2)


def _greedy(rows: int, columns: int, effort: float) -> float:
    """Number of values that the steps of a greedy selector read."""
    seen = min(rows, greedy.ROWS)
    steps = min(columns, max(greedy.MIN_STEPS, greedy.STEPS * effort))
    return steps * min(seen * columns, greedy.VALUES)


def _mrmr(rows: int, columns: int, outputs: int, effort: float) -> float:
    return 0.005 + 5e-10 * _greedy(rows, columns, effort) + _univariate(rows, columns, outputs, 0.1)


def _forward(rows: int, columns: int, outputs: int, effort: float) -> float:
    more_outputs = 1 + outputs / 50
    return _mrmr(rows, columns, outputs, effort) + 4e-10 * more_outputs * _greedy(
        rows, columns, effort
    )


def _rfe(rows: int, columns: int, outputs: int, effort: float) -> float:
    seen = min(rows, elimination.ROWS * effort)
    ridge = 0.01 + 1.5e-10 * min(seen, columns) * min(seen * columns, elimination.VALUES)
    machine = 0.0
    if columns < seen:
        # Most of the time goes to the support vector machine for classes.
        seen = min(seen, elimination.MACHINE_ROWS * effort)
        machine = 0.03 + 7e-7 * outputs * seen * columns * max(effort, 0.2)
    return max(ridge, machine)


def _trees(trees_of_forest: float, rows: float, columns: float) -> float:
    return trees_of_forest * (7e-4 + 1.5e-8 * rows * np.log2(rows + 2) * np.sqrt(columns))


def _forest(rows: int, columns: int, outputs: int, effort: float) -> float:
    number = max(trees.MIN_TREES, trees.TREES * effort)
    return float(_trees(number, min(rows, trees.ROWS), columns))


def _shadow(rows: int, columns: int, outputs: int, effort: float) -> float:
    seen, number = min(rows, trees.SHADOW_ROWS), max(trees.MIN_ROUNDS, trees.ROUNDS * effort)
    both = 2 * min(columns, trees.SHADOW_COLUMNS)
    rounds = _trees(1.2 * trees.ROUND_TREES * number, seen, both)
    return float(rounds) + _forest(seen, columns, outputs, effort / 3)


_SECONDS: Final[dict[str, Callable[[int, int, int, float], float]]] = {
    "random": _random,
    "univariate": _univariate,
    "l1": _l1,
    "mrmr": _mrmr,
    "forward": _forward,
    "rfe": _rfe,
    "forest": _forest,
    "shadow": _shadow,
}
