"""Selectors by extremely randomised trees: their importance, and Boruta's shadow test."""

from __future__ import annotations

import numpy as np
from scipy.sparse import issparse
from sklearn.ensemble import ExtraTreesClassifier, ExtraTreesRegressor

from fsjax.auto.contest.rankers.filters import univariate
from fsjax.auto.contest.rankers.parts import Part, fewer_columns, fewer_rows, standard_targets
from fsjax.auto.reading.column_operations import Columns, by_column

#: Trees of a forest at full effort and at least, and most rows.
TREES, MIN_TREES, ROWS = 300, 20, 10_000

#: Rounds of the shadow test at full effort and at least, trees of a round, most rows and columns.
ROUNDS, MIN_ROUNDS, ROUND_TREES, SHADOW_ROWS, SHADOW_COLUMNS = 12, 3, 25, 2_500, 400


def forest(part: Part, task: str, seed: int, effort: float = 1.0) -> np.ndarray:
    """Decrease in impurity by each column in a forest of extremely randomised trees."""
    rows = fewer_rows(part, task, ROWS, seed)
    X = by_column(rows.X.astype(np.float32)) if issparse(rows.X) else rows.X
    trees = max(MIN_TREES, round(TREES * effort))
    return _importances(X, rows.y, task, trees, seed, rows.weights)


def shadow(part: Part, task: str, seed: int, effort: float = 1.0) -> np.ndarray:
    """How often a column is more important than all permuted copies (Kursa and Rudnicki 2010).

    Each round permutes the columns again and grows a forest on columns and copies; ties are broken
    by mean importance. Only the columns with the largest importance in a forest or the largest F
    statistic take part; the others follow, by importance.
    """
    rows = fewer_rows(part, task, SHADOW_ROWS, seed)
    rounds = max(MIN_ROUNDS, round(ROUNDS * effort))
    importance = forest(rows, task, seed, effort / 3)
    relevance = np.maximum(_share_of_rank(importance), _share_of_rank(univariate(rows, task, seed)))
    screened = fewer_columns(rows, relevance, SHADOW_COLUMNS)
    rng = np.random.default_rng(seed)
    real = screened.X.astype(np.float32)
    hits, total = np.zeros(real.shape[1]), np.zeros(real.shape[1])
    for number in range(rounds):
        both = np.hstack([real, rng.permuted(real, axis=0)])
        shares = _importances(both, screened.y, task, ROUND_TREES, seed + number, screened.weights)
        column_shares, shadow_shares = np.split(shares, 2)
        hits += column_shares > shadow_shares.max()
        total += column_shares
    scores = _share_of_rank(importance) - 1.0
    # A mean importance counts less than a hit.
    scores[screened.columns] = hits + total / (2 * total.max() or 1.0)
    return scores


def _importances(
    X: Columns, y: np.ndarray, task: str, trees: int, seed: int, weights: np.ndarray | None
) -> np.ndarray:
    kind = ExtraTreesClassifier if task == "classification" else ExtraTreesRegressor
    model = kind(trees, min_samples_leaf=2, max_features="sqrt", n_jobs=-1, random_state=seed)
    own_unit = task not in ("classification", "multilabel")
    # Trees take small variances for none, and outputs of large ones for the only ones.
    Y = standard_targets(y, task, weights) if own_unit else y.reshape(len(y), -1)
    if not Y.shape[1]:
        return np.zeros(X.shape[1])
    outputs = Y[:, 0] if Y.shape[1] == 1 else Y
    return model.fit(X, outputs, sample_weight=weights).feature_importances_


def _share_of_rank(scores: np.ndarray) -> np.ndarray:
    """``(D,)`` in [0, 1), larger for better scores."""
    return np.argsort(np.argsort(scores, kind="stable")) / len(scores)
