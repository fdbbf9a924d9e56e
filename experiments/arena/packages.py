"""Selectors of other packages, each optional: one that is not installed is left out.

``pip install -e .[bench]`` installs them. They have their default settings except STG, which has
those of its README: with its default learning rate of 1e-5 the gates stay at their random initial
values.
"""

from __future__ import annotations

import collections.abc
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import false_discovery_control
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.metrics import log_loss, mean_squared_error
from sklearn.preprocessing import StandardScaler

#: Iterations of Boruta; more hardly change the order of the first columns.
_ROUNDS = 30

#: False discovery rate at which IPSS and conditional importance choose their number of columns.
_RATE = 0.1

#: The settings of STG's README, and its epochs.
_STG: dict[str, Any] = {
    "hidden_dims": [500, 50, 10],
    "activation": "tanh",
    "optimizer": "SGD",
    "learning_rate": 0.1,
    "feature_selection": True,
    "sigma": 0.5,
    "lam": 0.1,
    "device": "cpu",
}
_STG_EPOCHS = 3000


def _prepared(X: np.ndarray, y: np.ndarray) -> tuple[bool, np.ndarray, np.ndarray]:
    """Whether the target holds classes; standardised rows; classes, or standardised numbers."""
    classes = y.dtype.kind in "iu"
    X = StandardScaler().fit_transform(X.astype(np.float64)).astype(np.float32)
    return classes, X, y if classes else ((y - y.mean()) / y.std()).astype(np.float32)


def boruta(X: np.ndarray, y: np.ndarray, k: int, seed: int) -> tuple[np.ndarray, int]:
    """Boruta's ranking, ties broken by the mean importance, and the number that it confirms."""
    from boruta import BorutaPy

    classes, X, y = _prepared(X, y)
    kind = RandomForestClassifier if classes else RandomForestRegressor
    model = BorutaPy(
        kind(max_depth=5, n_jobs=1), n_estimators="auto", max_iter=_ROUNDS, random_state=seed
    ).fit(X, y)
    importance = np.nan_to_num(np.nanmean(model.importance_history_[1:], axis=0))
    return np.lexsort((-importance, model.ranking_)), int(model.support_.sum())


def mrmr(X: np.ndarray, y: np.ndarray, k: int, seed: int) -> np.ndarray:
    """The largest ratio of F statistic to mean correlation with the columns selected so far."""
    with warnings.catch_warnings():
        # The package switches Python's warnings off for the whole process.
        from mrmr import mrmr_classif, mrmr_regression

        warnings.simplefilter("ignore")
        classes, X, y = _prepared(X, y)
        select = mrmr_classif if classes else mrmr_regression
        columns = select(pd.DataFrame(X), pd.Series(y), K=k, n_jobs=1, show_progress=False)
    # The package leaves constant columns out.
    rest = np.setdiff1d(np.arange(X.shape[1]), columns)
    return np.concatenate([np.asarray(columns, int), rest])


def lassonet(X: np.ndarray, y: np.ndarray, k: int, seed: int) -> np.ndarray:
    """The columns that stay longest on the path."""
    import torch
    from lassonet import LassoNetClassifier, LassoNetRegressor

    torch.set_num_threads(1)
    classes, X, y = _prepared(X, y)
    kind = LassoNetClassifier if classes else LassoNetRegressor
    model = kind(verbose=0, random_state=seed, torch_seed=seed)
    model.fit(X, y if classes else y[:, None])
    return np.argsort(-model.feature_importances_.numpy(), kind="stable")


def stg_class() -> Any:
    """The class of the package ``stg``, which was written before Python 3.10."""
    # Names that Python 3.10 removed.
    for name in collections.abc.__all__:
        setattr(collections, name, getattr(collections.abc, name))
    from stg import STG

    return STG


def stg(X: np.ndarray, y: np.ndarray, k: int, seed: int) -> np.ndarray:
    """The columns with the largest gates."""
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(seed)
    classes, X, y = _prepared(X, y)
    model = stg_class()(
        task_type="classification" if classes else "regression",
        input_dim=X.shape[1],
        output_dim=len(np.unique(y)) if classes else 1,
        batch_size=len(X),
        **_STG,
    )
    model.fit(X, y if classes else y[:, None], nr_epochs=_STG_EPOCHS, verbose=False)
    return np.argsort(-model.get_gates("raw"), kind="stable")


def ipss(X: np.ndarray, y: np.ndarray, k: int, seed: int) -> tuple[np.ndarray, int]:
    """Integrated path stability selection with boosted trees, and its number of columns.

    Several classes are numbers to it. The columns are ordered by their expected number of false
    positives, and counted up to the rate of false discoveries of :data:`_RATE`.
    """
    _, X, y = _prepared(X, y)
    false_positives, q_values = ipss_errors(X, y, seed)
    return np.argsort(false_positives, kind="stable"), int((q_values <= _RATE).sum())


def ipss_errors(X: np.ndarray, y: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Expected false positives and q values by column, ``(D,)``, of the package ``ipss``.

    A column that does not pass its preselection has infinitely many, and a q value of 1.
    """
    from ipss import ipss as select

    np.random.seed(seed)
    result = select(X, y)
    names = ("efp_scores", np.inf), ("q_values", 1.0)
    false_positives, q_values = (
        np.array([result[name].get(column, default) for column in range(X.shape[1])])
        for name, default in names
    )
    return false_positives, q_values


class Fitted(NamedTuple):
    """A linear model that was fitted to two thirds of standardised rows."""

    model: Any
    X: np.ndarray
    y: np.ndarray
    train: np.ndarray


def fitted_model(X: np.ndarray, y: np.ndarray, seed: int) -> Fitted:
    """A logistic regression for classes, else a ridge regression."""
    classes, X, y = _prepared(X, y)
    train = np.random.default_rng(seed).permutation(len(y)) % 3 > 0
    model = LogisticRegression(max_iter=1000) if classes else RidgeCV()
    return Fitted(model.fit(X[train], y[train]), X, y, train)


def by_p_value(importances: np.ndarray, p_values: np.ndarray) -> tuple[np.ndarray, int]:
    """Columns by p, and their number at the rate :data:`_RATE` (Benjamini and Hochberg)."""
    number = int((false_discovery_control(p_values) <= _RATE).sum())
    return np.lexsort((-importances, p_values)), number


def conditional(X: np.ndarray, y: np.ndarray, k: int, seed: int) -> tuple[np.ndarray, int]:
    """Conditional importance in a linear model, on the rows that it has not seen, of hidimstat."""
    return by_p_value(*conditional_errors(X, y, seed))


def conditional_errors(X: np.ndarray, y: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Importances and p values by column, ``(D,)``, of the package hidimstat."""
    from hidimstat import CFI

    model, X, y, train = fitted_model(X, y, seed)
    classes = hasattr(model, "predict_proba")
    importance = CFI(
        model,
        method="predict_proba" if classes else "predict",
        loss=log_loss if classes else mean_squared_error,
        feature_types="continuous",
        random_state=seed,
    )
    importances = importance.fit(X[train], y[train]).importance(X[~train], y[~train])
    return importances, np.nan_to_num(importance.pvalues_, nan=1.0)


#: By name: the selector, and the packages that it needs.
ALL: dict[str, tuple[Callable[..., Any], tuple[str, ...]]] = {
    "Boruta": (boruta, ("boruta",)),
    "mRMR": (mrmr, ("mrmr",)),
    "IPSS": (ipss, ("ipss",)),
    "CFI, its package": (conditional, ("hidimstat",)),
    "LassoNet, its package": (lassonet, ("lassonet", "torch")),
    "STG, its package": (stg, ("stg", "torch")),
}
