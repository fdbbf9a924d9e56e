"""The part of each test row in a score, from which comparisons of two models get their error.

The mean over the rows of a fold is the score. Accuracy, squared errors and deviances are sums over
rows; areas and concordances are sums over pairs of rows, of which each row gets its influence
(DeLong, DeLong and Clarke-Pearson 1988).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from scipy.special import xlogy
from scipy.stats import rankdata

#: From a fitted model, test columns, test targets and all targets to values ``(n,)``.
RowScore = Callable[[Any, Any, np.ndarray, np.ndarray], np.ndarray]


def _correct(model: Any, X: Any, y: np.ndarray, every: np.ndarray) -> np.ndarray:
    del every
    return 100.0 * (model.predict(X) == y).reshape(len(y), -1).mean(axis=1)


def _explained(model: Any, X: Any, y: np.ndarray, every: np.ndarray) -> np.ndarray:
    squares = np.square(np.reshape(model.predict(X), y.shape) - y).reshape(len(y), -1)
    return 1.0 - (squares / _variance(every)).mean(axis=1)


def _variance(y: np.ndarray) -> np.ndarray:
    variance = y.reshape(len(y), -1).var(axis=0)
    return np.where(variance > 0, variance, np.inf)


def _explained_deviance(model: Any, X: Any, y: np.ndarray, every: np.ndarray) -> np.ndarray:
    outputs = every.reshape(len(every), -1)
    expected = np.reshape(model.predict(X), (len(y), -1))
    least = _deviances(outputs, outputs.mean(axis=0)).mean(axis=0)
    losses = _deviances(y.reshape(len(y), -1), expected)
    return 1.0 - (losses / np.where(least > 0, least, np.inf)).mean(axis=1)


def _deviances(y: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """Poisson deviance of each count."""
    expected = np.maximum(expected, np.finfo(np.float64).tiny)
    return 2.0 * (xlogy(y, y) - xlogy(y, expected) - y + expected)


def _area(model: Any, X: Any, y: np.ndarray, every: np.ndarray) -> np.ndarray:
    del every
    if hasattr(model, "decision_function"):
        scores = model.decision_function(X)
    else:
        scores = model.predict_proba(X)[:, 1]
    return area_by_row(scores, y > 0)


def area_by_row(scores: np.ndarray, positive: np.ndarray) -> np.ndarray:
    """``(n,)`` values whose mean is the area under the ROC curve; NaN with one class."""
    values, ones = np.full(len(scores), np.nan), int(positive.sum())
    zeros = len(scores) - ones
    if not ones or not zeros:
        return values
    ranks = rankdata(scores)
    # Shares of the rows of the other class that stand on the right side of a row.
    values[positive] = (ranks[positive] - rankdata(scores[positive])) / zeros
    values[~positive] = 1.0 - (ranks[~positive] - rankdata(scores[~positive])) / ones
    area = values[positive].mean()
    share = np.where(positive, ones, zeros) / len(scores)
    return area + (values - area) / share


def _concordance(model: Any, X: Any, y: np.ndarray, every: np.ndarray) -> np.ndarray:
    del every
    return concordance_by_row(y[:, 0], y[:, 1] > 0, np.ravel(model.predict(X)))


def concordance_by_row(time: np.ndarray, event: np.ndarray, risk: np.ndarray) -> np.ndarray:
    """``(n,)`` values whose mean is the concordance index; NaN if no two rows are comparable."""
    later = (time[:, None] < time) | ((time[:, None] == time) & ~event)
    pairs = event[:, None] & later
    total = pairs.sum()
    if not total:
        return np.full(len(time), np.nan)
    right = np.where(pairs, (np.sign(risk[:, None] - risk) + 1.0) / 2.0, 0.0)
    index = right.sum() / total
    of_pairs = right - index * pairs
    return index + len(time) * (of_pairs.sum(axis=0) + of_pairs.sum(axis=1)) / total


#: By the name of a metric; scorers of scikit-learn are not sums over rows.
ROW_SCORES: Final[dict[str, RowScore]] = {
    "accuracy": _correct,
    "label_accuracy": _correct,
    "r2": _explained,
    "rank_r2": _explained,
    "d2": _explained_deviance,
    "auc": _area,
    "concordance_index": _concordance,
}
