"""A plain permutation test: is a cross-validated AUC higher than those of permuted labels?"""

from __future__ import annotations

import numpy as np
from scipy.stats import rankdata
from sklearn.model_selection import StratifiedKFold

_FOLDS = 5


def permutation_test(
    X: np.ndarray, y: np.ndarray, seed: int, draws: int = 999
) -> tuple[float, float]:
    """AUC of ridge regression on all columns over five folds, and its p-value.

    Ridge regression is linear in the labels, so one matrix per fold predicts all permutations.

    Args:
      X: ``(N, D)``.
      y: ``(N,)`` labels 0 and 1.
      seed: of folds and permutations.
      draws: permutations.

    Returns:
      The mean AUC over the folds, and the p-value, ``(1 + those not below it) / (1 + draws)``.
    """
    rng = np.random.default_rng((seed, 7))
    labels = np.stack([y, *(rng.permutation(y) for _ in range(draws))], axis=1).astype(np.float64)
    total = np.zeros(labels.shape[1])
    folds = StratifiedKFold(_FOLDS, shuffle=True, random_state=seed).split(X, y)
    for train, test in folds:
        mean, deviation = X[train].mean(axis=0), X[train].std(axis=0)
        Z = (X - mean) / np.where(deviation > 0, deviation, 1.0)
        # A penalty as large as the number of columns: the mean eigenvalue of a wide table.
        kernel = Z[train] @ Z[train].T + X.shape[1] * np.eye(len(train))
        centred = labels[train] - labels[train].mean(axis=0)
        total += auc(Z[test] @ (Z[train].T @ np.linalg.solve(kernel, centred)), labels[test])
    scores = total / _FOLDS
    return float(scores[0]), float(np.mean(scores >= scores[0] - 1e-12))


def auc(scores: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Area under the ROC curve by column, ``(P,)``; 0.5 where a column has one class.

    Args:
      scores: ``(M, P)``.
      labels: ``(M, P)`` of 0 and 1.
    """
    ones = labels.sum(axis=0)
    pairs = ones * (len(labels) - ones)
    above = (rankdata(scores, axis=0) * labels).sum(axis=0) - ones * (ones + 1) / 2
    return np.where(pairs > 0, above / np.maximum(pairs, 1), 0.5)
