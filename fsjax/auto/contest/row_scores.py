"""Scores of single rows: their mean is the score of a fold, and their spread that of its error.

For means over rows (accuracy, R2, D2) a row has its own term. For areas and concordance, which
compare pairs of rows, it has the score plus its influence on it (DeLong et al. 1988 for the area
under the ROC curve; the projection of Hajek for pairs in general).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import rankdata

#: Smallest prediction of a mean of counts.
_TINY = 1e-12


def accuracy_of_rows(model: Any, X: Any, y: np.ndarray) -> np.ndarray:
    """``(n,)`` percent of each row's labels that are predicted; y is ``(n,)`` or ``(n, C)``."""
    right = model.predict(X) == y
    return 100.0 * right.reshape(len(y), -1).mean(axis=1)


def r2_of_rows(model: Any, X: Any, y: np.ndarray) -> np.ndarray:
    """``(n,)`` terms of R2; y is ``(n,)`` or ``(n, C)``. NaN where the rows share one target."""
    truth, predicted = (values.reshape(len(y), -1) for values in (y, model.predict(X)))
    variance = truth.var(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        return (1.0 - np.square(truth - predicted) / variance).mean(axis=1)


def d2_of_rows(model: Any, X: Any, y: np.ndarray) -> np.ndarray:
    """``(n,)`` terms of D2, of the Poisson deviance; y is ``(n,)`` or ``(n, C)`` counts."""
    truth, predicted = (values.reshape(len(y), -1) for values in (y, model.predict(X)))
    least = _deviances(truth, np.broadcast_to(truth.mean(axis=0), truth.shape)).mean(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        return (1.0 - _deviances(truth, predicted) / least).mean(axis=1)


def auc_of_rows(model: Any, X: Any, y: np.ndarray) -> np.ndarray:
    """``(n,)`` areas under the ROC curve plus influences; y is ``(n,)`` classes 0 and 1."""
    if hasattr(model, "decision_function"):
        values = model.decision_function(X)
    else:
        values = model.predict_proba(X)[:, 1]
    positive = y == y.max()
    count, rest = positive.sum(), (~positive).sum()
    if not rest:
        return np.full(len(y), np.nan)
    ranks = rankdata(values)
    within = np.empty(len(y))
    within[positive], within[~positive] = rankdata(values[positive]), rankdata(values[~positive])
    # The share of the rows of the other class on the right side of each row.
    share = (ranks - within) / np.where(positive, rest, count)
    share = np.where(positive, share, 1.0 - share)
    area = share[positive].mean()
    return area + (share - area) * len(y) / np.where(positive, count, rest)


def concordance_of_rows(model: Any, X: Any, y: np.ndarray) -> np.ndarray:
    """``(n,)`` concordance indices plus influences; y is ``(n, 2)`` time and event."""
    risk, time, event = model.predict(X), y[:, 0], y[:, 1] > 0
    # The first row of a pair has the event, before the second one's time.
    earlier = event[:, None] & (
        (time[:, None] < time) | ((time[:, None] == time) & event[:, None] & ~event)
    )
    concordant = earlier * (0.5 + 0.5 * np.sign(risk[:, None] - risk))
    pairs = earlier.sum()
    if not pairs:
        return np.full(len(y), np.nan)
    index = concordant.sum() / pairs
    rows = [part.sum(axis=0) + part.sum(axis=1) for part in (concordant, earlier)]
    return index + len(y) * (rows[0] - index * rows[1]) / pairs


def _deviances(truth: np.ndarray, expected: np.ndarray) -> np.ndarray:
    expected = np.maximum(expected, _TINY)
    logarithm = np.log(np.where(truth > 0, truth, 1.0) / expected)
    return 2.0 * (np.where(truth > 0, truth * logarithm, 0.0) - truth + expected)
