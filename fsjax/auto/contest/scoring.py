"""How predictions are scored: the library's own metrics, and any scorer of scikit-learn by name."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np
from scipy.special import ndtri
from scipy.stats import rankdata
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.metrics import get_scorer, get_scorer_names, r2_score

from fsjax import ConfigError
from fsjax.auto.contest import row_scores
from fsjax.errors import nearest
from fsjax.evaluation import concordance_index, d2_poisson

#: If the smaller of two classes has less than this share, accuracy says little.
_RARE: Final = 0.2

#: The metric of numbers by their ranks, and the share of the variance of a target from which its
#: largest hundredth makes it the default: R2 of the values would hang on these few rows. Of fewer
#: rows one carries as much by chance.
RANKED: Final = "rank_r2"
_EXTREME, _HUNDREDTH, _MIN_ROWS = 0.5, 0.01, 30

#: Beginnings of names of scikit-learn's scorers that are never below 0.
_SHARES: Final = (
    "accuracy", "average_precision", "balanced_accuracy", "f1", "jaccard", "precision", "recall",
    "roc_auc", "top_k_accuracy",
)  # fmt: skip

#: Further scorers that are at most 1; others, such as mutual information, may be larger.
_AT_MOST_ONE: Final = (
    "adjusted_", "completeness", "d2", "explained_variance", "fowlkes", "homogeneity", "matthews",
    "normalized_", "r2", "rand_score", "v_measure",
)  # fmt: skip

#: Smaller scores of unknown scale, such as errors in a small unit, are shown by significant digits.
_SMALL: Final = 0.1

#: From a fitted model, test columns, test targets and optionally weights of the test rows to a
#: score, larger is better, or NaN.
Scorer = Callable[..., float]

#: From training and test targets, and optionally weights of both, to the score without any column.
ChanceScore = Callable[..., float]

#: Weights of rows, None if all count alike.
_Weights = np.ndarray | None


class Metric(NamedTuple):
    """How predictions are scored.

    Attributes:
      name: in ``selection.json``; a name of the library or of a scorer of scikit-learn.
      label: name on axes.
      short: name in sentences.
      digits: shown digits after the decimal point, or significant ones: see :data:`_SMALL`.
      score: larger is better; in percent if the bounds are 0 and 100.
      chance: the score without any column.
      bounds: smallest and largest possible score.
      rows: like ``score``, but the scores ``(n,)`` of single rows, whose mean it is; ``None`` if
        there are none.
    """

    name: str
    label: str
    short: str
    digits: int
    score: Scorer
    chance: ChanceScore
    bounds: tuple[float, float] = (-np.inf, np.inf)
    rows: Callable[[Any, Any, np.ndarray], np.ndarray] | None = None

    @property
    def in_percent(self) -> bool:
        """Whether scores are in [0, 100]."""
        return self.bounds == (0.0, 100.0)

    @property
    def margin(self) -> float:
        """A difference that hardly matters; infinite for scores of unknown scale."""
        if self.in_percent:
            return 2.0
        return 0.02 if self.bounds[1] == 1.0 else np.inf

    def within_bounds(self, value: float) -> float:
        """A mean that was corrected for missing folds, but not beyond what is possible."""
        return float(np.clip(value, *self.bounds))

    def number(self, value: float, sign: bool = False) -> str:
        """A score as text without its unit, if ``sign`` with its sign."""
        if not np.isfinite(value):
            return "not known"
        if np.isinf(self.margin) and 0 < abs(value) < _SMALL:
            return f"{value:{'+' if sign else ''}.{self.digits}g}".replace("-", "\N{MINUS SIGN}")
        if round(value, self.digits) == 0:
            return f"{0:.{self.digits}f}"
        return f"{value:{'+' if sign else ''}.{self.digits}f}".replace("-", "\N{MINUS SIGN}")

    def show(self, value: float) -> str:
        """A score as text with its unit."""
        return self.number(self.within_bounds(value)) + (
            " %" if self.in_percent and np.isfinite(value) else ""
        )


def _accuracy(model: Any, X: Any, y: np.ndarray, weights: _Weights = None) -> float:
    return _percent(model.predict(X) == y, weights)


def _majority(
    train: np.ndarray, test: np.ndarray, of_train: _Weights = None, of_test: _Weights = None
) -> float:
    return _percent(test == np.bincount(train, of_train).argmax(), of_test)


def _auc(model: Any, X: Any, y: np.ndarray, weights: _Weights = None) -> float:
    if np.unique(y).size < 2:
        return float("nan")
    return float(get_scorer("roc_auc")(model, X, y, **_passed(weights)))


def _commonest(
    train: np.ndarray, test: np.ndarray, of_train: _Weights = None, of_test: _Weights = None
) -> float:
    return _percent(test == (weighted_mean(train, of_train) > 0.5), of_test)


def _r2(model: Any, X: Any, y: np.ndarray, weights: _Weights = None) -> float:
    # One row has no variance to explain.
    if len(y) < 2:
        return float("nan")
    return float(r2_score(y, model.predict(X), sample_weight=weights))


def _r2_of_mean(
    train: np.ndarray, test: np.ndarray, of_train: _Weights = None, of_test: _Weights = None
) -> float:
    if len(test) < 2:
        return float("nan")
    return float(r2_score(test, _mean(train, test, of_train), sample_weight=of_test))


def _d2(model: Any, X: Any, y: np.ndarray, weights: _Weights = None) -> float:
    return d2_poisson(y, model.predict(X), weights)


def _d2_of_mean(
    train: np.ndarray, test: np.ndarray, of_train: _Weights = None, of_test: _Weights = None
) -> float:
    return d2_poisson(test, _mean(train, test, of_train), of_test)


def _concordance(model: Any, X: Any, y: np.ndarray, weights: _Weights = None) -> float:
    if not y[:, 1].any():
        return float("nan")
    return concordance_index(y[:, 0], y[:, 1], model.predict(X), weights)


def _half(*targets_and_weights: Any) -> float:
    return 0.5


def _mean(train: np.ndarray, test: np.ndarray, weights: _Weights) -> np.ndarray:
    return np.broadcast_to(weighted_mean(train, weights), test.shape)


def _percent(right: np.ndarray, weights: _Weights) -> float:
    return 100.0 * float(np.mean(weighted_mean(right, weights)))


def weighted_mean(values: np.ndarray, weights: _Weights) -> np.ndarray:
    """Mean over the rows ``(N, ...)``."""
    return values.mean(axis=0) if weights is None else np.average(values, axis=0, weights=weights)


def _passed(weights: _Weights) -> dict[str, np.ndarray]:
    return {} if weights is None else {"sample_weight": weights}


METRICS: Final = {
    metric.name: metric
    for metric in (
        Metric("accuracy", "accuracy in percent", "accuracy", 1, _accuracy, _majority,
               (0.0, 100.0), row_scores.accuracy_of_rows),
        Metric("auc", "area under the ROC curve", "AUC", 3, _auc, _half,
               (0.0, 1.0), row_scores.auc_of_rows),
        Metric("label_accuracy", "accuracy of labels in percent", "accuracy of labels", 1,
               _accuracy, _commonest, (0.0, 100.0), row_scores.accuracy_of_rows),
        Metric("r2", "R2", "R2", 3, _r2, _r2_of_mean, (-np.inf, 1.0), row_scores.r2_of_rows),
        Metric(RANKED, "R2 of the ranks (as normal scores)", "R2 of the ranks", 3, _r2, _r2_of_mean,
               (-np.inf, 1.0), row_scores.r2_of_rows),
        Metric("d2", "D2 (Poisson)", "D2", 3, _d2, _d2_of_mean, (-np.inf, 1.0),
               row_scores.d2_of_rows),
        Metric("concordance_index", "concordance index", "concordance index", 3, _concordance,
               _half, (0.0, 1.0), row_scores.concordance_of_rows),
    )
}  # fmt: skip

#: The library's own metrics of each task; the first is the default.
OF_TASK: Final = {
    "classification": ("accuracy", "auc"),
    "regression": ("r2", RANKED),
    "multilabel": ("label_accuracy",),
    "counts": ("d2",),
    "survival": ("concordance_index",),
}


def metric_named(name: str, task: str) -> Metric:
    """The library's metric of that name, or scikit-learn's scorer."""
    return METRICS[name] if name in METRICS else _of_scorer(name, task)


def choose_metric(name: str | None, task: str, y: np.ndarray) -> Metric:
    """The metric of that name, or the default: by the target, for two tasks.

    ``auc`` if one of two classes is rare; :data:`RANKED` if a few extreme values carry most of the
    variance of a regression's target.

    Args:
      name: of :data:`OF_TASK`, or of a scorer of scikit-learn, or ``None`` for the default.
      task: of :data:`OF_TASK`.

    Raises:
      ConfigError: for a name that does not suit the task, or ``auc`` of several classes.
    """
    allowed = OF_TASK[task]
    two = task == "classification" and len(np.unique(y)) == 2
    if name is None:
        if two and np.bincount(y).min() < _RARE * len(y):
            return METRICS["auc"]
        if task == "regression" and len(y) >= _MIN_ROWS and extreme_share(y) > _EXTREME:
            return METRICS[RANKED]
        return METRICS[allowed[0]]
    if name == "auc" and not two:
        raise ConfigError(f"metric='auc' of {task} needs two classes; choose {allowed[0]!r}")
    if name in allowed:
        return METRICS[name]
    if name in METRICS or task == "survival" or name not in get_scorer_names():
        others = get_scorer_names() if task != "survival" else ()
        names = [*allowed, *(other for other in others if other != name)]
        hint = nearest(name, names)
        if hint.startswith("allowed"):
            hint = f"allowed: {', '.join(map(repr, allowed))}" + (
                ", or a scorer of scikit-learn" if task != "survival" else ""
            )
        raise ConfigError(f"metric={name!r} of {task}: {hint}")
    _check_suits(name, task, y)
    return _of_scorer(name, task)


def _check_suits(name: str, task: str, y: np.ndarray) -> None:
    """ConfigError for a scorer of scikit-learn that raises an error for such a target."""
    kind = DummyClassifier() if task in ("classification", "multilabel") else DummyRegressor()
    nothing = np.zeros((len(y), 1))
    try:
        get_scorer(name)(kind.fit(nothing, y), nothing, y)
    except ValueError as error:
        reason = " ".join(str(error).split())
        raise ConfigError(
            f"metric={name!r} does not suit this target ({reason}); choose {OF_TASK[task][0]!r}, "
            "or another scorer of scikit-learn, such as f1_macro or roc_auc_ovr for several classes"
        ) from None


def check_weighs_rows(metric: Metric) -> None:
    """Checks that a metric takes weights of rows.

    Raises:
      ConfigError: for a scorer of scikit-learn that does not.
    """
    if metric.name in METRICS:
        return
    function = getattr(get_scorer(metric.name), "_score_func", None)
    if function is None or "sample_weight" not in inspect.signature(function).parameters:
        raise ConfigError(
            f"metric={metric.name!r} does not take sample_weight; choose another metric, or omit "
            "sample_weight"
        )


def extreme_share(y: np.ndarray) -> float:
    """Share of the variance of ``(N,)`` numbers that the hundredth of them farthest out carries.

    About 0.08 for a Gaussian and 0.25 for an exponential distribution. Of several outputs
    ``(N, C)`` the largest share.
    """
    columns = y.reshape(len(y), -1)
    squares = np.sort(np.square(columns - columns.mean(axis=0)), axis=0)
    largest = squares[-hundredth(len(y)) :].sum(axis=0)
    return float((largest / squares.sum(axis=0).clip(1e-300)).max())


def hundredth(rows: int) -> int:
    """A hundredth of the rows, rounded up."""
    return int(np.ceil(_HUNDREDTH * rows))


def normal_scores(y: np.ndarray) -> np.ndarray:
    """The standard normal quantiles of the ranks of numbers ``(N,)`` or ``(N, C)``."""
    return ndtri((rankdata(y, axis=0) - 0.5) / len(y))


def _of_scorer(name: str, task: str) -> Metric:
    scorer = get_scorer(name)

    def chance(
        train: np.ndarray, test: np.ndarray, of_train: _Weights = None, of_test: _Weights = None
    ) -> float:
        kind = DummyClassifier() if task in ("classification", "multilabel") else DummyRegressor()
        nothing = np.zeros((len(train), 1))
        try:
            model = kind.fit(nothing, train, of_train)
            return float(scorer(model, np.zeros((len(test), 1)), test, **_passed(of_test)))
        except ValueError:
            return float("nan")

    def score(model: Any, X: Any, y: np.ndarray, weights: _Weights = None) -> float:
        try:
            return float(scorer(model, X, y, **_passed(weights)))
        except AttributeError as error:
            raise ConfigError(
                f"metric={name!r} does not work with this judge ({error}); choose another metric, "
                "or another judge"
            ) from None

    words = name.replace("_", " ")
    return Metric(name, words, words, 3, score, chance, _bounds_of_scorer(name))


def _bounds_of_scorer(name: str) -> tuple[float, float]:
    if name.startswith("neg_"):
        return -np.inf, 0.0
    lowest = 0.0 if name.startswith(_SHARES) else -np.inf
    return lowest, 1.0 if name.startswith((*_SHARES, *_AT_MOST_ONE)) else np.inf
