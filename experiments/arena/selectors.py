"""The selectors of the arena, by name: controls, the library's estimators, and others'.

A selector gets the training rows ``X`` ``(n, D)`` float32 without missing values, ``y`` ``(n,)``
(int32 classes, or float32 numbers), the largest number of columns that is judged, and a seed. It
returns distinct columns, best first, and may add the number of columns that it chooses itself; a
ranking of fewer than ``k`` columns is such a choice, too.
"""

from __future__ import annotations

import functools
import importlib.util
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.ensemble import ExtraTreesClassifier, ExtraTreesRegressor
from sklearn.feature_selection import (
    RFE,
    RFECV,
    f_classif,
    f_regression,
    mutual_info_classif,
    mutual_info_regression,
)
from sklearn.inspection import permutation_importance
from sklearn.linear_model import LassoCV, LogisticRegressionCV
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR, LinearSVC, LinearSVR

import fsjax
from experiments.arena import packages
from experiments.arena.stabl import frequencies, number_above_decoys
from fsjax.estimators import ESTIMATORS
from fsjax.evaluation import conditional_importance
from fsjax.registry import about_of

#: A ranking of columns, or one with a number of columns.
Answer = np.ndarray | tuple[np.ndarray, int]

#: Selects columns, given the training rows, their targets, k and a seed.
Select = Callable[[np.ndarray, np.ndarray, int, int], Answer]

#: Estimators that are not made for selecting columns.
NOT_FOR_SELECTION = frozenset(
    ("neural_network", "probmask", "snip", "static_sparse", "rigl", "dense", "random_selection")
)

#: Trees of a forest, share of the columns that elimination drops per step, and its folds.
_TREES, _STEP, _FOLDS = 300, 0.2, 5

#: Rows from which slow models learn at most.
_ROWS = 2000

#: Seconds that ``fsjax.select`` may take.
_BUDGET = 30.0


def is_classification(y: np.ndarray) -> bool:
    """Whether a target holds classes: integers."""
    return y.dtype.kind in "iu"


def standardised(X: np.ndarray) -> np.ndarray:
    """Columns of mean 0 and deviation 1, ``(n, D)``; constant ones are 0."""
    return StandardScaler().fit_transform(X.astype(np.float64)).astype(np.float32)


def by_score(scores: np.ndarray) -> np.ndarray:
    """All columns, those with the largest scores first, ``(D,)``; NaN counts as the smallest."""
    return np.argsort(-np.nan_to_num(scores, nan=-np.inf, posinf=np.inf), kind="stable")


def few_rows(X: np.ndarray, y: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """At most :data:`_ROWS` rows, standardised, and their targets."""
    if len(y) > _ROWS:
        rows = np.random.default_rng(seed).choice(len(y), _ROWS, replace=False)
        X, y = X[rows], y[rows]
    return standardised(X), y if is_classification(y) else (y - y.mean()) / y.std()


def random(X: np.ndarray, y: np.ndarray, k: int, seed: int) -> np.ndarray:
    """Columns in random order."""
    return np.random.default_rng((seed, 7)).permutation(X.shape[1])


def f_test(X: np.ndarray, y: np.ndarray, k: int, seed: int) -> np.ndarray:
    """The F statistic of each column."""
    test = f_classif if is_classification(y) else f_regression
    with np.errstate(all="ignore"):
        return by_score(test(X.astype(np.float64), y)[0])


def mutual_information(X: np.ndarray, y: np.ndarray, k: int, seed: int) -> np.ndarray:
    """Mutual information of each column with the target, by nearest neighbours."""
    measure = mutual_info_classif if is_classification(y) else mutual_info_regression
    X, y = few_rows(X, y, seed)
    return by_score(measure(X, y, random_state=seed))


def lasso(X: np.ndarray, y: np.ndarray, k: int, seed: int) -> np.ndarray:
    """Coefficients of a linear or logistic regression with a cross-validated L1 penalty."""
    X, y = few_rows(X, y, seed)
    if not is_classification(y):
        return by_score(np.abs(LassoCV(alphas=20, cv=_FOLDS, random_state=seed).fit(X, y).coef_))
    model = LogisticRegressionCV(
        Cs=5, l1_ratios=(1.0,), cv=3, solver="saga", tol=1e-2, max_iter=100, random_state=seed,
        use_legacy_attributes=False,
    )  # fmt: skip
    return by_score(np.abs(model.fit(X, y).coef_).sum(axis=0))


def extra_trees(X: np.ndarray, y: np.ndarray, k: int, seed: int) -> np.ndarray:
    """Decrease of impurity in extremely randomised trees."""
    return by_score(_forest(y, seed).fit(X, y).feature_importances_)


def _forest(y: np.ndarray, seed: int) -> Any:
    if is_classification(y):
        return ExtraTreesClassifier(_TREES, random_state=seed)
    return ExtraTreesRegressor(_TREES, max_features=1 / 3, random_state=seed)


def held_out_permutation(X: np.ndarray, y: np.ndarray, k: int, seed: int) -> np.ndarray:
    """Loss of accuracy on a quarter of the rows when a column of them is permuted.

    The model is a support vector machine with an RBF kernel.
    """
    X, y = few_rows(X, y, seed)
    classes = is_classification(y)
    parts = train_test_split(
        X, y, test_size=0.25, random_state=seed, stratify=y if classes else None
    )
    model = (SVC() if classes else SVR(C=10.0)).fit(parts[0], parts[2])
    importances = permutation_importance(model, parts[1], parts[3], n_repeats=5, random_state=seed)
    return by_score(importances.importances_mean)


def conditional(X: np.ndarray, y: np.ndarray, k: int, seed: int) -> Answer:
    """Conditional importance in a linear model, on the third of the rows that it has not seen."""
    model, X, y, train = packages.fitted_model(X, y, seed)
    found = conditional_importance(model, X[train], X[~train], y[~train], seed=seed)
    return packages.by_p_value(found.importances, found.p_values)


def stabl(X: np.ndarray, y: np.ndarray, k: int, seed: int) -> Answer:
    """Stabl's rule with permuted columns as decoys, and the number of columns that it keeps."""
    X, y = few_rows(X, y, seed)
    rng = np.random.default_rng((seed, 4))
    target = np.eye(y.max() + 1)[y] if is_classification(y) else y
    best = frequencies(np.hstack([X, rng.permuted(X, axis=0)]), target, rng)
    columns, decoys = np.split(best, 2)
    return by_score(columns), number_above_decoys(columns, decoys)


def _linear_svm(y: np.ndarray) -> Any:
    if len(y) > 1000:
        return LinearSVC(dual=False) if is_classification(y) else LinearSVR(max_iter=2000)
    return SVC(kernel="linear") if is_classification(y) else SVR(kernel="linear")


def elimination(X: np.ndarray, y: np.ndarray, k: int, seed: int) -> np.ndarray:
    """Recursive elimination by the weights of a linear support vector machine."""
    X, y = few_rows(X, y, seed)
    fitted = RFE(_linear_svm(y), n_features_to_select=1, step=_STEP).fit(X, y)
    return np.argsort(fitted.ranking_, kind="stable")


def elimination_cv(X: np.ndarray, y: np.ndarray, k: int, seed: int) -> Answer:
    """Recursive elimination, and the number of columns with the best cross-validated score."""
    X, y = few_rows(X, y, seed)
    fitted = RFECV(_linear_svm(y), step=_STEP, cv=_FOLDS).fit(X, y)
    weights = np.zeros(X.shape[1])
    weights[fitted.support_] = np.abs(np.atleast_2d(fitted.estimator_.coef_)).sum(axis=0)
    return np.lexsort((-weights, fitted.ranking_)), int(fitted.n_features_)


def task_of(name: str, y: np.ndarray) -> str | None:
    """The task for which an estimator is fitted: the target's, else reconstruction, or ``None``."""
    tasks = about_of(ESTIMATORS[name].registration).tasks
    wanted = "classification" if is_classification(y) else "regression"
    return next((task for task in (wanted, "reconstruction") if task in tasks), None)


class NotForTask(Exception):
    """A selector cannot learn from this kind of target."""


def estimator(name: str, X: np.ndarray, y: np.ndarray, k: int, seed: int) -> np.ndarray:
    """The ranking of an estimator of the library with default arguments.

    Raises:
      NotForTask: if it cannot learn from this target.
    """
    task = task_of(name, y)
    if task is None:
        raise NotForTask(f"{name} is not for numbers")
    fitted = ESTIMATORS[name](k, task=task, random_state=seed).fit(X, y)
    return fitted.result_.ranking[0]


def fsjax_select(X: np.ndarray, y: np.ndarray, k: int, seed: int) -> Answer:
    """``fsjax.select`` with a budget of :data:`_BUDGET` seconds, and its number of columns."""
    selection = fsjax.select(X, y, budget=_BUDGET, seed=seed)
    # Columns of arrays are called x0, x1, ...
    order = np.array([int(str(name)[1:]) for name in selection.table["column"]])
    rest = np.setdiff1d(np.arange(X.shape[1]), order)
    return np.concatenate([order, rest]), selection.num_features


#: The control, which does not look at the data.
RANDOM = "random columns"

#: Estimators of the library: their names in ``ESTIMATORS`` by class name.
OURS: dict[str, str] = {
    selector.__name__: name
    for name, selector in ESTIMATORS.items()
    if name not in NOT_FOR_SELECTION
}

#: The command of the library that lets selectors compete.
SELECT = "fsjax select"

_OTHERS: dict[str, Select] = {
    "F test": f_test,
    "mutual information": mutual_information,
    "Lasso": lasso,
    "extra trees": extra_trees,
    "permutation": held_out_permutation,
    "CFI": conditional,
    "Stabl": stabl,
    "RFE": elimination,
    "RFE-CV": elimination_cv,
    **{
        name: select
        for name, (select, needs) in packages.ALL.items()
        if all(importlib.util.find_spec(module) for module in needs)
    },
}

#: By name; those of packages that are not installed are missing.
SELECTORS: dict[str, Select] = {
    RANDOM: random,
    **_OTHERS,
    SELECT: fsjax_select,
    **{name: functools.partial(estimator, method) for name, method in OURS.items()},
}
