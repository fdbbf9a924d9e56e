"""The model behind a selection: how well some columns predict, on rows that it has not seen."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

import numpy as np
from sklearn.metrics import accuracy_score, r2_score, roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.multioutput import MultiOutputRegressor
from sklearn.svm import SVC, SVR

from fsjax.auto.preparation import Part
from fsjax.errors import ConfigError, nearest

#: An SVM learns from at most this many rows, drawn at random.
MAX_ROWS: Final = 4000

#: The smaller of two classes below this share: accuracy says little.
_RARE: Final = 0.1


class Metric(NamedTuple):
    """How predictions are judged.

    Attributes:
      name: ``accuracy`` (percent), ``auc`` (in [0, 1]) or ``r2`` (at most 1).
      label: on axes.
      digits: after the point, where it is shown.
      score: of test rows, from a fitted model.
      chance: what predicting without any column gives, from training and test targets.
    """

    name: str
    label: str
    digits: int
    score: Callable[[SVC | SVR, Part], float]
    chance: Callable[[np.ndarray, np.ndarray], float]


def _accuracy(model: SVC, part: Part) -> float:
    return 100.0 * accuracy_score(part.y, model.predict(part.X))


def _majority(train: np.ndarray, test: np.ndarray) -> float:
    return 100.0 * float(np.mean(test == np.bincount(train).argmax()))


def _auc(model: SVC, part: Part) -> float:
    if np.unique(part.y).size < 2:
        return float("nan")
    return float(roc_auc_score(part.y, model.decision_function(part.X)))


def _r2(model: SVR, part: Part) -> float:
    return float(r2_score(part.y, model.predict(part.X)))


def _mean(train: np.ndarray, test: np.ndarray) -> float:
    return float(r2_score(test, np.broadcast_to(train.mean(axis=0), test.shape)))


METRICS: Final = {
    "accuracy": Metric("accuracy", "accuracy in percent", 1, _accuracy, _majority),
    "auc": Metric("auc", "area under the ROC curve", 3, _auc, lambda train, test: 0.5),
    "r2": Metric("r2", "R2", 3, _r2, _mean),
}

#: The metrics of each task; the first is the default.
OF_TASK: Final = {"classification": ("accuracy", "auc"), "regression": ("r2",)}


def choose_metric(name: str | None, task: str, y: np.ndarray) -> Metric:
    """The metric of that name, or what suits the target: ``auc`` where one of two classes is rare.

    Raises:
      ConfigError: for a name that the task does not have, or ``auc`` of several classes.
    """
    allowed = OF_TASK[task]
    two = task == "classification" and len(np.unique(y)) == 2
    if name is None:
        rare = two and np.bincount(y).min() < _RARE * len(y)
        return METRICS["auc" if rare else allowed[0]]
    if name not in allowed:
        raise ConfigError(f"metric={name!r} of {task}: {nearest(name, allowed)}")
    if name == "auc" and not two:
        raise ConfigError("metric='auc' is for two classes; choose metric='accuracy'")
    return METRICS[name]


def judge(metric: Metric, task: str, train: Part, test: Part, columns: np.ndarray) -> float:
    """The metric on test rows of a support vector machine that saw some columns only.

    RBF kernel with scikit-learn's defaults; for numbers C = 10 on standardised targets.

    Args:
      metric: how to judge.
      task: ``classification`` or ``regression``.
      train, test: prepared rows.
      columns: numbers of the columns that it sees.
    """
    X, y = train.X[:, columns], train.y
    if len(y) > MAX_ROWS:
        kept, _ = train_test_split(
            np.arange(len(y)),
            train_size=MAX_ROWS,
            random_state=0,
            stratify=y if task == "classification" and np.bincount(y).min() > 1 else None,
        )
        X, y = X[kept], y[kept]
    seen = test._replace(X=test.X[:, columns])
    if task == "classification":
        return metric.score(SVC(cache_size=500).fit(X, y), seen)
    mean, deviation = y.mean(axis=0), y.std(axis=0)
    scale = np.where(deviation > 0, deviation, 1.0)
    model = SVR(C=10.0, cache_size=500)
    if y.ndim > 1:
        model = MultiOutputRegressor(model)
    model.fit(X, (y - mean) / scale)
    return metric.score(model, seen._replace(y=(seen.y - mean) / scale))
