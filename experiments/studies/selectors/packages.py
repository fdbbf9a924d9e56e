"""Other people's packages, each optional: what is not installed takes no part.

``pip install -e .[bench]`` has them all. They have their own defaults; STG's, a rate of 1e-5, leave
its gates at their random start, so that it has the settings of its README.
"""

from __future__ import annotations

import collections.abc
import importlib.util
import warnings
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

from fsjax.auto.rankers.parts import Part

#: Rounds of Boruta; more change little among the first columns.
_ROUNDS = 30

#: STG as its README has it.
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
    """Boruta's ranking; among columns that it accepts alike, by the mean importance."""
    from boruta import BorutaPy

    kind = RandomForestClassifier if task == "classification" else RandomForestRegressor
    model = BorutaPy(
        kind(max_depth=5, n_jobs=1), n_estimators="auto", max_iter=_ROUNDS, random_state=seed
    ).fit(part.X, part.y)
    importance = np.nan_to_num(np.nanmean(model.importance_history_[1:], axis=0))
    return np.lexsort((-importance, model.ranking_))[:k]


def mrmr(X: np.ndarray, part: Part, k: int, task: str, seed: int) -> np.ndarray:
    """Largest F statistic over the mean correlation with what is selected already."""
    with warnings.catch_warnings():
        # It leaves Python's warnings switched off, for everybody.
        from mrmr import mrmr_classif, mrmr_regression

        warnings.simplefilter("ignore")
        select = mrmr_classif if task == "classification" else mrmr_regression
        table, target = pd.DataFrame(part.X), pd.Series(part.y)
        columns = select(table, target, K=k, n_jobs=1, show_progress=False)
    # It leaves out columns that are constant.
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


def stg(X: np.ndarray, part: Part, k: int, task: str, seed: int) -> np.ndarray:
    """The columns whose gates are most open."""
    import torch

    # The package is older than Python 3.10, which took these names away.
    for name in collections.abc.__all__:
        setattr(collections, name, getattr(collections.abc, name))
    from stg import STG

    torch.set_num_threads(1)
    torch.manual_seed(seed)
    classes = task == "classification"
    model = STG(
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


#: By name: what selects, and the packages that it needs.
_ALL = {
    "Boruta": (boruta, ("boruta",)),
    "mRMR": (mrmr, ("mrmr",)),
    "LassoNet, its package": (lassonet, ("lassonet", "torch")),
    "STG, its package": (stg, ("stg", "torch")),
}

#: Those that are installed.
PACKAGES = {
    name: select
    for name, (select, needs) in _ALL.items()
    if all(importlib.util.find_spec(module) for module in needs)
}
