"""Ridge Cox regression against figures from lifelines and scikit-survival."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from fsjax.errors import ConfigError, DataError
from fsjax.evaluation import CoxRegression
from fsjax.evaluation.cox import _sorted, partial_likelihood

#: Generated: two columns, time (with ties) and event.
TABLE = np.array(
    [
        [0.5, -1.2, 3, 1],
        [-0.3, 0.8, 5, 1],
        [1.7, 0.1, 1, 1],
        [0.2, 0.4, 3, 1],
        [-1.1, -0.6, 8, 0],
        [0.9, 1.5, 2, 1],
        [-0.7, 0.3, 5, 0],
        [0.1, -0.9, 6, 1],
        [1.2, -0.4, 3, 0],
        [-1.6, 1.1, 7, 1],
        [0.4, 0.6, 2, 1],
        [-0.2, -1.5, 9, 0],
    ]
)
X, Y = TABLE[:, :2], TABLE[:, 2:]

#: ``coef_`` of ``sksurv.linear_model.CoxPHSurvivalAnalysis`` 0.28; without a penalty those of
#: ``lifelines.CoxPHFitter`` 0.30.
FIGURES = {
    (0.0, "efron"): [1.8995649587, 1.2493174905],
    (0.0, "breslow"): [1.8535831152, 1.1841724623],
    (0.5, "efron"): [1.4766582754, 0.9958720181],
    (0.5, "breslow"): [1.4368604963, 0.9424590383],
    (3.0, "breslow"): [0.7760174568, 0.5428326472],
}


@pytest.mark.parametrize(("alpha", "ties"), FIGURES)
def test_figures_of_other_libraries(alpha: float, ties: str) -> None:
    model = CoxRegression(alpha, ties=ties).fit(X, Y)
    np.testing.assert_allclose(model.coef_, FIGURES[alpha, ties], rtol=1e-6)
    np.testing.assert_allclose(model.predict(X), (X - X.mean(axis=0)) @ model.coef_)


def test_too_few_steps_are_a_warning() -> None:
    with pytest.warns(ConvergenceWarning, match=r"max_iter=2 steps .*tol=1e-08"):
        CoxRegression(0.5, max_iter=2).fit(X, Y)


@pytest.mark.parametrize("ties", ["efron", "breslow"])
def test_derivatives(ties: str) -> None:
    table, beta, step = _sorted(X, Y, ties), np.array([0.7, -0.4]), 1e-6
    _, slope, hessian = partial_likelihood(table, beta)
    for column, unit in enumerate(step * np.eye(2)):
        up, down = (partial_likelihood(table, beta + sign * unit) for sign in (1, -1))
        assert slope[column] == pytest.approx((up[0] - down[0]) / (2 * step), rel=1e-6)
        np.testing.assert_allclose(hessian[column], (up[1] - down[1]) / (2 * step), rtol=1e-6)


def test_units_shifts_and_constant_columns_do_not_matter() -> None:
    plain = CoxRegression(0.5).fit(X, Y)
    moved = CoxRegression(0.5).fit(X + [1e3, -40.0], Y)
    np.testing.assert_allclose(moved.coef_, plain.coef_, rtol=1e-6)
    scaled, free = CoxRegression(0).fit(X * [1e4, 1e-3], Y), CoxRegression(0).fit(X, Y)
    np.testing.assert_allclose(scaled.coef_ * [1e4, 1e-3], free.coef_, rtol=1e-6)
    wide = CoxRegression(0.5).fit(np.column_stack([X, np.ones(12)]), Y)
    np.testing.assert_allclose(wide.coef_, [*plain.coef_, 0.0], rtol=1e-6, atol=1e-12)


def test_as_an_estimator() -> None:
    records = np.array(
        [(event > 0, time) for time, event in Y], dtype=[("died", bool), ("weeks", float)]
    )
    frame = pd.DataFrame({"died": Y[:, 1] > 0, "weeks": Y[:, 0]})
    plain = clone(CoxRegression()).fit(X, Y)
    for y in (records, frame, frame[["weeks", "died"]]):
        np.testing.assert_array_equal(CoxRegression().fit(X, y).coef_, plain.coef_)
        assert plain.score(X, y) == plain.score(X, Y) > 0.7
    with pytest.raises(NotFittedError):
        CoxRegression().predict(X)


def test_mistakes() -> None:
    for wrong in ({"alpha": -1.0}, {"ties": "exact"}, {"tol": 0.0}, {"max_iter": 0}):
        with pytest.raises(ConfigError):
            CoxRegression(**wrong).fit(X, Y)
    with pytest.raises(DataError, match="times above 0"):
        CoxRegression().fit(X, Y - [5, 0])
    with pytest.raises(DataError, match="all rows of y are censored"):
        CoxRegression().fit(X, Y * [1, 0])
