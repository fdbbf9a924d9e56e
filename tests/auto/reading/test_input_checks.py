"""Tables, settings and judges that ended in a traceback: an answer, or an error that says why.

Covers ``fsjax.auto.contest.judge_checks``.
"""

import numpy as np
import pandas as pd
import pytest
from bad_calls import bad_calls, refuses
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin

import fsjax
from fsjax.auto.answer.effects import partial_dependence_curves
from fsjax.auto.reading.target import check_scale, read_target
from fsjax.data import encode_target
from fsjax.errors import DataError
from fsjax.estimators import AutoSelector

RNG = np.random.default_rng(0)
X = pd.DataFrame(RNG.normal(size=(90, 4)), columns=list("abcd"))
SUM = (X["a"] + X["c"]).to_numpy()
Y = np.where(SUM > 0, "yes", "no")
QUICK = {"methods": ("univariate",), "judge": "linear", "budget": None}


@pytest.mark.slow
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


def test_targets_of_usual_scale_pass():
    check_scale(SUM * 1e90)
    target = read_target(SUM * 1e90, None, len(SUM))
    assert target.task == "regression" and not target.notes
    with pytest.raises(DataError, match="values up to .*e.90, beyond the range of float32; scale"):
        encode_target(SUM * 1e90, "y")
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


def select(y=Y, **options):
    """A selection that is refused."""
    return lambda: fsjax.select(X, y, **QUICK | options)


def classifier(predictions=lambda n: np.zeros(n, int), **options):
    return select(judge=Classifier(predictions, **options), metric="auc" if options else None)


def regressor(predictions):
    return select(SUM, judge=Regressor(predictions))


WRONG = "judge=Classifier predicts "


@bad_calls(
    (select(seed=2**31 + 1), "seed=", "at most 2147483648"),
    (select(seed=2**64), "seed=", "at most 2147483648"),
    (lambda: AutoSelector(random_state=2**40).fit(X, Y), "at most 2147483648"),
    (select(SUM * 1e200), "beyond the range of numbers; scale it"),
    (select(SUM * 1e-200), "beyond the range of numbers; scale it"),
    (select(SUM * 1e-310), "beyond the range of numbers; scale it"),
    (classifier(lambda n: np.full(n, 7)), WRONG, "'7', which no training row has"),
    (classifier(lambda n: np.full(n, "maybe")), WRONG, "'maybe', which no training row has"),
    (classifier(lambda n: np.full(n, np.nan)), WRONG, "'nan', which no training row has"),
    (classifier(lambda n: np.zeros(n - 1, int)), WRONG, ",) for "),
    (classifier(lambda n: np.zeros((n, 1), int)), WRONG, ", 1) for"),
    (classifier(lambda n: 0), WRONG, "shape () for"),
    (regressor(lambda n: np.full(n, np.nan)), "judge=Regressor predicts "),
    (regressor(lambda n: np.full(n, np.inf)), "judge=Regressor predicts "),
    (regressor(lambda n: np.full(n, "many")), "judge=Regressor predicts "),
    (regressor(lambda n: np.zeros((n, 1))), "judge=Regressor predicts "),
    (classifier(fails="fit"), "judge=Classifier fails at fit (RuntimeError: singular"),
    (classifier(fails="predict"), "judge=Classifier fails at predict (KeyError"),
    (classifier(fails="score"), "fails at score by 'auc' (OverflowError: exp"),
)
@pytest.mark.filterwarnings("ignore:overflow encountered in cast")
def test_bad_calls(bad):
    refuses(*bad)
