"""Selectors of other packages, each optional: one that is not installed is skipped.

``pip install -e .[bench]`` installs them all. They have their default settings except STG, which
has those of its README: with its default learning rate of 1e-5 the gates stay at their random
initial values.
"""

from __future__ import annotations

import collections.abc
import importlib.util
import warnings
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

from fsjax.auto.contest.rankers.parts import Part

#: Iterations of Boruta; more hardly change the order of the first columns.
_ROUNDS = 30

#: The settings of STG's README.
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


def boruta(X: np.ndarray, part: Part, k: int, task: str, seed: int) -> np.ndarray:
    """Boruta's ranking; ties are broken by the mean importance."""
    from boruta import BorutaPy

    kind = RandomForestClassifier if task == "classification" else RandomForestRegressor
    model = BorutaPy(
        kind(max_depth=5, n_jobs=1), n_estimators="auto", max_iter=_ROUNDS, random_state=seed
    ).fit(part.X, part.y)
    importance = np.nan_to_num(np.nanmean(model.importance_history_[1:], axis=0))
    return np.lexsort((-importance, model.ranking_))[:k]


def mrmr(X: np.ndarray, part: Part, k: int, task: str, seed: int) -> np.ndarray:
    """The largest ratio of F statistic to mean correlation with the columns selected so far."""
    with warnings.catch_warnings():
        # The package switches Python's warnings off for the whole process.
        from mrmr import mrmr_classif, mrmr_regression

        warnings.simplefilter("ignore")
        select = mrmr_classif if task == "classification" else mrmr_regression
        table, target = pd.DataFrame(part.X), pd.Series(part.y)
        columns = select(table, target, K=k, n_jobs=1, show_progress=False)
    # The package leaves constant columns out.
    rest = np.setdiff1d(np.arange(X.shape[1]), columns)
    return np.concatenate([np.asarray(columns, int), rest])[:k]


def lassonet(X: np.ndarray, part: Part, k: int, task: str, seed: int) -> np.ndarray:
    """The columns that stay longest on the path."""
    import torch
    from lassonet import LassoNetClassifier, LassoNetRegressor

    torch.set_num_threads(1)
    kind = LassoNetClassifier if task == "classification" else LassoNetRegressor
    y = part.y if task == "classification" else _standard(part.y)[:, None]
    model = kind(verbose=0, random_state=seed, torch_seed=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(part.X.astype(np.float32), y)
    return np.argsort(-model.feature_importances_.numpy(), kind="stable")[:k]


def stg_class() -> Any:
    """The class of the package ``stg``, which was written before Python 3.10."""
    # Names that Python 3.10 removed.
    for name in collections.abc.__all__:
        setattr(collections, name, getattr(collections.abc, name))
    from stg import STG

    return STG


def stg(X: np.ndarray, part: Part, k: int, task: str, seed: int) -> np.ndarray:
    """The columns with the largest gates."""
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(seed)
    classes = task == "classification"
    model = stg_class()(
        task_type=task,
        input_dim=X.shape[1],
        output_dim=len(np.unique(part.y)) if classes else 1,
        batch_size=len(X),
        **_STG,
    )
    y = part.y if classes else _standard(part.y)[:, None]
    model.fit(part.X.astype(np.float32), y, nr_epochs=_STG_EPOCHS, verbose=False)
    return np.argsort(-model.get_gates("raw"), kind="stable")[:k]


def _standard(y: np.ndarray) -> np.ndarray:
    return ((y - y.mean()) / y.std()).astype(np.float32)


#: By name: the selector, and the packages that it needs.
_ALL = {
    "Boruta": (boruta, ("boruta",)),
    "mRMR": (mrmr, ("mrmr",)),
    "LassoNet, its package": (lassonet, ("lassonet", "torch")),
    "STG, its package": (stg, ("stg", "torch")),
}

#: The selectors whose packages are installed.
PACKAGES = {
    name: select
    for name, (select, needs) in _ALL.items()
    if all(importlib.util.find_spec(module) for module in needs)
}
