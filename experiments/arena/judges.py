"""Judges columns by how well models that are trained on them predict the test rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import accuracy_score, r2_score, roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR
from threadpoolctl import threadpool_limits

from experiments.arena.tables import Split

#: Names of the judges.
JUDGES = ("linear", "svm", "trees")

#: Rows that the linear model and the trees, and the support vector machine learn from at most.
_ROWS, _SVM_ROWS = 20_000, 3000

#: Rows on which selections are judged at most.
_TEST_ROWS = 20_000

#: Boosting rounds, and the limit on the trees of all classes together; more change little.
_ROUNDS, _TREES = 40, 400

#: The cost of errors, ``C`` of the SVM, for a standardised target.
_COST = 10.0


def _models(classes: int) -> Mapping[str, Any]:
    """An untrained model by judge, for a number of classes, 0 for a target of numbers."""
    if not classes:
        trees = HistGradientBoostingRegressor(max_iter=_ROUNDS, random_state=0)
        return {"linear": Ridge(), "svm": SVR(C=_COST), "trees": trees}
    rounds = min(_ROUNDS, _TREES // classes)
    trees = HistGradientBoostingClassifier(max_iter=rounds, random_state=0)
    return {"linear": LogisticRegression(max_iter=300), "svm": SVC(), "trees": trees}


def judge(rows: Split, metric: str, columns: np.ndarray) -> dict[str, float]:
    """Scores columns on the test rows by each judge.

    Args:
      metric: ``accuracy`` in percent, ``auc`` times 100 for two classes, or ``r2`` times 100, at
        least 0.
    """
    X, X_test, y, y_test = rows.X[:, columns], rows.X_test[:, columns], rows.y, rows.y_test
    X, y = _some(X, y, _ROWS)
    X_test, y_test = _some(X_test, y_test, _TEST_ROWS)
    if metric == "r2":
        mean, deviation = y.mean(), y.std()
        y, y_test = (y - mean) / deviation, (y_test - mean) / deviation
    scores = {}
    for name, model in _models(0 if metric == "r2" else len(np.unique(y))).items():
        fitted = make_pipeline(StandardScaler(), model)
        # Threads would wait for each other on a busy machine.
        with threadpool_limits(1):
            fitted.fit(*(_some(X, y, _SVM_ROWS) if name == "svm" else (X, y)))
            scores[name] = round(100.0 * max(_score(fitted, X_test, y_test, metric), 0.0), 3)
    return scores


def _some(X: np.ndarray, y: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray]:
    """At most so many of the rows, drawn at random."""
    if len(y) <= most:
        return X, y
    rows = np.random.default_rng(0).choice(len(y), most, replace=False)
    return X[rows], y[rows]


def _score(model: Any, X: np.ndarray, y: np.ndarray, metric: str) -> float:
    if metric == "auc":
        return float(roc_auc_score(y, model.decision_function(X)))
    measure = accuracy_score if metric == "accuracy" else r2_score
    return float(measure(y, model.predict(X)))


def judge_each(
    rows: Split, metric: str, ranking: np.ndarray, sizes: Sequence[int]
) -> dict[str, float]:
    """Scores the first columns of a ranking by number of columns and judge.

    Returns:
      Scores by ``JUDGE@SIZE``. A ranking of fewer columns is judged by all of them.
    """
    scores: dict[str, float] = {}
    judged: dict[int, dict[str, float]] = {}
    for size in sizes:
        number = min(size, len(ranking))
        if number not in judged:
            judged[number] = judge(rows, metric, ranking[:number])
        scores |= {f"{name}@{size}": score for name, score in judged[number].items()}
    return scores
