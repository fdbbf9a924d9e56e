"""Estimators on sparse tables: the same as on dense ones."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from bad_calls import refuses
from marks import slow_ids, some_long
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

from fsjax.errors import ConfigError, DataError
from fsjax.estimators import ESTIMATORS, STG, BinMask, FisherScore, LassoNet, QuickSelection
from fsjax.methods import METHODS
from fsjax.tasks import TABLE
from fsjax.tasks.examples import example


def table(kind: type = np.float64) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    x = np.round(5 * rng.normal(size=(60, 8))) * (rng.random((60, 8)) < 0.3)
    y = np.arange(60) % 2
    x[:, 2] = y * rng.integers(1, 9, 60)
    x[7] = 0
    return x.astype(kind), np.array(["no", "yes"])[y]


def quick(**changes: Any) -> STG:
    return STG(
        **{"n_features_to_select": 3, "num_epochs": 3, "hidden": (6,), "search": False} | changes
    )


@pytest.fixture(scope="module")
def dense() -> STG:
    return quick().fit(*table())


@slow_ids("csr_matrix")
@pytest.mark.parametrize("made", [sp.csr_matrix, sp.csc_array, sp.coo_array, sp.lil_matrix])
def test_every_form_is_the_same_table(made: Any, dense: STG) -> None:
    x, y = table()
    sparse = quick().fit(made(x), y)
    np.testing.assert_array_equal(sparse.ranking_, dense.ranking_)
    np.testing.assert_allclose(sparse.scores_, dense.scores_, rtol=1e-5)
    np.testing.assert_allclose(sparse.predict_proba(made(x)), dense.predict_proba(x), rtol=1e-4)
    np.testing.assert_array_equal(sparse.predict(made(x)), dense.predict(x))
    assert sparse.score(made(x), y) == dense.score(x, y)
    transformed = sparse.transform(made(x))
    assert sp.issparse(transformed)
    np.testing.assert_array_equal(transformed.toarray(), dense.transform(x))


@pytest.mark.parametrize("kind", [np.int64, np.uint8, bool, np.float32, object])
def test_other_types(kind: type) -> None:
    x, y = table(np.uint8)
    matrix = sp.csr_matrix(x)
    matrix.data = matrix.data.astype(kind)
    if kind is object:
        with pytest.raises(DataError, match="give real numbers"):
            quick().fit(matrix, y)
        return
    other = quick().fit(x.astype(kind), y)
    np.testing.assert_array_equal(quick().fit(matrix, y).ranking_, other.ranking_)


def test_frames_with_sparse_columns(dense: STG) -> None:
    x, y = table()
    names = [f"c{number}" for number in range(8)]
    sparse = pd.DataFrame(x, columns=names).astype(pd.SparseDtype(float, 0.0))
    for frame in (sparse, sparse.assign(c3=x[:, 3])):
        with warnings.catch_warnings():
            # scikit-learn warns where it makes frames dense.
            warnings.simplefilter("error")
            transformed = quick().fit(frame, y)
            chosen = transformed.transform(frame)
            predicted = transformed.predict(frame)
        assert sp.issparse(chosen)
        np.testing.assert_array_equal(chosen.toarray(), dense.transform(x))
        np.testing.assert_array_equal(predicted, dense.predict(x))
        assert transformed.feature_names_in_.tolist() == names
        assert transformed.get_feature_names_out().tolist() == [
            names[c] for c in np.sort(transformed.selected_[0])
        ]
        with pytest.raises(ValueError, match="feature names should match"):
            transformed.predict(frame[names[::-1]])


@pytest.mark.slow
def test_weights_and_validation_rows() -> None:
    x, y = table()
    weight, valid = np.arange(60) % 3, (x[:20], y[:20])
    one = quick(validation_data=valid).fit(x, y, weight)
    two = quick(validation_data=(sp.coo_matrix(x[:20]), y[:20])).fit(sp.csr_matrix(x), y, weight)
    np.testing.assert_array_equal(one.scores_, two.scores_)
    with pytest.raises(DataError, match="both sparse or both dense"):
        quick(validation_data=valid).fit(sp.csr_matrix(x), y)


@pytest.mark.slow
@pytest.mark.parametrize("build", some_long([STG, BinMask], [BinMask]))
@pytest.mark.parametrize("task", ["survival", "multilabel", "counts"])
def test_other_targets_than_classes(build: Any, task: str) -> None:
    x, _ = table()
    y = example(TABLE[task], np.random.default_rng(0), x[:, [0, 3, 5]] / 5)
    if task == "survival":
        y = pd.DataFrame({"relapse": y[:, 1] > 0, "weeks": y[:, 0]})
    rest = y.iloc[:20] if task == "survival" else y[:20]
    weight = np.arange(60) % 3
    options = {"task": task, "num_epochs": 3, "hidden": (6,), "search": False}
    one, two = (
        build(3, validation_data=(made(x[:20]), rest), **options).fit(made(x), y, weight)
        for made in (np.asarray, sp.csr_matrix)
    )
    np.testing.assert_array_equal(two.ranking_, one.ranking_)
    np.testing.assert_allclose(two.scores_, one.scores_, rtol=1e-5)
    matrix = sp.coo_array(x)
    np.testing.assert_allclose(two.predict(matrix), one.predict(x), rtol=1e-4, atol=1e-5)
    assert two.score(matrix, y) == pytest.approx(one.score(x, y), rel=1e-4)
    if task == "multilabel":
        shares = two.predict_proba(matrix)
        np.testing.assert_allclose(shares, one.predict_proba(x), rtol=1e-4)
        with pytest.raises(ConfigError, match=r"give an array, y\.toarray\(\)"):
            build(3, **options).fit(matrix, sp.csr_array(y))


def test_bad_values_are_told() -> None:
    x, y = table()
    for bad, told in ((np.nan, "1 missing"), (np.inf, "1 infinite")):
        x[4, 6] = bad
        refuses(lambda: quick().fit(sp.csr_array(x), y), told, "column 6")
    wrong = sp.coo_matrix(table()[0])
    wrong.col[0] = -5
    refuses(lambda: quick().fit(wrong, y), "column indices from -5")
    fitted = quick().fit(sp.csr_array(table()[0]), y)
    refuses(lambda: fitted.predict(sp.csr_array(x[:, :5])), "8 features", error=ValueError)


def test_tags_say_which_methods_take_them() -> None:
    for name, made in ESTIMATORS.items():
        assert made().__sklearn_tags__().input_tags.sparse == METHODS[name]().about.sparse, name
    assert METHODS["fisher_score"]().about.sparse
    assert not METHODS["lassonet"]().about.sparse
    x, y = table()
    with pytest.raises(TypeError, match=r"toarray"):
        LassoNet(3).fit(sp.csr_array(x), y)


@pytest.mark.slow
def test_without_labels_and_in_a_pipeline() -> None:
    x, y = table()
    selector = QuickSelection(3, num_epochs=2, hidden=(6,)).fit(sp.csr_matrix(x))
    same = QuickSelection(3, num_epochs=2, hidden=(6,)).fit(x)
    np.testing.assert_array_equal(selector.ranking_, same.ranking_)
    scores = cross_val_score(make_pipeline(FisherScore(2), LinearSVC()), sp.csr_matrix(x), y, cv=3)
    assert scores.min() > 0.9
