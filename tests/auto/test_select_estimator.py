"""``AutoSelector``: ``fsjax.select`` as an estimator of scikit-learn."""

import warnings
from types import SimpleNamespace

import chex
import numpy as np
import pandas as pd
import pytest
from auto_helpers import QUICK
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import check_estimator

from fsjax.estimators import AutoSelector


@pytest.mark.slow
def test_the_estimator_in_a_pipeline():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 9))
    y = np.where(X[:, 2] + X[:, 5] > 0, "up", "down")
    selector = AutoSelector(methods=QUICK, budget=None)
    model = make_pipeline(selector, SVC()).fit(X[:150], y[:150])
    np.testing.assert_array_equal(selector.get_support(indices=True), [2, 5])
    assert model.score(X[150:], y[150:]) > 0.9
    assert set(np.flatnonzero(selector.ranking_ <= 2)) == {2, 5}
    assert selector.n_features_ == 2 and selector.selection_.better_than_chance
    chex.assert_shape(selector.transform(X), (200, 2))
    assert selector.plot().axes


def test_parameters_of_the_estimator_reach_the_selection(monkeypatch):
    calls = []
    selection = SimpleNamespace(
        table=pd.DataFrame({"column": ["x2", "x0"], "score": [2.0, 1.0]}),
        columns=["x2"],
        statements=(),
    )
    monkeypatch.setattr(
        "fsjax.estimators.auto.select", lambda X, y, **options: calls.append(options) or selection
    )
    options = {"budget": 60, "task": "regression", "metric": "r2", "judge": "linear", "fdr": 0.2}
    options["methods"] = QUICK
    selector = AutoSelector(random_state=5, verbose=True, **options)
    groups = np.arange(8) // 2
    selector.fit(np.eye(8)[:, :3], np.arange(8.0), row_groups=groups)
    assert calls == [{**options, "seed": 5, "progress": True, "row_groups": groups}]
    assert selector.support_.tolist() == [False, False, True]
    assert selector.ranking_.tolist() == [2, 3, 1]
    np.testing.assert_array_equal(selector.scores_, [1.0, np.nan, 2.0])


@pytest.mark.slow
@pytest.mark.parametrize(
    "labels",
    [[7, 8, 9, 10], pd.MultiIndex.from_product([["a", "b"], [1, 2]]), ["id", "a", "3", "b"]],
)
@pytest.mark.parametrize("is_sparse", [False, True])
def test_the_selection_has_the_labels_of_the_table(labels, is_sparse):
    rng = np.random.default_rng(0)
    values = rng.normal(size=(120, 4)) * (rng.random((120, 4)) < 0.7)
    frame = pd.DataFrame(values, columns=labels)
    X = frame.astype(pd.SparseDtype(float, 0.0)) if is_sparse else frame
    y = (values[:, 1] - values[:, 2] > 0).astype(int)
    selector = AutoSelector(methods=QUICK, judge="linear", budget=None).fit(X, y)
    columns = selector.selection_.columns
    assert set(columns) == {frame.columns[1], frame.columns[2]}
    assert frame[columns].shape == (120, 2)
    assert selector.get_support().tolist() == [False, True, True, False]


@pytest.mark.slow
def test_the_estimator_keeps_all_columns_of_noise():
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(80, 6)), rng.integers(0, 2, 80)
    with pytest.warns(UserWarning, match="no column is selected, so all are kept: Nothing"):
        selector = AutoSelector(methods=QUICK, budget=None).fit(X, y)
    assert selector.support_.all() and selector.n_features_ == 6


#: Folds are drawn by the number of rows, so that a repeated row is not the same as one of twice the
#: weight.
EXPECTED = {
    f"check_sample_weight_equivalence_on_{form}_data": "folds are drawn by the number of rows"
    for form in ("dense", "sparse")
}


@pytest.mark.long
def test_it_is_an_estimator_of_scikit_learn():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        check_estimator(AutoSelector(methods=("l1",), budget=None), expected_failed_checks=EXPECTED)
