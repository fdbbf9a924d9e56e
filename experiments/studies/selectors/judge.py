"""Judges columns by two models that are trained on them and evaluated on the test rows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR
from threadpoolctl import threadpool_limits

from experiments.studies.selectors.tables import Split

#: Boosting rounds, and the limit on the trees of all classes together; more change little.
_ROUNDS, _TREES = 40, 400

#: The cost of errors, ``C`` of the SVM, for a standardised target.
_COST = 10.0


class Judged(NamedTuple):
    """Accuracy in percent, or 100 R2 for numbers, of a support vector machine and of trees."""

    svm: float
    trees: float


def judge(rows: Split, task: str, columns: np.ndarray) -> Judged:
    """Scores columns by an RBF SVM on standardised columns and by boosted trees."""
    X, X_test, y, y_test = rows.X[:, columns], rows.X_test[:, columns], rows.y, rows.y_test
    if task == "classification":
        rounds = min(_ROUNDS, _TREES // len(np.unique(y)))
        svm, trees = SVC(), HistGradientBoostingClassifier(max_iter=rounds, random_state=0)
    else:
        svm, trees = SVR(C=_COST), HistGradientBoostingRegressor(max_iter=_ROUNDS, random_state=0)
        mean, deviation = y.mean(), y.std()
        y, y_test = (y - mean) / deviation, (y_test - mean) / deviation
    models = make_pipeline(StandardScaler(), svm), trees
    # With several threads, the trees' threads would wait for each other on a busy machine.
    with threadpool_limits(1):
        return Judged(*(100.0 * float(model.fit(X, y).score(X_test, y_test)) for model in models))
