"""Partial dependence: predictions of a forest as one column changes and the others stay fixed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from sklearn.ensemble import RandomForestRegressor
from sklearn.inspection import partial_dependence

#: Most rows that the forest trains on, number of its trees, and most points of a curve.
ROWS, TREES, POINTS = 1000, 40, 20

#: The curve ends at these quantiles of the column, unless they are equal.
_ENDS = (0.02, 0.98)


class Curve(NamedTuple):
    """A partial dependence curve.

    Attributes:
      values: ``(P,)`` of the column, ascending, in its own unit.
      predictions: ``(P,)`` mean prediction at these: the share of a class, or the target.
    """

    values: np.ndarray
    predictions: np.ndarray


def curves(X: np.ndarray, y: np.ndarray, columns: Sequence[int], seed: int = 0) -> list[Curve]:
    """Partial dependence of one output on some columns, by a random forest.

    Args:
      X: ``(N, D)`` finite numbers, D a few dozen; the forest sees at most :data:`ROWS` rows.
      y: ``(N,)`` numbers, or 0 and 1 for one class against the rest.
      columns: of X.
      seed: of the drawn rows and of the forest.

    Returns:
      A curve for each of the columns, of at most :data:`POINTS` points.
    """
    if len(X) > ROWS:
        rows = np.random.default_rng(seed).choice(len(X), ROWS, replace=False)
        X, y = X[rows], y[rows]
    # With smaller leaves the curve would follow single rows.
    leaf = max(2, min(10, len(X) // 20))
    forest = RandomForestRegressor(
        TREES, min_samples_leaf=leaf, max_features=1 / 3, random_state=seed
    ).fit(X, y)
    return [_curve(forest, X, column) for column in columns]


def _curve(forest: RandomForestRegressor, X: np.ndarray, column: int) -> Curve:
    low, high = np.quantile(X[:, column], _ENDS)
    dependence = partial_dependence(
        forest, X, [column], grid_resolution=POINTS, method="recursion",
        percentiles=_ENDS if high > low else (0.0, 1.0),
    )  # fmt: skip
    return Curve(dependence["grid_values"][0], dependence["average"][0])
