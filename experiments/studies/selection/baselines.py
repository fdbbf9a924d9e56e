"""The selectors that ``fsjax select`` is compared with: each orders all columns, best first.

They use scikit-learn and no code of fsjax, so that an error in fsjax's own simple selectors would
show.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence

import numpy as np
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_selection import f_classif, f_regression
from sklearn.linear_model import Lasso, LassoCV, LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import SVC, SVR, LinearSVC, LinearSVR, l1_min_c

from experiments.studies.selection.encoding import Encoded

#: Linear models learn from at most this many rows, drawn at random.
MAX_ROWS = 3000

#: Rows up to which the dual of a linear support vector machine is solved exactly.
_EXACT_ROWS = 2000

#: L1: factors of the penalties for cross-validation, and weaker ones that order the other columns.
_PENALTIES, _WEAKER = np.geomspace(1.5, 300.0, 7), (3.0, 10.0)

#: Share of the columns that a round of recursive elimination drops.
_STEP = 0.2

#: Columns that mRMR picks; the others follow by their F statistic.
_PICKED = 300

#: Forests that are compared with shuffled columns, and trees of each.
_SHADOWS, _TREES = 10, 100


def order_by(scores: np.ndarray, units: np.ndarray) -> np.ndarray:
    """Orders columns by the sum of their encoded numbers' scores; of equal ones the first first."""
    return np.argsort(-np.bincount(units, weights=scores), kind="stable")


def f_scores(data: Encoded) -> np.ndarray:
    """F statistic of each number, ``(E,)``, 0 where it is constant."""
    test = f_classif if data.task == "classification" else f_regression
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        scores = test(data.X.astype(np.float64), data.y)[0]
    return np.nan_to_num(scores, nan=0.0, posinf=float(np.finfo(np.float32).max))


def best_of_units(scores: np.ndarray, units: np.ndarray) -> np.ndarray:
    """The largest score of a column's numbers, ``(D,)``."""
    return np.maximum.reduceat(scores, np.flatnonzero(np.diff(units, prepend=-1)))


def univariate(data: Encoded, seed: int) -> np.ndarray:
    """SelectKBest with the F statistic; a category counts by its best value."""
    del seed
    return np.argsort(-best_of_units(f_scores(data), data.units), kind="stable")


def fewer_rows(data: Encoded, seed: int, most: int = MAX_ROWS) -> Encoded:
    """Draws at most ``most`` of the rows to select from."""
    if len(data.y) <= most:
        return data
    rows = np.random.default_rng(seed).choice(len(data.y), most, replace=False)
    return data._replace(X=data.X[rows], y=data.y[rows])


def l1(data: Encoded, seed: int) -> np.ndarray:
    """Orders columns by their absolute coefficients at the cross-validated L1 penalty.

    Columns with coefficient 0 follow in the order in which they enter at weaker penalties, then by
    their F statistic.
    """
    part = fewer_rows(data, seed)
    fit = _lasso(part) if part.task == "regression" else _logistic(part)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        steps = [fit(weaker) for weaker in (1.0, *_WEAKER)]
    return _as_they_enter(
        [np.bincount(data.units, weights=step) for step in steps], univariate(data, seed)
    )


def _as_they_enter(steps: Sequence[np.ndarray], others: np.ndarray) -> np.ndarray:
    """Orders columns by the first step with a score above 0, and by that score; then the others."""
    order: list[int] = []
    for scores in steps:
        by_score = np.argsort(-scores, kind="stable")
        entered = by_score[scores[by_score] > 0]
        order.extend(entered[~np.isin(entered, order)].tolist())
    order.extend(others[~np.isin(others, order)].tolist())
    return np.array(order)


def _lasso(part: Encoded) -> Callable[[float], np.ndarray]:
    X = np.asfortranarray(part.X, np.float64)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        alpha = LassoCV(alphas=30, cv=5, random_state=0).fit(X, part.y).alpha_
    return lambda weaker: np.abs(Lasso(alpha=alpha / weaker).fit(X, part.y).coef_)


def _logistic(part: Encoded) -> Callable[[float], np.ndarray]:
    X = part.X.astype(np.float64)

    def model(c: float) -> OneVsRestClassifier:
        logistic = LogisticRegression(l1_ratio=1.0, solver="liblinear", C=c, random_state=0)
        return OneVsRestClassifier(logistic)

    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    smallest = l1_min_c(X, part.y, loss="log")
    with warnings.catch_warnings():
        # Also warnings about classes with fewer rows than folds.
        warnings.simplefilter("ignore")
        means = [
            cross_val_score(model(smallest * step), X, part.y, cv=folds).mean()
            for step in _PENALTIES
        ]
    best = smallest * _PENALTIES[int(np.argmax(means))]

    def coefficients(weaker: float) -> np.ndarray:
        fits = model(best * weaker).fit(X, part.y).estimators_
        return np.sum([np.abs(fit.coef_[0]) for fit in fits], axis=0)

    return coefficients


def forest(data: Encoded, seed: int) -> np.ndarray:
    """Orders columns by the decrease of impurity in a random forest."""
    return order_by(_importances(data.task, data.X, data.y, 500, seed), data.units)


def _importances(task: str, X: np.ndarray, y: np.ndarray, trees: int, seed: int) -> np.ndarray:
    if task == "classification":
        model = RandomForestClassifier(trees, random_state=seed)
    else:
        model = RandomForestRegressor(trees, max_features=1 / 3, random_state=seed)
    return model.fit(X, y).feature_importances_


def rfe(data: Encoded, seed: int) -> np.ndarray:
    """Recursive elimination by a linear support vector machine (Guyon et al. 2002)."""
    part = fewer_rows(data, seed)
    y = part.y
    if part.task == "regression":
        y = (y - y.mean()) / y.std()
    left, dropped = np.arange(data.num_columns), []
    while len(left) > 1:
        numbers = np.isin(part.units, left)
        weights = _squared_weights(part.task, part.X[:, numbers], y)
        scores = np.bincount(part.units[numbers], weights=weights, minlength=data.num_columns)
        worst_first = left[np.argsort(scores[left], kind="stable")]
        drop = max(1, int(_STEP * len(left)))
        dropped.extend(worst_first[:drop].tolist())
        left = worst_first[drop:]
    return np.array([*dropped, *left.tolist()])[::-1]


def _squared_weights(task: str, X: np.ndarray, y: np.ndarray) -> np.ndarray:
    exact = len(y) <= _EXACT_ROWS
    if task == "classification":
        model = SVC(kernel="linear") if exact else LinearSVC(dual=False)
    else:
        model = SVR(kernel="linear") if exact else LinearSVR(max_iter=2000, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        coefficients = np.atleast_2d(model.fit(X, y).coef_)
    return (coefficients**2).sum(axis=0)


def mrmr(data: Encoded, seed: int) -> np.ndarray:
    """Greedy F over the mean absolute correlation with what is picked (Ding and Peng 2005)."""
    by_f = univariate(data, seed)
    part = fewer_rows(data, seed)
    X = part.X / np.maximum(np.linalg.norm(part.X, axis=0), 1e-9)
    relevance = best_of_units(f_scores(data), data.units)
    redundancy = np.zeros(data.num_columns)
    order = [int(by_f[0])]
    while len(order) < min(_PICKED, data.num_columns):
        numbers = X[:, data.units == order[-1]]
        alike = np.abs(X.T @ numbers).max(axis=1)
        redundancy += best_of_units(alike, data.units)
        gain = relevance / np.maximum(redundancy / len(order), 1e-3)
        gain[order] = -np.inf
        order.append(int(gain.argmax()))
    return np.array([*order, *by_f[~np.isin(by_f, order)].tolist()])


def shadow_forest(data: Encoded, seed: int) -> np.ndarray:
    """Orders columns by how often they beat the best shuffled column, as in Boruta.

    Kursa and Rudnicki 2010. Ties are broken by the mean importance.
    """
    rng = np.random.default_rng(seed)
    hits, total = np.zeros(data.num_columns), np.zeros(data.num_columns)
    for round_seed in range(_SHADOWS):
        shadows = rng.permuted(data.X, axis=0)
        both = np.hstack([data.X, shadows])
        numbers = _importances(data.task, both, data.y, _TREES, seed + round_seed)
        real, shuffled = np.split(numbers, 2)
        importance = np.bincount(data.units, weights=real)
        hits += importance > np.bincount(data.units, weights=shuffled).max()
        total += importance
    return np.lexsort([-total, -hits])


def random(data: Encoded, seed: int) -> np.ndarray:
    """Orders columns at random."""
    return np.random.default_rng(seed + 1).permutation(data.num_columns)


SELECTORS: dict[str, Callable[[Encoded, int], np.ndarray]] = {
    "SelectKBest": univariate,
    "L1-CV": l1,
    "forest": forest,
    "RFE": rfe,
    "mRMR": mrmr,
    "shadow forest": shadow_forest,
    "random": random,
}
