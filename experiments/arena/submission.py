"""Selectors from a file: a function, an estimator or a method."""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import inspect
import itertools
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.feature_selection import RFE

import fsjax
from experiments.arena.selectors import Answer, Select, by_score, is_classification
from fsjax.errors import ConfigError

#: Arguments that say how many columns to select; the last one only in selectors, not in forests.
_NUMBERS = ("n_features_to_select", "k", "max_features")

#: Attributes of fitted estimators that score columns, higher is better.
_SCORES = ("scores_", "feature_importances_", "coef_")


def checksum(path: str) -> str:
    """The SHA-256 of ``FILE.py:NAME`` with what it imports from its folder; empty if not there."""
    file = Path(path.rpartition(":")[0]).resolve()
    sources = [file] if file.is_file() else []
    # The list grows by what its files import.
    for source in sources:
        for each in _imported(source, file.parent):
            if each.is_file() and each not in sources:
                sources.append(each)
    text = b"".join(source.read_bytes() for source in sources)
    return hashlib.sha256(text).hexdigest() if sources else ""


def _imported(source: Path, folder: Path) -> Iterator[Path]:
    """Where the modules that a file imports would be in a folder."""
    try:
        nodes = list(ast.walk(ast.parse(source.read_bytes())))
    except (SyntaxError, ValueError):
        return
    for node in nodes:
        if not isinstance(node, (ast.Import, ast.ImportFrom)):
            continue
        base = [folder, *source.parents][getattr(node, "level", 0)]
        for alias in node.names:
            parts = f"{getattr(node, 'module', None) or ''}.{alias.name}".lstrip(".").split(".")
            # The root of the repository has them; the version of the library is in the rows.
            if parts[0] not in ("fsjax", "experiments"):
                for module in itertools.accumulate(parts, Path.joinpath, initial=base):
                    yield from (module.parent / f"{module.name}.py", module / "__init__.py")


def load(path: str) -> Select:
    """Loads ``FILE.py:NAME``.

    NAME is a function ``(X, y, k) -> ranking`` or ``-> (ranking, number)``, an estimator in the
    sense of scikit-learn (a class or an instance), a :class:`fsjax.Method` or the registered
    function that builds it.

    Raises:
      ConfigError: if there is no such file or name, or it is something else.
    """
    file, _, name = path.rpartition(":")
    if not file or not Path(file).is_file():
        raise ConfigError(
            f"--selector={path}: no such file; write FILE.py:NAME, where NAME is a function "
            "(X, y, k) -> ranking, an estimator, or a fsjax.Method"
        )
    module = _module(Path(file).resolve())
    if not hasattr(module, name):
        public = ", ".join(word for word in vars(module) if not word.startswith("_"))
        raise ConfigError(f"--selector={path}: {file} has no {name}; it has {public}")
    return as_selector(getattr(module, name))


def _module(file: Path) -> ModuleType:
    """Imports a file as Python would from its folder; no loaded module is replaced by it."""
    name = "submission" if file.stem in sys.modules else file.stem
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Dataclasses and processes that the file starts look for it there.
    sys.modules[name] = module
    sys.path.insert(0, str(file.parent))
    spec.loader.exec_module(module)
    return module


def as_selector(what: Any) -> Select:
    """The selector of a function, an estimator or a method.

    Raises:
      ConfigError: for anything else.
    """
    if isinstance(what, fsjax.Method):
        return _of_method(what)
    if hasattr(what, "fit"):
        estimator = what() if inspect.isclass(what) else what
        if not hasattr(estimator, "get_params"):
            raise ConfigError(
                f"{type(estimator).__name__} has fit, but not get_params; derive it from "
                "sklearn.base.BaseEstimator, or give a function (X, y, k) -> ranking"
            )
        return _of_estimator(estimator)
    # The function below fsjax.register builds a method.
    if hasattr(what, "registration"):
        return _of_method(what())
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
        selects = hasattr(model, "get_support")
        # RFE does not rank the columns that it keeps.
        number = 1 if isinstance(model, RFE) else k
        names = _NUMBERS if selects else _NUMBERS[:-1]
        numbers = {name: number for name in names if name in known}
        seeds = {"random_state": seed} if "random_state" in known else {}
        fitted = model.set_params(**numbers, **seeds).fit(X, y)
        ranking = _ranking(fitted, X.shape[1])
        chosen = len(fitted.get_support(indices=True)) if selects else k
        return ranking if chosen in (k, numbers.get(_NUMBERS[0])) else (ranking, chosen)

    return select


def _ranking(fitted: Any, columns: int) -> np.ndarray:
    """All columns by ``ranking_``, or chosen ones first, and those of equal rank by their score."""
    chosen = np.asarray(fitted.get_support()) if hasattr(fitted, "get_support") else None
    scores = _scores(fitted, columns, chosen)
    ranks = getattr(fitted, "ranking_", None if chosen is None else ~chosen)
    if ranks is None and scores is None:
        raise ConfigError(
            f"{type(fitted).__name__} says nothing about columns; it needs ranking_, get_support, "
            f"{', '.join(_SCORES[:-1])} or {_SCORES[-1]} after fit"
        )
    order = np.arange(columns) if scores is None else by_score(scores)
    return order if ranks is None else order[np.argsort(np.asarray(ranks)[order], kind="stable")]


def _scores(fitted: Any, columns: int, chosen: np.ndarray | None) -> np.ndarray | None:
    """Scores of all columns, ``(columns,)``, higher is better, or ``None`` if there are none."""
    # Selectors of scikit-learn hold the model that scores columns, some a model of the chosen ones.
    for holder, name in itertools.product((fitted, getattr(fitted, "estimator_", None)), _SCORES):
        if hasattr(holder, name):
            values = np.atleast_2d(np.asarray(getattr(holder, name), float))
            values = (np.abs(values) if name == "coef_" else values).sum(axis=0)
            if chosen is None or len(values) == columns:
                return values
            scores = np.full(columns, -np.inf)
            scores[chosen] = values
            return scores
    return None
