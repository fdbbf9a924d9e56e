"""Simple selectors that everything else has to beat: each ranks all columns in one go."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from scipy.sparse import csc_array, issparse
from sklearn.ensemble import ExtraTreesClassifier, ExtraTreesRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_selection import f_classif, f_regression
from sklearn.linear_model import lasso_path

from fsjax.auto.preparation import Part
from fsjax.auto.sparse import FEW

#: Scores of columns ``(D,)``, larger is better, from training rows, a task and a seed.
Score = Callable[[Part, str, int], np.ndarray]

#: Points of the path, and the weakest penalty as a share of the strongest.
_PATH, _END = 40, 0.02

#: Trees of a forest.
_TREES = 300

#: What marks columns that did not take part: below every score.
_NONE = -np.inf


class Ranking(NamedTuple):
    """Units in order of importance.

    Attributes:
      order: for each size, distinct units, best first; a ranking has one order for all sizes.
      scores: ``(G,)`` importance of every unit.
    """

    order: dict[int, np.ndarray]
    scores: np.ndarray


def univariate(part: Part, task: str, seed: int) -> np.ndarray:
    """F statistic of each column by itself (analysis of variance, or of a linear regression)."""
    statistics = [_univariate(part.X, y, task) for y in targets(part.y, task, split=False)]
    # That of a column which tells its target exactly is the largest number there is.
    with np.errstate(over="ignore"):
        return np.mean(statistics, axis=0)


def _univariate(X: np.ndarray, y: np.ndarray, task: str) -> np.ndarray:
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # constant columns
        found = (f_classif if task == "classification" else f_regression)(X, y)[0]
    # Rounding can turn the variation within classes, where there is none, into less than none.
    return np.where(np.isnan(found), _NONE, np.abs(found))


def l1(part: Part, task: str, seed: int) -> np.ndarray:
    """Absolute coefficient, the mean over a path of Lasso from the strongest penalty down.

    Classes are regressed one against the rest on their indicators, and their coefficients added.
    """
    total = np.zeros(part.X.shape[1])
    X = csc_array(part.X) if issparse(part.X) else np.asfortranarray(part.X)
    for y in targets(part.y, task, split=True):
        deviation = y.std()
        if deviation == 0:
            continue
        with warnings.catch_warnings():
            # The weakest penalties may stop early; their share in the mean hardly matters.
            warnings.simplefilter("ignore", ConvergenceWarning)
            total += (_sparse_path if issparse(X) else _path)(X, (y - y.mean()) / deviation)
    return total


def _path(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Mean absolute coefficients ``(D,)``."""
    return np.abs(lasso_path(X, y, eps=_END, alphas=_PATH)[1]).mean(axis=1)


def _sparse_path(X: csc_array, y: np.ndarray) -> np.ndarray:
    """The same of a sparse table, centred within; it ends where too many columns take part.

    The solver sees the columns of the sequential strong rule (Tibshirani et al. 2012), and those
    that this rule left out wrongly.
    """
    rows, mean = X.shape[0], np.asarray(X.mean(axis=0)).ravel()
    coefficients, total, done = np.zeros(X.shape[1]), np.zeros(X.shape[1]), 0
    slope = np.abs(X.T @ y) / rows
    penalty = strongest = slope.max()
    if not strongest:
        return total
    for weaker in np.geomspace(strongest, _END * strongest, _PATH):
        seen = (slope >= 2 * weaker - penalty) | (coefficients != 0)
        penalty, missed = weaker, seen
        while missed.any():
            some = X[:, seen]
            centring = {"X_offset": mean[seen], "X_scale": np.ones(some.shape[1])}
            own = lasso_path(some, y, alphas=[penalty], coef_init=coefficients[seen], **centring)
            coefficients[seen] = own[1][:, 0]
            residual = y - some @ coefficients[seen]
            slope = np.abs(X.T @ (residual - residual.mean())) / rows
            missed = ~seen & (slope > penalty)
            seen = seen | missed
        total, done = total + np.abs(coefficients), done + 1
        if np.count_nonzero(coefficients) > FEW:
            break
    return total / done


def forest(part: Part, task: str, seed: int) -> np.ndarray:
    """Decrease of impurity by each column in a forest of extremely randomised trees."""
    kind = ExtraTreesClassifier if task == "classification" else ExtraTreesRegressor
    model = kind(_TREES, min_samples_leaf=2, max_features="sqrt", random_state=seed)
    y = np.stack(targets(part.y, task, split=False), axis=-1)
    X = csc_array(part.X.astype(np.float32)) if issparse(part.X) else part.X
    return model.fit(X, y[:, 0] if y.shape[1] == 1 else y).feature_importances_


def random(part: Part, task: str, seed: int) -> np.ndarray:
    """Chance: scores that have nothing to do with the data."""
    return np.random.default_rng(seed).random(part.X.shape[1])


def targets(y: np.ndarray, task: str, split: bool) -> Sequence[np.ndarray]:
    """The target as single columns of numbers; classes whole, or ``split`` into indicators.

    Counts become their roots, whose variance does not grow with the mean; time and event become
    :func:`martingale_residuals`.
    """
    if task == "survival":
        return [martingale_residuals(y)]
    if task == "counts":
        y = np.sqrt(y)
    if task != "classification":
        return [y] if y.ndim == 1 else list(y.T)
    if not split:
        return [y]
    classes = np.unique(y)
    if len(classes) == 2:
        return [(y == classes[1]).astype(np.float64)]
    return [(y == label).astype(np.float64) for label in classes]


def martingale_residuals(y: np.ndarray) -> np.ndarray:
    """Events beyond those expected of a row by its time, ``(N,)``, larger for earlier events.

    Of the model without columns: the event minus the cumulative hazard (Nelson and Aalen) at the
    time (Therneau, Grambsch and Fleming 1990).

    Args:
      y: ``(N, 2)`` time and event.
    """
    times, place = np.unique(y[:, 0], return_inverse=True)
    events = np.bincount(place, weights=y[:, 1], minlength=len(times))
    at_risk = np.cumsum(np.bincount(place, minlength=len(times))[::-1])[::-1]
    return y[:, 1] - np.cumsum(events / at_risk)[place]


def rank_units(scores: np.ndarray, groups: np.ndarray, sizes: Sequence[int]) -> Ranking:
    """Units by the best score of their columns; ties go to the first."""
    units = np.full(int(groups.max()) + 1, _NONE)
    np.maximum.at(units, groups, scores)
    order = np.argsort(-units, kind="stable")
    return Ranking({size: order[:size] for size in sizes}, units)


#: The simple selectors by name, cheapest first.
SIMPLE: dict[str, Score] = {
    "random": random,
    "univariate": univariate,
    "l1": l1,
    "forest": forest,
}
