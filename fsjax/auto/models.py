"""The model behind a selection: how well some columns predict, on rows that it has not seen."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

import numpy as np
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.linear_model import PoissonRegressor
from sklearn.metrics import accuracy_score, r2_score, roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.multioutput import MultiOutputRegressor
from sklearn.svm import SVC, SVR, LinearSVC, LinearSVR

from fsjax.auto.preparation import Part, standardise
from fsjax.auto.sparse import FEW, Columns, limits, scaled
from fsjax.errors import ConfigError, nearest
from fsjax.evaluation import CoxRegression, concordance_index
from fsjax.metrics.by_task import d2_poisson
from fsjax.tasks import TABLE

#: A model learns from at most this many rows, drawn at random.
MAX_ROWS: Final = 4000

#: The smaller of two classes below this share: accuracy says little.
_RARE: Final = 0.1

#: Ridge of the linear models of counts and of survival, whose columns are standardised.
_RIDGE: Final = {"counts": 1e-2, "survival": 1.0}

#: Fewer rows for all columns of a sparse table, where the model takes a matrix of the rows.
MAX_SPARSE: Final = {"survival": 500}

_SVM: Final = "support vector machine, RBF kernel"


class Metric(NamedTuple):
    """How the columns are judged.

    Attributes:
      name: as in ``selection.json``; those in percent are in [0, 100], the others at most 1.
      label: on axes.
      short: in sentences.
      digits: after the point, where it is shown.
      model: what predicts.
      score: from training and test rows with the judged columns alone.
      chance: what predicting without any column gives, from training and test targets.
      wide: what is different for all columns of a sparse table, where they are many.
    """

    name: str
    label: str
    short: str
    digits: int
    model: str
    score: Callable[[Part, Part], float]
    chance: Callable[[np.ndarray, np.ndarray], float]
    wide: str = "; for all columns a linear one"

    def show(self, value: float) -> str:
        """A score as text, with its unit."""
        if np.isnan(value):
            return "not known"
        return f"{value:.{self.digits}f}" + (" %" if "percent" in self.label else "")


def _svc(train: Part) -> SVC | LinearSVC:
    if issparse(train.X):
        return LinearSVC(dual=True, random_state=0).fit(train.X, train.y)
    return SVC(cache_size=500).fit(train.X, train.y)


def _accuracy(train: Part, test: Part) -> float:
    return 100.0 * accuracy_score(test.y, _svc(train).predict(test.X))


def _majority(train: np.ndarray, test: np.ndarray) -> float:
    return 100.0 * float(np.mean(test == np.bincount(train).argmax()))


def _auc(train: Part, test: Part) -> float:
    if np.unique(test.y).size < 2:
        return float("nan")
    return float(roc_auc_score(test.y, _svc(train).decision_function(test.X)))


def _label_accuracy(train: Part, test: Part) -> float:
    """The mean over the labels; one that all training rows share is predicted for all."""
    found = []
    for label, truth in zip(train.y.T, test.y.T, strict=True):
        both = np.unique(label).size > 1
        told = _svc(train._replace(y=label)).predict(test.X) if both else label[0]
        found.append(np.mean(told == truth))
    return 100.0 * float(np.mean(found))


def _commonest(train: np.ndarray, test: np.ndarray) -> float:
    return 100.0 * float(np.mean(test == (train.mean(axis=0) > 0.5)))


def _r2(train: Part, test: Part) -> float:
    """C = 10 on standardised targets."""
    mean, deviation = TABLE["regression"].scale(train.y)
    model = SVR(C=10.0, cache_size=500)
    if issparse(train.X):
        model = LinearSVR(C=10.0, dual=True, random_state=0)
    if train.y.ndim > 1:
        model = MultiOutputRegressor(model)
    model.fit(train.X, (train.y - mean) / deviation)
    return float(r2_score((test.y - mean) / deviation, model.predict(test.X)))


def _mean(train: np.ndarray, test: np.ndarray) -> np.ndarray:
    return np.broadcast_to(train.mean(axis=0), test.shape)


def _d2(train: Part, test: Part) -> float:
    """Explained share of the Poisson deviance, the mean over several targets."""
    solver = "lbfgs" if issparse(train.X) else "newton-cholesky"
    model = PoissonRegressor(alpha=_RIDGE["counts"], solver=solver, max_iter=100)
    told = [clone(model).fit(train.X, y).predict(test.X) for y in _columns(train.y)]
    return d2_poisson(test.y, np.stack(told, axis=-1))


def _concordance(train: Part, test: Part) -> float:
    """Of a ridge Cox regression; more columns than rows are turned to as many as rows."""
    X, X_test = train.X, test.X
    # A ridge does not see rotations.
    if issparse(X):
        values, vectors = np.linalg.eigh((X @ X.T).toarray())
        vectors = vectors[:, values > 1e-10 * values[-1]]
        X, X_test = (np.asarray(rows @ (X.T @ vectors)) for rows in (X, X_test))
    elif X.shape[1] > len(X):
        directions = np.linalg.svd(X, full_matrices=False)[2].T
        X, X_test = X @ directions, X_test @ directions
    model = CoxRegression(_RIDGE["survival"]).fit(X, train.y)
    if not test.y[:, 1].any():
        return float("nan")
    return concordance_index(test.y[:, 0], test.y[:, 1], model.predict(X_test))


def _columns(y: np.ndarray) -> np.ndarray:
    return y.reshape(len(y), -1).T


METRICS: Final = {
    one.name: one
    for one in (
        Metric("accuracy", "accuracy in percent", "accuracy", 1, _SVM, _accuracy, _majority),
        Metric("auc", "area under the ROC curve", "AUC", 3, _SVM, _auc, lambda train, test: 0.5),
        Metric("label_accuracy", "accuracy of labels in percent", "accuracy of labels", 1,
               _SVM, _label_accuracy, _commonest),
        Metric("r2", "R2", "R2", 3, _SVM, _r2,
               lambda train, test: r2_score(test, _mean(train, test))),
        Metric("d2", "D2 (Poisson)", "D2", 3, "Poisson regression", _d2,
               lambda train, test: d2_poisson(test, _mean(train, test)), ""),
        Metric("concordance_index", "concordance index", "concordance index", 3,
               "ridge Cox regression", _concordance, lambda train, test: 0.5,
               f"; for all columns on at most {MAX_SPARSE['survival']} rows"),
    )
}  # fmt: skip

#: The metrics of each task; the first is the default.
OF_TASK: Final = {
    "classification": ("accuracy", "auc"),
    "regression": ("r2",),
    "multilabel": ("label_accuracy",),
    "counts": ("d2",),
    "survival": ("concordance_index",),
}


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
    """The metric of the metric's model that learns from some columns of the training rows only.

    Args:
      metric: how to judge.
      task: what the target is.
      train, test: prepared rows. Few columns of sparse ones are made dense; many are divided by
        their largest value and have a linear model, as scikit-learn advises.
      columns: numbers of the columns that it sees.
    """
    X, X_test = _seen(train.X, test.X, columns)
    train, most = train._replace(X=X), MAX_SPARSE.get(task, MAX_ROWS) if issparse(X) else MAX_ROWS
    if len(train.y) > most:
        strata = TABLE[task].strata(train.y)
        if strata is not None and np.unique(strata, return_counts=True)[1].min() < 2:
            strata = None
        rows = np.arange(len(train.y))
        kept, _ = train_test_split(rows, train_size=most, random_state=0, stratify=strata)
        train = Part(train.X[kept], train.y[kept])
    return metric.score(train, test._replace(X=X_test))


def _seen(X: Columns, X_test: Columns, columns: np.ndarray) -> tuple[Columns, ...]:
    if not issparse(X):
        return X[:, columns], X_test[:, columns]
    if len(columns) <= FEW:
        return standardise(X[:, columns].toarray(), X_test[:, columns].toarray())
    some = len(columns) < X.shape[1]
    rows = (X[:, columns], X_test[:, columns]) if some else (X, X_test)
    # Deviations would make rare columns large; rows of length 1 on average suit linear models.
    low, high = limits(rows[0])
    largest = np.maximum(-low, high)
    largest[largest == 0] = np.inf
    X, X_test = (scaled(part, 0.0, largest) for part in rows)
    length = np.sqrt(np.square(X.data).sum() / X.shape[0]) or 1.0
    return X / length, X_test / length
