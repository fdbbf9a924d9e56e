"""The Lasso path as a selector, for dense and sparse tables."""

from __future__ import annotations

import warnings

import numpy as np
from scipy.sparse import issparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import lasso_path

from fsjax.auto.contest.rankers.parts import Part, fewer_rows, standard_targets, weighted_rows
from fsjax.auto.reading.column_operations import FEW, Columns, by_column

#: Points of the path at full effort and at least, and the ratio of its last penalty to its first.
_POINTS, _MIN_POINTS, _END = 40, 8, 0.02

#: Most rows, and most values of a dense table, at full effort.
ROWS, VALUES = 50_000, 20_000_000


def l1(part: Part, task: str, seed: int, effort: float = 1.0) -> np.ndarray:
    """Mean absolute coefficients over a Lasso path, from the strongest penalty down.

    Classes are regressed as indicators, one against the rest, and their coefficients are added.
    """
    num_columns = part.X.shape[1]
    most = ROWS if issparse(part.X) else min(ROWS, VALUES // num_columns)
    rows = fewer_rows(part, task, int(most * effort), seed)
    Y, weights = standard_targets(rows.y, task, rows.weights), rows.weights
    points = max(_MIN_POINTS, round(_POINTS * effort))
    X, sparse = by_column(rows.X), issparse(part.X)
    with warnings.catch_warnings():
        # The weakest penalties may stop early; their share in the mean hardly matters.
        warnings.simplefilter("ignore", ConvergenceWarning)
        if sparse:
            return sum((_wide_path(X, y, points, weights) for y in Y.T), np.zeros(num_columns))
        X, Y = weighted_rows(X, weights), weighted_rows(Y, weights)
        if len(Y) <= num_columns:
            return sum((_wide_path(X, y, points) for y in Y.T), np.zeros(num_columns))
        gram = X.T @ X
        return sum((_path(X, y, gram, points) for y in Y.T), np.zeros(num_columns))


def _path(X: np.ndarray, y: np.ndarray, gram: np.ndarray, points: int) -> np.ndarray:
    """Mean absolute coefficients ``(D,)`` of more rows than columns."""
    slope = X.T @ y
    strongest = np.abs(slope).max() / len(y)
    if not strongest:
        return np.zeros(X.shape[1])
    penalties = np.geomspace(strongest, _END * strongest, points)
    coefficients = lasso_path(X, y, alphas=penalties, precompute=gram, Xy=slope)[1]
    return np.abs(coefficients).mean(axis=1)


def _wide_path(
    X: Columns, y: np.ndarray, points: int, weights: np.ndarray | None = None
) -> np.ndarray:
    """Mean absolute coefficients ``(D,)`` of many columns; the path ends when too many are active.

    The solver sees the columns that the sequential strong rule keeps (Tibshirani et al. 2012), and
    those that this rule left out wrongly. Sparse columns are centred within the solver, which
    takes the weights of their rows.
    """
    rows = X.shape[0]
    counts = np.ones(rows) if weights is None else weights / weights.mean()
    mean = np.asarray(X.mean(axis=0)).ravel() if weights is None else X.T @ counts / rows
    coefficients, total, done = np.zeros(X.shape[1]), np.zeros(X.shape[1]), 0
    slope = np.abs(X.T @ (counts * y)) / rows
    penalty = strongest = slope.max()
    if not strongest:
        return total
    for weaker in np.geomspace(strongest, _END * strongest, points):
        seen = (slope >= 2 * weaker - penalty) | (coefficients != 0)
        penalty, missed = weaker, seen
        while missed.any():
            screened = X[:, seen]
            centring = {}
            if not isinstance(X, np.ndarray):
                centring = {"X_offset": mean[seen], "X_scale": np.ones(screened.shape[1])}
                if weights is not None:
                    centring["sample_weight"] = counts
            solution = lasso_path(
                screened, y, alphas=[penalty], coef_init=coefficients[seen], **centring
            )
            coefficients[seen] = solution[1][:, 0]
            residual = y - screened @ coefficients[seen]
            centre = residual.mean() if weights is None else counts @ residual / rows
            slope = np.abs(X.T @ (counts * (residual - centre))) / rows
            missed = ~seen & (slope > penalty)
            seen = seen | missed
        total, done = total + np.abs(coefficients), done + 1
        if np.count_nonzero(coefficients) > FEW:
            break
    return total / done
