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

from fsjax.auto.contest.folds import Fold
from fsjax.auto.contest.rankers.parts import Part, standard_targets
from fsjax.auto.contest.rule import paired_error
from fsjax.auto.reading.column_operations import Columns

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
    Y = standard_targets(part.y, task, part.weights)
    if not Y.shape[1]:
        return "l1"
    linear, trees = [], []
    for number, (train, test) in enumerate(folds):
        rows = np.sort(np.random.default_rng((seed, number)).permutation(train)[:_ROWS])
        X, later, y = part.X[rows], part.X[test], Y[rows]
        of_train, of_test = (
            None if part.weights is None else part.weights[places] for places in (rows, test)
        )
        by_lasso = _by_lasso(X, y, later, of_train)
        by_forest = _by_forest(X, y, later, of_train, seed)
        linear.append(_agreement(by_lasso, Y[test], of_test))
        trees.append(_agreement(by_forest[None], Y[test], of_test))
    lasso = np.array(linear)
    gain = np.array(trees)[:, 0] - lasso[:, lasso.mean(axis=0).argmax()]
    return "forest" if gain.mean() > paired_error(gain, len(folds)) else "l1"


def _by_lasso(X: Columns, Y: np.ndarray, later: Columns, weights: np.ndarray | None) -> np.ndarray:
    """Predictions ``(penalties, n, C)`` for later rows."""
    predictions = np.zeros((len(_PENALTIES), later.shape[0], Y.shape[1]))
    for place, y in enumerate(Y.T):
        counts = np.ones(len(y)) if weights is None else weights / weights.mean()
        centred = y - counts @ y / len(y)
        strongest = np.abs(X.T @ (counts * centred)).max() / len(y)
        model = Lasso(warm_start=True, max_iter=300)
        for number, share in enumerate(_PENALTIES):
            if not strongest:
                break
            with warnings.catch_warnings():
                # A rough solution is enough for a comparison.
                warnings.simplefilter("ignore", ConvergenceWarning)
                model.set_params(alpha=share * strongest).fit(X, centred, weights)
            predictions[number, :, place] = model.predict(later)
    return predictions


def _by_forest(
    X: Columns, Y: np.ndarray, later: Columns, weights: np.ndarray | None, seed: int
) -> np.ndarray:
    """Predictions ``(n, C)`` for later rows."""
    columns = X.shape[1]
    model = ExtraTreesRegressor(
        _TREES,
        min_samples_leaf=_LEAF,
        max_features=min(max(columns // 3, 1), max(_COLUMNS, int(columns**0.5))),
        random_state=seed,
    )
    outputs = Y[:, 0] if Y.shape[1] == 1 else Y
    return model.fit(X, outputs, weights).predict(later).reshape(-1, Y.shape[1])


def _agreement(predictions: np.ndarray, Y: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
    """Rank correlation ``(K,)`` of predictions ``(K, n, C)`` and the target, the mean over C.

    Unlike an error, it depends neither on how strongly a model shrinks its predictions nor on the
    scale of the target, as that of probabilities.
    """
    ranks, target = rankdata(predictions, axis=1), rankdata(Y, axis=0)
    counts = (np.ones(len(Y)) if weights is None else weights)[:, None]
    ranks = ranks - np.average(ranks, axis=1, weights=weights)[:, None]
    target = target - np.average(target, axis=0, weights=weights)
    squares = (counts * np.square(ranks)).sum(axis=1), (counts * np.square(target)).sum(axis=0)
    length = np.sqrt(squares[0] * squares[1])
    products = (counts * ranks * target).sum(axis=1)
    return (products / np.where(length > 0, length, np.inf)).mean(axis=-1)
