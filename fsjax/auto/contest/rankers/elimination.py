"""Recursive feature elimination by the weights of a linear model."""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC

from fsjax.auto.contest.rankers.filters import univariate
from fsjax.auto.contest.rankers.parts import (
    Part,
    fewer_columns,
    fewer_rows,
    standard_targets,
    weighted_rows,
)
from fsjax.auto.contest.rankers.ranking import scores_of_order
from fsjax.tasks import get_task

#: Most rows and values of the dense table at full effort, and most rows of the support vector
#: machine, which has no closed form.
ROWS, VALUES, MACHINE_ROWS = 3_000, 4_000_000, 1_000

#: Share of the columns that a step eliminates: with more than :data:`_MANY`, and with fewer.
_MANY, _LARGE_SHARE, _SHARE = 500, 0.5, 0.1

#: Ridge for standardised columns: if there are at least as many columns as rows, and otherwise.
_WIDE_RIDGE, _RIDGE = 10.0, 1.0

#: Iterations of the support vector machine; the order of columns settles long before it converges.
_ITERATIONS = 300


def rfe(part: Part, task: str, seed: int, effort: float = 1.0) -> np.ndarray:
    """Recursive feature elimination (Guyon et al. 2002): drops the smallest weights and refits.

    For classes the model is a linear support vector machine if there are more rows than columns.
    Otherwise, and for numbers, it is ridge regression of all targets, classes as indicators: a
    support vector machine with squared errors (Suykens and Vandewalle 1999), which has a closed
    form in the rows or in the columns, whichever are fewer.
    """
    rows = fewer_rows(part, task, int(ROWS * effort), seed)
    relevance = univariate(rows, task, seed)
    machine = (
        get_task(task).target.classes
        and part.X.shape[1] < len(rows.y)
        and (rows.y != rows.y[0]).any()
    )
    if machine:
        rows = fewer_rows(rows, task, int(MACHINE_ROWS * effort), seed)
    table = fewer_columns(rows, relevance, VALUES // len(rows.y))
    weights = table.weights
    Y = weighted_rows(standard_targets(table.y, task, weights), weights)
    columns = table.X if machine else weighted_rows(table.X, weights)
    ridge = _WIDE_RIDGE if len(table.columns) >= len(Y) else _RIDGE
    left, eliminated = np.arange(len(table.columns)), []
    while len(left) > 1:
        X = columns[:, left]
        if machine:
            coefficients = _machine_coefficients(X, table.y, weights)
        else:
            coefficients = _ridge_coefficients(X, Y, ridge)
        order = np.argsort(-np.square(coefficients).sum(axis=1), kind="stable")
        share = _LARGE_SHARE if len(left) > _MANY else min(_LARGE_SHARE, _SHARE / effort)
        kept = len(left) - max(1, int(share * len(left)))
        eliminated.append(left[order[kept:]])
        left = left[np.sort(order[:kept])]
    order = np.concatenate([left, *eliminated[::-1]])
    return scores_of_order(table.columns[order], relevance)


def _machine_coefficients(X: np.ndarray, y: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
    """Coefficients ``(d, C)`` of a linear support vector machine, one class against the rest."""
    model = LinearSVC(dual="auto", max_iter=_ITERATIONS, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        # Rows of length 1 on average suit the default penalty, however many columns are left.
        return model.fit(X / np.sqrt(X.shape[1]), y, sample_weight=weights).coef_.T


def _ridge_coefficients(X: np.ndarray, Y: np.ndarray, ridge: float) -> np.ndarray:
    """Coefficients ``(d, C)`` of ridge regression, by the smaller system of equations."""
    rows, columns = X.shape
    if rows <= columns:
        return X.T @ np.linalg.solve(X @ X.T / columns + ridge * np.eye(rows), Y)
    return np.linalg.solve(X.T @ X / rows + ridge * np.eye(columns), X.T @ Y / rows)
