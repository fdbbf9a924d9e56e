"""Tables, settings and judges that ended in a traceback: an answer, or an error that says why.

Covers ``fsjax.auto.contest.judge_checks``.
"""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin

import fsjax
from fsjax.auto.answer.effects import partial_dependence_curves
from fsjax.auto.reading.target import check_scale
from fsjax.errors import ConfigError, DataError
from fsjax.estimators import AutoSelector

RNG = np.random.default_rng(0)
X = pd.DataFrame(RNG.normal(size=(90, 4)), columns=list("abcd"))
SUM = (X["a"] + X["c"]).to_numpy()
Y = np.where(SUM > 0, "yes", "no")
QUICK = {"methods": ("univariate",), "judge": "linear", "budget": None}


@pytest.mark.parametrize("seed", [2**31 + 1, 2**40, 2**64])
def test_seeds_beyond_those_of_random_generators(seed):
    with pytest.raises(ConfigError, match="seed=.*at most 2147483648"):
        fsjax.select(X, Y, seed=seed, **QUICK)
    with pytest.raises(ConfigError, match="at most 2147483648"):
        AutoSelector(random_state=seed).fit(X, Y)


def test_the_largest_seed_works():
    assert set(fsjax.select(X, Y, seed=2**31, **QUICK).columns) == {"a", "c"}


@pytest.mark.slow
@pytest.mark.parametrize("target", [Y, SUM], ids=["classes", "numbers"])
@pytest.mark.parametrize(
    ("factor", "shift"), [(1.0, 1e8), (1e-200, 0.0), (1e200, 0.0), ([1e200, 1, 1e-300, 1e300], 0.0)]
)
def test_columns_of_any_scale_are_selected_as_others_are(factor, shift, target):
    usual, scaled = (fsjax.select(table, target, **QUICK) for table in (X, X * factor + shift))
    assert scaled.columns == usual.columns
    assert scaled.score == pytest.approx(usual.score, abs=1e-3)


@pytest.mark.parametrize(("factor", "shift"), [(1e-200, 0.0), (1e200, 0.0), (1.0, 1e9), (1.0, 0.0)])
def test_a_curve_has_the_unit_of_its_column(factor, shift):
    column = np.linspace(-1.0, 1.0, 200)
    # Far from the others, which make up the curve.
    column[0] = -1e12
    curve = partial_dependence_curves(shift + factor * column[:, None], column, [0])[0]
    (usual,) = partial_dependence_curves(column[:, None], column, [0])
    np.testing.assert_allclose((curve.values - shift) / factor, usual.values, atol=1e-4)
    np.testing.assert_allclose(curve.predictions, usual.predictions, atol=0.02)
    assert curve.values.max() - curve.values.min() < 3 * factor


@pytest.mark.filterwarnings("ignore:overflow encountered in cast")
@pytest.mark.parametrize("factor", [1e200, 1e-200, 1e-310])
def test_targets_whose_squares_are_no_numbers(factor):
    with pytest.raises(DataError, match="beyond the range of numbers; scale it"):
        fsjax.select(X, SUM * factor, **QUICK)


def test_targets_of_usual_scale_pass():
    check_scale(SUM * 1e90)
    check_scale(np.column_stack([np.arange(5.0), np.ones(5)]))


class _Judge(BaseEstimator):
    def __init__(self, predictions=None, fails="", probability=0.5):
        self.predictions, self.fails, self.probability = predictions, fails, probability

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        if self.fails == "fit":
            raise RuntimeError("singular")
        return self

    def predict(self, X):
        if self.fails == "predict":
            raise KeyError("x0")
        return self.predictions(len(X))

    def predict_proba(self, X):
        if self.fails == "score":
            raise OverflowError("exp")
        return np.full((len(X), 2), self.probability)


class Classifier(ClassifierMixin, _Judge):
    pass


class Regressor(RegressorMixin, _Judge):
    pass


@pytest.mark.parametrize(
    ("predictions", "message"),
    [
        (lambda n: np.full(n, 7), "'7', which no training row has"),
        (lambda n: np.full(n, "maybe"), "'maybe', which no training row has"),
        (lambda n: np.full(n, np.nan), "'nan', which no training row has"),
        (lambda n: np.zeros(n - 1, int), r"shape \(\d+,\) for \d+ rows"),
        (lambda n: np.zeros((n, 1), int), r"shape \(\d+, 1\) for"),
        (lambda n: 0, r"shape \(\) for"),
    ],
)
def test_classifiers_whose_predictions_are_wrong(predictions, message):
    with pytest.raises(ConfigError, match=f"judge=Classifier predicts .*{message}"):
        fsjax.select(X, Y, **QUICK | {"judge": Classifier(predictions)})


@pytest.mark.parametrize(
    "predictions",
    [
        lambda n: np.full(n, np.nan),
        lambda n: np.full(n, np.inf),
        lambda n: np.full(n, "many"),
        lambda n: np.zeros((n, 1)),
    ],
)
def test_regressors_whose_predictions_are_wrong(predictions):
    with pytest.raises(ConfigError, match="judge=Regressor predicts "):
        fsjax.select(X, SUM, **QUICK | {"judge": Regressor(predictions)})


@pytest.mark.parametrize(
    ("step", "message"),
    [
        ("fit", "fails at fit .RuntimeError: singular"),
        ("predict", "fails at predict .KeyError"),
        ("score", "fails at score by 'auc' .OverflowError: exp"),
    ],
)
def test_judges_that_fail(step, message):
    judge = Classifier(lambda n: np.zeros(n, int), fails=step)
    with pytest.raises(ConfigError, match=f"judge=Classifier {message}"):
        fsjax.select(X, Y, metric="auc", **QUICK | {"judge": judge})
