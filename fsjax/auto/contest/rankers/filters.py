"""Selectors that score each column by itself, and the random baseline."""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.feature_selection import f_classif, f_regression

from fsjax.auto.contest.rankers.parts import Part, fewer_rows, targets
from fsjax.auto.contest.rankers.ranking import LEFT_OUT
from fsjax.auto.reading.column_operations import Columns, means_and_deviations

#: Most rows at full effort.
ROWS = 100_000


def univariate(part: Part, task: str, seed: int, effort: float = 1.0) -> np.ndarray:
    """F statistic of each column by itself (analysis of variance, or of a linear regression)."""
    rows = fewer_rows(part, task, int(ROWS * effort), seed)
    statistics = [
        _f_statistic(rows.X, y, task, rows.weights)
        for y in targets(rows.y, task, split=False)
        if (y != y[0]).any()
    ]
    if not statistics:
        return np.zeros(part.X.shape[1])
    # The statistic of a column that determines the target is the largest float.
    with np.errstate(over="ignore"):
        return np.mean(statistics, axis=0)


def _f_statistic(
    X: Columns, y: np.ndarray, task: str, weights: np.ndarray | None = None
) -> np.ndarray:
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # constant columns
        if weights is not None:
            statistic = _weighted_f(X, y, task, weights)
        else:
            statistic = (f_classif if task == "classification" else f_regression)(X, y)[0]
    # Without variation within classes, rounding errors can make the statistic negative.
    return np.where(np.isnan(statistic), LEFT_OUT, np.abs(statistic))


def _weighted_f(X: Columns, y: np.ndarray, task: str, weights: np.ndarray) -> np.ndarray:
    """F statistics ``(D,)`` of rows that count in proportion to their weights."""
    shares, rows = weights / weights.sum(), len(y)
    mean, deviation = means_and_deviations(X, weights)
    if task == "classification":
        member = shares * (y == np.unique(y)[:, None])
        size = member.sum(axis=1)[:, None]
        class_mean = np.asarray((X.T @ member.T).T) / size
        between = (size * np.square(class_mean - mean)).sum(axis=0)
        within, freedom = np.square(deviation) - between, len(member) - 1
        return (between / freedom) / (within / (rows - freedom - 1))
    numbers = y - shares @ y
    spread = np.sqrt(shares @ np.square(numbers))
    correlation = np.asarray(X.T @ (shares * numbers)).ravel() / (deviation * spread)
    return np.square(correlation) / (1.0 - np.square(correlation)) * (rows - 2)


def random(part: Part, task: str, seed: int, effort: float = 1.0) -> np.ndarray:
    """Random scores, independent of the data."""
    return np.random.default_rng(seed).random((part.X.shape[1],))
