"""Judges columns by how well models that no selector uses predict the held-out rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import roc_auc_score
from sklearn.svm import SVC, SVR

from experiments.studies.selection.encoding import Encoded

#: A support vector machine learns from at most this many rows, drawn at random.
MAX_ROWS = 5000

#: Rounds of boosting, and trees of all classes together.
_ROUNDS, _TREES = 100, 600

#: The judges whose mean is the score of a selection.
THREE = ("svm", "boosting", "forest")

#: Models by task and name; ``C`` is the cost of errors for a target of deviation 1.
MODELS: dict[str, dict[str, Any]] = {
    "classification": {
        "linear": LogisticRegression(max_iter=2000),
        "svm": SVC(),
        "boosting": HistGradientBoostingClassifier(early_stopping=False, random_state=0),
        "forest": RandomForestClassifier(300, random_state=0),
    },
    "regression": {
        "linear": Ridge(),
        "svm": SVR(C=10.0),
        "boosting": HistGradientBoostingRegressor(early_stopping=False, random_state=0),
        "forest": RandomForestRegressor(300, max_features=1 / 3, random_state=0),
    },
}


def judge(data: Encoded, columns: np.ndarray, name: str, metric: str) -> float:
    """Scores columns on the held-out rows.

    Args:
      columns: indices; with none, the most frequent class or the mean is predicted.
      metric: ``'accuracy'`` in percent, ``'auc'`` or ``'r2'`` times 100.
    """
    chosen = np.isin(data.units, columns)
    if not chosen.any():
        return chance(data, metric)
    X, X_test, y, y_test = data.X[:, chosen], data.X_test[:, chosen], data.y, data.y_test
    model = clone(MODELS[data.task][name])
    if name == "boosting":
        classes = len(np.unique(y)) if data.task == "classification" else 1
        model.set_params(max_iter=min(_ROUNDS, _TREES // classes))
    if name == "svm" and len(y) > MAX_ROWS:
        rows = np.random.default_rng(0).choice(len(y), MAX_ROWS, replace=False)
        X, y = X[rows], y[rows]
    if data.task == "regression":
        mean, deviation = y.mean(), y.std()
        y, y_test = (y - mean) / deviation, (y_test - mean) / deviation
    model.fit(X, y)
    if metric == "auc":
        return 100.0 * _auc(model, X_test, y_test)
    return 100.0 * float(model.score(X_test, y_test))


def _auc(model: Any, X: np.ndarray, y: np.ndarray) -> float:
    if hasattr(model, "decision_function"):
        return float(roc_auc_score(y, model.decision_function(X)))
    return float(roc_auc_score(y, model.predict_proba(X)[:, 1]))


def chance(data: Encoded, metric: str) -> float:
    """The score of predicting the most frequent class, the mean, or a random order."""
    if metric == "auc":
        return 50.0
    if metric == "r2":
        return 0.0
    labels, counts = np.unique(data.y, return_counts=True)
    return 100.0 * float(np.mean(data.y_test == labels[counts.argmax()]))


def judge_by_three(data: Encoded, columns: np.ndarray) -> dict[str, float]:
    """Accuracy in percent, or 100 R2 clipped at 0, by each of the three judges."""
    metric = "accuracy" if data.task == "classification" else "r2"
    return {name: max(judge(data, columns, name, metric), 0.0) for name in THREE}
