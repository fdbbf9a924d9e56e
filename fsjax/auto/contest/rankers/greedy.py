"""Selectors that add one column at a time: mRMR and forward selection."""

from __future__ import annotations

import numpy as np

from fsjax.auto.contest.rankers.filters import univariate
from fsjax.auto.contest.rankers.parts import (
    Part,
    fewer_columns,
    fewer_rows,
    standard_targets,
    weighted_rows,
)
from fsjax.auto.contest.rankers.ranking import LEFT_OUT, scores_of_order

#: Columns that are added one by one at full effort and at least, most rows, and most values of the
#: dense table.
STEPS, MIN_STEPS, ROWS, VALUES = 300, 30, 10_000, 4_000_000

#: Most columns that a pass of forward selection adds.
_PASS = 8

#: Mean absolute correlation below which redundancy does not matter.
_MIN_CORRELATION = 1e-3


def mrmr(part: Part, task: str, seed: int, effort: float = 1.0) -> np.ndarray:
    """Minimum redundancy, maximum relevance (Ding and Peng 2005), their quotient "FCQ".

    Each step adds the column with the largest ratio of its F statistic to its mean absolute
    correlation with the columns added before.
    """
    rows = fewer_rows(part, task, ROWS, seed)
    relevance = univariate(rows, task, seed)
    table = fewer_columns(rows, relevance, VALUES // len(rows.y))
    X, steps = weighted_rows(table.X, table.weights), _steps(len(table.columns), effort)
    relevant = np.minimum(relevance[table.columns], np.finfo(np.float64).max)
    redundancy = np.zeros(len(table.columns))
    quotient, order = relevant.copy(), []
    for step in range(1, steps + 1):
        best = int(np.argmax(quotient))
        order.append(best)
        redundancy += np.abs(X[:, best] @ X) / len(X)
        quotient = relevant / np.maximum(redundancy / step, _MIN_CORRELATION)
        quotient[order] = LEFT_OUT
    rest = np.argsort(-quotient, kind="stable")[: len(quotient) - len(order)]
    return scores_of_order(table.columns[np.concatenate([order, rest]).astype(int)], relevance)


def forward(part: Part, task: str, seed: int, effort: float = 1.0) -> np.ndarray:
    """Forward selection for linear regression of all targets at once, classes as indicators.

    Each step adds the column that reduces the squared error most (orthogonal least squares; Chen,
    Cowan and Grant 1991). A pass ends before the columns fit noise, and the next pass starts again
    with the columns that are left.
    """
    rows = fewer_rows(part, task, ROWS, seed)
    relevance = univariate(rows, task, seed)
    table = fewer_columns(rows, relevance, VALUES // len(rows.y))
    X = weighted_rows(table.X, table.weights)
    Y = weighted_rows(standard_targets(table.y, task, table.weights), table.weights)
    free = np.ones(len(table.columns), bool)
    order: list[int] = []
    while len(order) < _steps(len(free), effort):
        added = _forward_pass(X, Y, free, _PASS)
        if not added:
            break
        order += added
        free[added] = False
    return scores_of_order(table.columns[np.array(order, int)], relevance)


def _forward_pass(X: np.ndarray, Y: np.ndarray, free: np.ndarray, most: int) -> list[int]:
    """The columns that one pass adds, in order.

    Args:
      X: ``(n, d)`` standardised.
      Y: ``(n, C)`` standardised.
      free: ``(d,)`` whether a column may be added.
    """
    residual, cross = Y.copy(), X.T @ Y
    # Squared lengths of the parts of the columns that are orthogonal to those added before.
    lengths = np.full(X.shape[1], float(len(X)))
    basis = np.zeros((len(X), most))
    added: list[int] = []
    for step in range(most):
        usable = free & (lengths > 1e-6 * len(X))
        usable[added] = False
        gain = np.where(usable, np.square(cross).sum(axis=1) / np.maximum(lengths, 1e-300), -1.0)
        best = int(np.argmax(gain))
        if gain[best] <= 1e-9 * Y.size:
            break
        before = basis[:, :step]
        direction = X[:, best] - before @ (before.T @ X[:, best])
        direction /= np.linalg.norm(direction)
        basis[:, step] = direction
        share, projection = direction @ residual, direction @ X
        residual -= np.outer(direction, share)
        cross -= np.outer(projection, share)
        lengths -= np.square(projection)
        added.append(best)
    return added


def _steps(num_columns: int, effort: float) -> int:
    return min(num_columns, max(MIN_STEPS, round(STEPS * effort)))
