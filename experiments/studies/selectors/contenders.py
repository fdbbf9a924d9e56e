"""The selectors that are compared: estimators with default arguments, and simple ones."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from sklearn.feature_selection import RFE, mutual_info_classif, mutual_info_regression
from sklearn.svm import SVC, SVR

from experiments.studies.selectors.packages import PACKAGES
from fsjax.auto.contest.rankers import forest, l1, univariate
from fsjax.auto.contest.rankers.parts import Part
from fsjax.estimators import ESTIMATORS
from fsjax.registry import about_of

#: Selects columns, given the raw training rows, the standardised ones, K, the task and a seed.
Select = Callable[[np.ndarray, Part, int, str, int], np.ndarray]

#: Estimators that are not made for selecting columns, and controls; they run on small tables only.
ON_SMALL = ("neural_network", "probmask", "snip", "static_sparse", "rigl", "dense")

#: Higher limits of CPU seconds, by selector, above which it is not run on larger tables: with the
#: usual limit these would run on hardly any table.
PATIENCE = {"LassoNet, its package": 60.0, "STG, its package": 60.0}

#: Number of draws that are averaged for the control ``random columns``.
DRAWS = 5

#: Share of all columns that recursive elimination drops per step.
_STEP = 0.1


def task_of(name: str, task: str) -> str | None:
    """The task for which an estimator is fitted: ``task``, else reconstruction, else ``None``."""
    tasks = about_of(ESTIMATORS[name].registration).tasks
    return next((choice for choice in (task, "reconstruction") if choice in tasks), None)


def estimator(name: str) -> Select:
    """Selects by an estimator of the library with default arguments."""

    def select(X: np.ndarray, part: Part, k: int, task: str, seed: int) -> np.ndarray:
        fitted = ESTIMATORS[name](k, task=task_of(name, task), random_state=seed).fit(X, part.y)
        return fitted.get_support(indices=True)

    return select


def ranked(scores: Callable[[Part, str, int], np.ndarray]) -> Select:
    """Selects the columns with the highest scores."""

    def select(X: np.ndarray, part: Part, k: int, task: str, seed: int) -> np.ndarray:
        return np.argsort(-scores(part, task, seed), kind="stable")[:k]

    return select


def mutual_information(part: Part, task: str, seed: int) -> np.ndarray:
    """Mutual information of each column with the target, by nearest neighbours."""
    measure = mutual_info_classif if task == "classification" else mutual_info_regression
    return measure(part.X, part.y, random_state=seed)


def elimination(X: np.ndarray, part: Part, k: int, task: str, seed: int) -> np.ndarray:
    """Recursive elimination of the columns with the smallest weights of a linear SVM."""
    model = SVC(kernel="linear") if task == "classification" else SVR(kernel="linear")
    return RFE(model, n_features_to_select=k, step=_STEP).fit(part.X, part.y).get_support(True)


def random(X: np.ndarray, part: Part, k: int, task: str, seed: int) -> np.ndarray:
    """Columns drawn at random."""
    return np.random.default_rng((seed, 7)).choice(X.shape[1], k, replace=False)


def everything(X: np.ndarray, part: Part, k: int, task: str, seed: int) -> np.ndarray:
    """All columns."""
    return np.arange(X.shape[1])


#: Controls, which do not look at the data.
CONTROLS: dict[str, Select] = {"random columns": random, "all columns": everything}

#: Simple selectors, by name.
RIVALS: dict[str, Select] = {
    "F test": ranked(univariate),
    "mutual information": ranked(mutual_information),
    "Lasso": ranked(l1),
    "extra trees": ranked(forest),
    "RFE": elimination,
    **PACKAGES,
}

#: The estimators by class name, without random selection, which is a control already.
OURS: dict[str, str] = {
    selector.__name__: name for name, selector in ESTIMATORS.items() if name != "random_selection"
}

SELECTORS: dict[str, Select] = {
    **CONTROLS,
    **RIVALS,
    **{name: estimator(method) for name, method in OURS.items()},
}
