"""The covariance of the columns that knockoffs are drawn from.

Two estimates compete. That of Ledoit and Wolf (2004) shrinks all correlations alike: of 200 columns
in 500 rows, each correlated with the next at 0.6, it leaves 0.48. Knockoffs drawn from it carry
less information about the neighbours of their column than the column itself, so that a method that
scores columns one by one, such as a forest, prefers useless columns beside a useful one to their
knockoffs. A Gaussian graphical model keeps the covariances of neighbours as they are in the rows,
and derives all others from these; it does not suit columns that share a few common factors. Held-
out rows decide which of the two is used.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg
from sklearn.covariance import ledoit_wolf

#: Fewer rows than this are not split to compare the estimates.
_MIN_ROWS = 20

#: Most neighbours of a column, as a number and as a share of the rows.
_MAX_NEIGHBOURS, _SHARE_OF_ROWS = 20, 0.1

#: Most rounds over all columns, and the change of a covariance below which they end.
_ROUNDS, _TOLERANCE = 50, 1e-3


def estimated_covariance(Z: np.ndarray) -> np.ndarray:
    """The covariance ``(D, D)`` of standardised columns, by whichever estimate predicts better.

    Each estimate is computed from one half of the rows and scored by the Gaussian likelihood of the
    other half (a fixed random split); the better one is computed again from all rows.

    Args:
      Z: ``(N, D)``, mean 0 and deviation 1, or 0 throughout where a column is constant.

    Returns:
      A positive definite matrix.
    """
    if len(Z) >= _MIN_ROWS and Z.shape[1] > 1:
        order = np.random.default_rng(0).permutation(len(Z))
        first, second = Z[order[: len(Z) // 2]], Z[order[len(Z) // 2 :]]
        by_graph = _log_likelihood(graph_covariance(first), second)
        if by_graph > _log_likelihood(shrunk_covariance(first), second):
            covariance = graph_covariance(Z)
            if _factor(covariance) is not None:
                return covariance
    return shrunk_covariance(Z)


def shrunk_covariance(Z: np.ndarray) -> np.ndarray:
    """Ledoit and Wolf's mixture of the sample covariance ``(D, D)`` and a multiple of identity."""
    return ledoit_wolf(Z, assume_centered=True)[0] + 1e-6 * np.eye(Z.shape[1])


def graph_covariance(Z: np.ndarray) -> np.ndarray:
    """Covariance ``(D, D)`` of a sparse Gaussian graphical model.

    Neighbours are found column by column, by forward selection until the residual of a column has
    no correlation above ``sqrt(2 log(D) / N)`` with any other. All other covariances follow from
    those of neighbours by the regressions of Hastie, Tibshirani and Friedman ("The Elements of
    Statistical Learning", algorithm 17.1). With too many neighbours the result may not be positive
    definite.
    """
    rows, columns = Z.shape
    sample = Z.T @ Z / rows
    # A constant column stands by itself.
    np.fill_diagonal(sample, np.where(np.diag(sample) > 0, np.diag(sample), 1.0))
    neighbours = _neighbours(sample, rows)
    covariance = np.diag(np.diag(sample))
    for _ in range(_ROUNDS):
        largest_change = 0.0
        for column, near in enumerate(neighbours):
            if not len(near):
                continue
            weights = _solved(covariance[np.ix_(near, near)], sample[near, column])
            implied = weights @ covariance[near]
            implied[column] = sample[column, column]
            change = np.abs(implied - covariance[column]).max()
            largest_change = max(largest_change, float(change))
            covariance[column] = covariance[:, column] = implied
        if largest_change < _TOLERANCE:
            break
    return covariance


def _neighbours(sample: np.ndarray, rows: int) -> list[np.ndarray]:
    """The neighbours of each column; the relation is symmetric."""
    columns = len(sample)
    limit = np.sqrt(2.0 * np.log(columns) / rows)
    most = min(_MAX_NEIGHBOURS, int(_SHARE_OF_ROWS * rows))
    linked = np.zeros((columns, columns), bool)
    for column in range(columns):
        near: list[int] = []
        left, variance = sample[column].copy(), sample[column, column]
        while len(near) < most:
            size = np.abs(left)
            size[[column, *near]] = 0.0
            strongest = int(size.argmax())
            if size[strongest] <= limit * np.sqrt(variance):
                break
            near.append(strongest)
            weights = _solved(sample[np.ix_(near, near)], sample[near, column])
            left = sample[column] - weights @ sample[near]
            variance = max(float(left[column]), 0.0)
        linked[column, near] = True
    return [np.flatnonzero(row) for row in linked | linked.T]


def _solved(matrix: np.ndarray, right: np.ndarray) -> np.ndarray:
    """``matrix^-1 right``, with a small ridge: copies of a column make the matrix singular."""
    return np.linalg.solve(matrix + 1e-9 * np.eye(len(matrix)), right)


def _factor(covariance: np.ndarray) -> np.ndarray | None:
    """The lower Cholesky factor, or ``None`` if the matrix is not positive definite."""
    try:
        return np.linalg.cholesky(covariance - 1e-6 * np.eye(len(covariance)))
    except np.linalg.LinAlgError:
        return None


def _log_likelihood(covariance: np.ndarray, Z: np.ndarray) -> float:
    """Mean Gaussian log-likelihood of rows without its constant; -inf if not positive definite."""
    factor = _factor(covariance)
    if factor is None:
        return -np.inf
    white = scipy.linalg.solve_triangular(factor, Z.T, lower=True)
    return float(-0.5 * np.mean(np.sum(white**2, axis=0)) - np.log(np.diag(factor)).sum())
