"""Selectors from a file: a function, an estimator or a method."""

from __future__ import annotations

import importlib.util
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone

import fsjax
from experiments.arena.selectors import Answer, Select, by_score, is_classification
from fsjax.errors import ConfigError

#: Arguments of estimators that say how many columns to select.
_NUMBERS = ("n_features_to_select", "k", "max_features")

#: Attributes of fitted estimators that score columns, higher is better.
_SCORES = ("scores_", "feature_importances_", "coef_")


def load(path: str) -> Select:
    """Loads ``FILE.py:NAME``.

    NAME is a function ``(X, y, k) -> ranking`` or ``-> (ranking, number)``, an estimator in the
    sense of scikit-learn (a class or an instance) or a :class:`fsjax.Method`.

    Raises:
      ConfigError: if there is no such file or name, or it is something else.
    """
    file, _, name = path.rpartition(":")
    if not file or not Path(file).is_file():
        raise ConfigError(
            f"--selector={path}: no such file; write FILE.py:NAME, where NAME is a function "
            "(X, y, k) -> ranking, an estimator, or a fsjax.Method"
        )
    spec = importlib.util.spec_from_file_location("submission", file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    if not hasattr(module, name):
        public = ", ".join(word for word in vars(module) if not word.startswith("_"))
        raise ConfigError(f"--selector={path}: {file} has no {name}; it has {public}")
    return as_selector(getattr(module, name))


def as_selector(what: Any) -> Select:
    """The selector of a function, an estimator or a method.

    Raises:
      ConfigError: for anything else.
    """
    if isinstance(what, fsjax.Method):
        return _of_method(what)
    if hasattr(what, "fit"):
        return _of_estimator(what() if inspect.isclass(what) else what)
    if callable(what):
        return _of_function(what)
    raise ConfigError(
        f"the selector is a {type(what).__name__}; give a function (X, y, k) -> ranking, an "
        "estimator with fit, or a fsjax.Method"
    )


def _of_function(function: Callable[..., Answer]) -> Select:
    def select(X: np.ndarray, y: np.ndarray, k: int, seed: int) -> Answer:
        np.random.seed(seed)
        return function(X, y, k)

    return select


def _of_method(method: fsjax.Method) -> Select:
    def select(X: np.ndarray, y: np.ndarray, k: int, seed: int) -> Answer:
        task = "classification" if is_classification(y) else "regression"
        result = fsjax.fit(method, (X, y), num_features=k, task=task, seeds=(seed,))
        return result.ranking[0]

    return select


def _of_estimator(estimator: Any) -> Select:
    def select(X: np.ndarray, y: np.ndarray, k: int, seed: int) -> Answer:
        model, known = clone(estimator), estimator.get_params()
        numbers = {name: k for name in _NUMBERS if name in known}
        seeds = {"random_state": seed} if "random_state" in known else {}
        fitted = model.set_params(**numbers, **seeds).fit(X, y)
        if hasattr(fitted, "ranking_"):
            ranking = np.argsort(fitted.ranking_, kind="stable")
        else:
            ranking = _by_attributes(fitted, X.shape[1])
        chosen = len(fitted.get_support(indices=True)) if hasattr(fitted, "get_support") else k
        if chosen != k:
            return ranking, chosen
        return ranking

    return select


def _by_attributes(fitted: Any, columns: int) -> np.ndarray:
    """The order of a fitted estimator that has no ``ranking_``: chosen columns, then by score."""
    chosen = np.zeros(columns, bool)
    says_something = hasattr(fitted, "get_support")
    if says_something:
        chosen = np.asarray(fitted.get_support())
    scores = np.zeros(columns)
    for name in _SCORES:
        # SelectFromModel holds the model that scores columns.
        holder = fitted if hasattr(fitted, name) else getattr(fitted, "estimator_", None)
        if hasattr(holder, name):
            values = np.abs(np.atleast_2d(np.asarray(getattr(holder, name), float)))
            scores, says_something = values.sum(axis=0), True
            break
    if not says_something:
        raise ConfigError(
            f"{type(fitted).__name__} says nothing about columns; it needs ranking_, get_support, "
            f"{', '.join(_SCORES[:-1])} or {_SCORES[-1]} after fit"
        )
    order = by_score(scores)
    return np.concatenate([order[chosen[order]], order[~chosen[order]]])
