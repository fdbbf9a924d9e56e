"""The judge: the model that predicts held-out rows from selected columns.

In a fold, all methods and numbers of columns have the same judge, so that their scores can be
compared: a linear model, a support vector machine with an RBF kernel, or boosted trees, whichever
predicts best within the training rows of the fold (:mod:`fsjax.auto.contest.judge_choice`); or any
estimator of scikit-learn.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, Self

import numpy as np
from scipy.sparse import issparse
from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    TransformerMixin,
    clone,
    is_classifier,
    is_regressor,
)
from sklearn.compose import TransformedTargetRegressor
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, PoissonRegressor, RidgeCV
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR

from fsjax import ConfigError
from fsjax.auto.contest.judge_checks import check_predictions, named_failures
from fsjax.auto.contest.rankers.parts import Part, standardise
from fsjax.auto.contest.row_weights import fit_weighted
from fsjax.auto.contest.scoring import Metric
from fsjax.auto.reading.column_operations import (
    FEW,
    Columns,
    densify,
    is_sparse_table,
    limits,
    scaled_columns,
)
from fsjax.errors import check_choice
from fsjax.evaluation import CoxRegression

#: Scores that differ by less than this share of them are equal.
_SAME: Final = 1e-9

#: Penalties among which the ridge regression chooses, for standardised columns.
_PENALTIES: Final = np.logspace(-2, 4, 13)

#: Boosting rounds of the trees: few, with large steps, because there are some hundred fits.
_ROUNDS: Final = 50

#: Ridge of the linear models of counts and of survival, whose columns are standardised.
_RIDGE: Final = {"counts": 1e-2, "survival": 1.0}

#: Most rows for fits on all columns of a sparse table, for models that need a matrix of the rows.
_SPARSE_ROWS: Final = {"survival": 500}

#: Most rows that a support vector machine trains on: its time grows with their square.
_KERNEL_ROWS: Final = 4000


class Judge(NamedTuple):
    """A model that predicts from selected columns.

    Attributes:
      name: ``linear``, ``rbf``, ``trees``, or the class of the user's own estimator.
      words: its name in sentences.
      build: from the training rows to a new estimator.
      most_rows: the most rows that it trains on.
      users: whether it is the user's own estimator, whose predictions are checked.
    """

    name: str
    words: str
    build: Callable[[Part], Any]
    most_rows: float = np.inf
    users: bool = False


class Judged(NamedTuple):
    """The predictions of a judge, scored.

    Attributes:
      score: larger is better; NaN if it is not defined.
      rows: ``(n,)`` scores of the test rows, (:mod:`fsjax.auto.contest.row_scores`);
        ``None`` if the metric has none.
    """

    score: float
    rows: np.ndarray | None


class Tried(NamedTuple):
    """Result of one judge in cross-validation.

    Attributes:
      name, words: of the judge.
      score: mean score; NaN if it failed or took too long.
      seconds: of one fit with its prediction.
    """

    name: str
    words: str
    score: float
    seconds: float


def judges_of(task: str) -> tuple[Judge, ...]:
    """The judges that suit a task, the fastest first."""
    if task in ("classification", "multilabel"):
        classifiers = (
            Judge("linear", "L2-regularized logistic regression", _logistic),
            Judge("rbf", "a support vector machine with an RBF kernel",
                  lambda train: SVC(cache_size=500), _KERNEL_ROWS),
            Judge("trees", "gradient boosted trees",
                  lambda train: HistGradientBoostingClassifier(**_trees(train))),
        )  # fmt: skip
        if task == "classification":
            return classifiers
        return tuple(judge._replace(build=_each_label(judge.build)) for judge in classifiers)
    if task == "regression":
        return (
            Judge("linear", "ridge regression", lambda train: RidgeCV(_PENALTIES)),
            Judge("rbf", "support vector regression with an RBF kernel", _several(_svr),
                  _KERNEL_ROWS),
            Judge("trees", "gradient boosted trees",
                  _several(lambda train: HistGradientBoostingRegressor(**_trees(train)))),
        )  # fmt: skip
    if task == "counts":
        return (
            Judge("linear", "Poisson regression", _several(_poisson)),
            Judge("trees", "gradient boosted trees with the Poisson loss", _several(
                  lambda train: HistGradientBoostingRegressor(loss="poisson", **_trees(train)))),
        )  # fmt: skip
    return (Judge("linear", "ridge Cox regression", _cox),)


def requested_judge(judge: Any, task: str) -> Judge | None:
    """The judge that the user asked for, or ``None`` for the choice by inner validation.

    Args:
      judge: a name of :func:`judges_of`, or an estimator of scikit-learn.

    Raises:
      ConfigError: for an unknown name, or an estimator that does not suit the task.
    """
    if judge is None:
        return None
    suited = {choice.name: choice for choice in judges_of(task)}
    if isinstance(judge, str):
        check_choice("judge", judge, list(suited))
        return suited[judge]
    kind = type(judge).__name__
    if isinstance(judge, type) or not (hasattr(judge, "fit") and hasattr(judge, "predict")):
        raise ConfigError(
            f"judge={judge!r}; choose one of {', '.join(map(repr, suited))}, or an estimator of "
            "scikit-learn such as LogisticRegression()"
        )
    classes = task in ("classification", "multilabel")
    if task == "survival" or (is_regressor(judge) if classes else is_classifier(judge)):
        wanted = "a classifier" if classes else "a regressor"
        if task == "survival":
            wanted = "judge='linear'"
        raise ConfigError(f"judge={kind} does not suit task={task!r}; choose {wanted}")
    return Judge(kind, str(judge), lambda train: clone(judge), users=True)


def choose_judge(
    candidates: Sequence[Judge],
    task: str,
    metric: Metric,
    splits: Sequence[tuple[Part, Part, np.ndarray]],
    affordable: Callable[[Judge, float], bool],
) -> tuple[Judge, tuple[Tried, ...]]:
    """The judge that predicts best on inner splits, among those that cost little enough.

    Args:
      candidates: the fastest first, which is taken if no other is affordable.
      splits: training rows, validation rows, and the columns that the judges see.
      affordable: whether a judge whose fit takes so many seconds has time for all selections.

    Returns:
      The judge, and the results of all candidates.
    """
    tried = []
    for judge in candidates:
        scores, seconds = [], np.inf
        for train, test, columns in splits if len(candidates) > 1 else splits[:1]:
            start = time.monotonic()
            try:
                scores.append(judged(judge, metric, task, train, test, columns).score)
            except (ValueError, np.linalg.LinAlgError):
                if len(candidates) == 1:
                    raise
                scores.append(float("nan"))
            # The first fit is slower: it imports modules.
            seconds = min(seconds, time.monotonic() - start)
            if not affordable(judge, seconds):
                break
        complete = affordable(judge, seconds) and not np.isnan(scores).all()
        score = float(np.nanmean(scores)) if complete else float("nan")
        tried.append(Tried(judge.name, judge.words, score, seconds))
    scored = [np.nan_to_num(trial.score, nan=-np.inf) for trial in tried]
    # Of equal scores, up to rounding errors, the fastest judge's counts.
    best = np.isclose(scored, max(scored), rtol=_SAME, atol=0.0)
    return candidates[int(np.argmax(best))], tuple(tried)


def judged(
    judge: Judge, metric: Metric, task: str, train: Part, test: Part, columns: np.ndarray
) -> Judged:
    """The scores of a judge that sees only some of the columns."""
    model, X = fitted(judge, task, train, test, columns)
    name = judge.name if judge.users else None
    with warnings.catch_warnings(), named_failures(name, f"score by {metric.name!r}"):
        warnings.simplefilter("ignore", UserWarning)
        rows = None if metric.rows is None else metric.rows(model, X, test.y)
        return Judged(float(metric.score(model, X, test.y, test.weights)), rows)


def fitted(
    judge: Judge, task: str, train: Part, test: Part, columns: np.ndarray
) -> tuple[Any, Columns]:
    """A fitted judge, and the columns of the test rows as it sees them.

    A few columns of sparse rows are made dense. More columns are divided by their largest value and
    get a linear model, as scikit-learn advises.
    """
    X, X_test = _seen(train, test, columns)
    part = Part(X, train.y, weights=train.weights)
    most = judge.most_rows
    if issparse(X):
        judge = judges_of(task)[0]
        most = _SPARSE_ROWS.get(task, np.inf)
    if len(part.y) > most:
        rows = np.random.default_rng(0).permutation(len(part.y))[: int(most)]
        kept = None if part.weights is None else part.weights[rows]
        part = Part(part.X[rows], part.y[rows], weights=kept)
    model = judge.build(part)
    with warnings.catch_warnings(), named_failures(judge.name if judge.users else None, "fit"):
        warnings.simplefilter("ignore", ConvergenceWarning)
        fit_weighted(model, part.X, part.y, part.weights)
    if judge.users:
        check_predictions(judge.name, model, X_test, part.y, task)
    return model, X_test


def _seen(train: Part, test: Part, columns: np.ndarray) -> tuple[Columns, ...]:
    X, X_test = train.X, test.X
    if isinstance(X, np.ndarray):
        return X[:, columns], X_test[:, columns]
    if len(columns) <= FEW:
        dense = densify(X[:, columns]), densify(X_test[:, columns])
        return standardise(*dense, weights=train.weights)
    rows = (X[:, columns], X_test[:, columns]) if len(columns) < X.shape[1] else (X, X_test)
    # Deviations would make rare columns large; rows of length 1 on average suit linear models.
    low, high = limits(rows[0])
    largest = np.maximum(-low, high)
    largest[largest == 0] = np.inf
    scaled_rows, scaled_test = (scaled_columns(part, 0.0, largest) for part in rows)
    length = np.sqrt(np.square(scaled_rows.data).sum() / X.shape[0]) or 1.0
    return scaled_rows / length, scaled_test / length


class _Rotation(TransformerMixin, BaseEstimator):
    """Rotates wide tables to as many columns as rows, to which L2-penalized models are invariant.

    Args:
      all_sparse: whether sparse tables of any width become dense coordinates.
    """

    def __init__(self, all_sparse: bool = False) -> None:
        self.all_sparse = all_sparse

    def fit(self, X: Columns, y: Any = None) -> Self:
        self.directions_ = None
        if X.shape[1] > X.shape[0] or (self.all_sparse and issparse(X)):
            gram = X @ X.T
            values, vectors = np.linalg.eigh(densify(gram))
            kept = values > 1e-10 * max(values[-1], 1e-300)
            self.directions_ = np.asarray(X.T @ (vectors[:, kept] / np.sqrt(values[kept])))
        return self

    def transform(self, X: Columns) -> Columns:
        return X if self.directions_ is None else np.asarray(X @ self.directions_)


def _logistic(train: Part) -> Any:
    return make_pipeline(_Rotation(), LogisticRegression(C=1.0, max_iter=200, tol=1e-3))


def _svr(train: Part) -> Any:
    return TransformedTargetRegressor(SVR(cache_size=500), transformer=StandardScaler())


def _poisson(train: Part) -> Any:
    # Newton's method has a dense Hessian (D, D), too large for the many columns of sparse tables.
    solver = "lbfgs" if is_sparse_table(train.X) else "newton-cholesky"
    return PoissonRegressor(alpha=_RIDGE["counts"], solver=solver, max_iter=100)


def _cox(train: Part) -> Any:
    return make_pipeline(_Rotation(all_sparse=True), CoxRegression(_RIDGE["survival"]))


def _trees(train: Part) -> dict[str, Any]:
    rows = len(train.y)
    return {
        "max_iter": _ROUNDS,
        "learning_rate": 0.2,
        "max_leaf_nodes": 8,
        "max_bins": 63,
        "min_samples_leaf": int(np.clip(rows // 20, 2, 20)),
        "early_stopping": False,
        "random_state": 0,
    }


def _each_label(build: Callable[[Part], Any]) -> Callable[[Part], Any]:
    """One classifier for each label."""
    return lambda train: _EachLabel(build)


def _several(build: Callable[[Part], Any]) -> Callable[[Part], Any]:
    """One regressor, or one for each column of the target."""
    return lambda train: build(train) if train.y.ndim == 1 else MultiOutputRegressor(build(train))


class _EachLabel(ClassifierMixin, BaseEstimator):
    """One classifier per label; a label that is constant in training is predicted as such."""

    def __init__(self, build: Callable[[Part], Any]) -> None:
        self.build = build

    def fit(self, X: Columns, y: np.ndarray, sample_weight: np.ndarray | None = None) -> Self:
        self.models_ = [
            fit_weighted(self._model(Part(X, label)), X, label, sample_weight) for label in y.T
        ]
        self.classes_ = [np.array([0, 1]) for _ in self.models_]
        return self

    def _model(self, part: Part) -> Any:
        return self.build(part) if np.unique(part.y).size > 1 else DummyClassifier()

    def predict(self, X: Columns) -> np.ndarray:
        return np.column_stack([model.predict(X) for model in self.models_])

    def predict_proba(self, X: Columns) -> list[np.ndarray]:
        """``(N, 2)`` for each label, as scikit-learn's metrics take them."""
        shares = [model.predict_proba(X) @ model.classes_ for model in self.models_]
        return [np.stack([1.0 - share, share], axis=1) for share in shares]
