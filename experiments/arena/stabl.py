"""Stabl's rule (Hedou et al., Nature Biotechnology 2024): stability selection beside decoys."""

from __future__ import annotations

import numpy as np
from sklearn.linear_model import lasso_path

#: Number of halves of the rows, penalties, and the smallest as a share of the largest.
_HALVES, _PENALTIES, _END = 30, 20, 0.05

#: Shares of the halves that may be the threshold.
_THRESHOLDS = np.linspace(0.1, 0.99, 90)


def frequencies(both: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Shares of halves in which Lasso takes a column, at its best penalty, ``(D,)``.

    Args:
      both: ``(n, D)`` standardised columns and decoys.
      y: ``(n,)`` or ``(n, C)`` numbers; of several outputs the best counts.
    """
    targets = (y - y.mean(axis=0)) / y.std(axis=0)
    best = np.zeros(both.shape[1])
    halves = [rng.permutation(len(y))[: len(y) // 2] for _ in range(_HALVES)]
    for target in targets.reshape(len(y), -1).T:
        frequency: np.ndarray | float = 0.0
        for rows in halves:
            X, part = np.asfortranarray(both[rows]), target[rows]
            largest = np.abs(X.T @ part).max() / len(rows)
            alphas = np.geomspace(largest, _END * largest, _PENALTIES)
            frequency = frequency + (lasso_path(X, part, alphas=alphas)[1] != 0) / _HALVES
        best = np.maximum(best, np.max(frequency, axis=1))
    return best


def number_above_decoys(columns: np.ndarray, decoys: np.ndarray) -> int:
    """Number of columns above the threshold at which the share of false ones seems smallest.

    That is one plus the number of decoys above it, divided by the number of columns above it.
    """
    found = (columns > _THRESHOLDS[:, None]).sum(axis=1)
    false = 1 + (decoys > _THRESHOLDS[:, None]).sum(axis=1)
    return int(found[np.argmin(false / np.maximum(found, 1))])
