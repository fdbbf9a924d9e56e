"""Whether the Lasso path or a forest is compared between columns and decoys.

The Lasso path finds columns with a linear effect at the lowest cost, and none of those that matter
through a square or together. So both models predict rows that they were not trained on. They do so
from the columns *and* a set of decoys: a useless column and its decoy may be swapped without a
change of this table, and hence of the choice, so that a choice by the data leaves the signs of the
statistics of useless columns random, and the false discovery rate where it is.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np
from scipy.stats import rankdata
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Lasso

from fsjax.auto.folds import Fold
from fsjax.auto.rankers.parts import Part, standard_targets
from fsjax.auto.rule import paired_error
from fsjax.tables.columns import Columns

#: Most rows that a model is trained on.
_ROWS = 2000

#: Penalties of the Lasso, as shares of the largest.
_PENALTIES = np.geomspace(0.7, 0.03, 8)

#: Trees of the forest, rows of a leaf, and most columns that a split chooses from.
_TREES, _LEAF, _COLUMNS = 100, 5, 100


def better_predictor(part: Part, task: str, folds: Sequence[Fold], seed: int = 0) -> str:
    """``forest`` if it predicts better than the Lasso by over a standard error, otherwise ``l1``.

    Args:
      part: standardised columns and decoys, and the target.
      task: a supervised task.
      folds: rows that models are trained and tested on.
      seed: of the rows that are used, if there are many, and of the forest.
    """
    Y = standard_targets(part.y, task)
    if not Y.shape[1]:
        return "l1"
    linear, trees = [], []
    for number, (train, test) in enumerate(folds):
        rows = np.random.default_rng((seed, number)).permutation(train)[:_ROWS]
        X, later = part.X[np.sort(rows)], part.X[test]
        y = Y[np.sort(rows)]
        linear.append(_agreement(_by_lasso(X, y, later), Y[test]))
        trees.append(_agreement(_by_forest(X, y, later, seed)[None], Y[test]))
    lasso = np.array(linear)
    gain = np.array(trees)[:, 0] - lasso[:, lasso.mean(axis=0).argmax()]
    return "forest" if gain.mean() > paired_error(gain, len(folds)) else "l1"


def _by_lasso(X: Columns, Y: np.ndarray, later: Columns) -> np.ndarray:
    """Predictions ``(penalties, n, C)`` for later rows."""
    predictions = np.zeros((len(_PENALTIES), later.shape[0], Y.shape[1]))
    for place, y in enumerate(Y.T):
        centred = y - y.mean()
        strongest = np.abs(X.T @ centred).max() / len(y)
        model = Lasso(warm_start=True, max_iter=300)
        for number, share in enumerate(_PENALTIES):
            if not strongest:
                break
            with warnings.catch_warnings():
                # A rough solution is enough for a comparison.
                warnings.simplefilter("ignore", ConvergenceWarning)
                model.set_params(alpha=share * strongest).fit(X, centred)
            predictions[number, :, place] = model.predict(later)
    return predictions


def _by_forest(X: Columns, Y: np.ndarray, later: Columns, seed: int) -> np.ndarray:
    """Predictions ``(n, C)`` for later rows."""
    columns = X.shape[1]
    model = ExtraTreesRegressor(
        _TREES,
        min_samples_leaf=_LEAF,
        max_features=min(max(columns // 3, 1), max(_COLUMNS, int(columns**0.5))),
        random_state=seed,
    )
    return model.fit(X, Y[:, 0] if Y.shape[1] == 1 else Y).predict(later).reshape(-1, Y.shape[1])


def _agreement(predictions: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """Rank correlation ``(K,)`` of predictions ``(K, n, C)`` and the target, the mean over C.

    Unlike an error, it depends neither on how strongly a model shrinks its predictions nor on the
    scale of the target, as that of probabilities.
    """
    ranks, target = rankdata(predictions, axis=1), rankdata(Y, axis=0)
    ranks, target = ranks - ranks.mean(axis=1, keepdims=True), target - target.mean(axis=0)
    length = np.sqrt(np.square(ranks).sum(axis=1) * np.square(target).sum(axis=0))
    products = (ranks * target).sum(axis=1)
    return (products / np.where(length > 0, length, np.inf)).mean(axis=-1)
