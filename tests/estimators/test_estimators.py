"""Estimators in the hands of a scikit-learn user: what they select, predict and show."""

from __future__ import annotations

import signal
from typing import Any

import numpy as np
import pandas as pd
import pytest
from estimator_helpers import COLUMNS, ROWS, quick, table
from marks import slow_ids, some_long
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from synthetic_result import make_result

import fsjax
from fsjax.errors import ConfigError
from fsjax.estimators import ESTIMATORS, IPCAE, STG, FisherScore
from fsjax.estimators.base import importance_shares
from tools import stubs

#: Fewest epochs and smallest networks of every class, for tests of what surrounds the training.
TINY: dict[str, dict[str, Any]] = {
    **{
        name: {"hidden": (4,)} if "hidden" in one().get_params() else {}
        for name, one in ESTIMATORS.items()
    },
    "lassonet": {"hidden": (4,), "dense_epochs": 5, "path_epochs": 1, "path_multiplier": 4.0},
}

#: Classes that differ from another one by options alone; ``make test-long`` tries them.
ALIKE = ("cae", "gjsd", "ctre_seq", "rigl", "snip", "static_sparse", "dense", "random_selection")


@slow_ids("aefs", "binmask", "ctre_sim", "deep_lasso", "dufs", "entryprune", "ip_cae", "lassonet")
@slow_ids("neurofs", "probmask", "quick_selection", "sequential_attention", "set", "stg", "wast")
@slow_ids("auto_nfs", "sand")
@pytest.mark.parametrize("name", some_long(ESTIMATORS, ALIKE))
def test_every_class_fits_selects_and_predicts(name: str) -> None:
    x, y = table()
    estimator = ESTIMATORS[name](n_features_to_select=2, **TINY[name])
    epochs = 400 if name == "lassonet" else 2
    estimator.set_params(num_epochs=epochs)
    if "search" in estimator.get_params():
        estimator.set_params(search=False)
    trained = estimator.fit(x, y)
    assert trained is estimator
    assert estimator.get_support().sum() == estimator.n_features_ == 2
    assert not estimator.get_support()[0], "constant columns are not taken"
    assert sorted(estimator.ranking_) == list(range(1, COLUMNS + 1))
    assert estimator.ranking_[estimator.get_support()].max() == 2
    assert estimator.scores_.shape == estimator.selection_frequency_.shape == (COLUMNS,)
    assert estimator.transform(x).shape == (ROWS, 2)
    if estimator.task == "reconstruction" or "hidden" not in TINY[name]:
        assert not hasattr(estimator, "predict")
    else:
        assert set(estimator.predict(x)) <= {"high", "low"}
        np.testing.assert_allclose(estimator.predict_proba(x).sum(axis=1), 1.0, rtol=1e-6)


def test_it_is_the_fit_of_the_library(fitted: FisherScore) -> None:
    x, y = table()
    split = fitted.result_.splits[0]
    again = fsjax.fit(
        fsjax.methods.fisher_score(2, hidden=(4,), learning_rate=0.1),
        (x, y),
        seeds=(0, 1),
        num_epochs=3,
        split=split,
        scaling="standard",
    )
    np.testing.assert_array_equal(again.scores, fitted.result_.scores)
    np.testing.assert_array_equal(again.predict(x), fitted.result_.predict(x))
    assert fitted.selected_[0][0] == 2


def test_attributes_and_outputs_that_scikit_learn_names(fitted: FisherScore) -> None:
    x, y = table()
    assert fitted.n_iter_ == 3
    assert fitted.feature_importances_.shape == (COLUMNS,)
    np.testing.assert_allclose(fitted.feature_importances_.sum(), 1.0)
    assert fitted.feature_importances_.min() >= 0 and fitted.feature_importances_.argmax() == 2
    np.testing.assert_allclose(fitted.predict_log_proba(x), np.log(fitted.predict_proba(x)))
    odds = fitted.decision_function(x)
    assert odds.shape == (ROWS,)
    np.testing.assert_array_equal(fitted.classes_[(odds > 0).astype(int)], fitted.predict(x))
    third = np.where(x[:, 3] > 0.5, "other", y)
    several = quick().fit(x, third)
    logs = several.decision_function(x)
    assert logs.shape == (ROWS, 3)
    np.testing.assert_array_equal(several.classes_[logs.argmax(axis=1)], several.predict(x))
    assert not hasattr(IPCAE(task="regression"), "decision_function")
    assert not hasattr(IPCAE(task="regression"), "predict_log_proba")


@pytest.mark.parametrize(
    ("scores", "shares"),
    [
        ([1.0, 3.0], [0.25, 0.75]),
        ([-1.0, 0.0, 1.0], [0, 1 / 3, 2 / 3]),
        ([0.0, 0.0], [0, 0]),
        ([np.nan, 2.0, -np.inf], [0, 1, 0]),
        ([np.inf, 1.0, 2.0], [0.4, 0.2, 0.4]),
    ],
)
def test_importances_are_shares(scores: list[float], shares: list[float]) -> None:
    np.testing.assert_allclose(importance_shares(np.array(scores)), shares)


def test_a_result_as_a_frame(fitted: FisherScore) -> None:
    frame = fitted.result_.to_frame()
    assert list(frame.columns) == ["column", "rank", "selection_frequency", "score"]
    assert frame.index[0] == 2 and frame["column"].iloc[0] == "x2"
    np.testing.assert_array_equal(frame["rank"], np.arange(1, COLUMNS + 1))
    by_number = frame.sort_index()
    np.testing.assert_array_equal(by_number["rank"], fitted.ranking_)
    np.testing.assert_array_equal(by_number["score"], fitted.scores_)
    np.testing.assert_array_equal(by_number["selection_frequency"], fitted.selection_frequency_)
    gates = np.linspace(0, 1, 3 * 64).reshape(3, 64)
    with_gates = make_result(gates=gates).to_frame().sort_index()
    np.testing.assert_allclose(with_gates["gate"], gates.mean(axis=0))


@pytest.mark.slow
def test_ctrl_c_also_ends_a_cross_validation() -> None:
    def interrupt(progress: fsjax.Progress) -> None:
        signal.raise_signal(signal.SIGINT)

    # Shells let programs in the background ignore Ctrl-C.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            cross_val_score(quick(callback=interrupt), *table(), cv=2)
        with pytest.warns(UserWarning, match="training was interrupted"):
            kept = quick(callback=interrupt, keep_partial=True).fit(*table())
    finally:
        signal.signal(signal.SIGINT, before)
    assert kept.n_iter_ == 1


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["numbers", "several"])
def test_regression(kind: str) -> None:
    x, y = table(kind)
    estimator = IPCAE(
        2, task="regression", hidden=(8,), num_epochs=60, learning_rate=0.03, batch_size=16
    )
    assert estimator.fit(x, y).predict(x).shape == y.shape
    assert estimator.score(x, y) > 0.8
    assert not hasattr(estimator, "predict_proba")


def test_a_filter_selects_and_leaves_prediction_to_others() -> None:
    x, y = table()
    estimator = FisherScore(2).fit(x, y)
    assert estimator.get_support()[2] and estimator.history_ == {}
    np.testing.assert_array_equal(estimator.scores_, quick().fit(x, y).scores_)
    for name in ("predict", "predict_proba", "score"):
        assert not hasattr(estimator, name)
    with pytest.raises(AttributeError, match="predict") as caught:
        estimator.predict(x)
    assert "FisherScore selects columns and predicts nothing" in str(caught.value.__cause__)
    pipeline = make_pipeline(FisherScore(1), LogisticRegression())
    assert pipeline.fit(x, y).score(x, y) > 0.9


@pytest.mark.slow
def test_pipelines_and_searches() -> None:
    x, y = table()
    pipeline = make_pipeline(StandardScaler(), quick())
    search = GridSearchCV(pipeline, {"fisherscore__n_features_to_select": [1, 3]}, cv=2)
    search.fit(x, y)
    assert search.best_estimator_[-1].n_features_ in (1, 3)
    assert len(cross_val_score(clone(quick()), x, y, cv=2)) == 2


@pytest.mark.slow
def test_a_method_picks_its_own_number() -> None:
    x, y = table()
    estimator = STG(hidden=(4,), strength=0.5, num_epochs=60, batch_size=16).fit(x, y)
    assert estimator.n_features_ == estimator.get_support().sum() < COLUMNS
    assert estimator.get_support()[2]
    partly = clone(estimator).set_params(num_epochs=2).fit(x, y)
    assert ((partly.result_.gates > 0) & (partly.result_.gates < 0.5)).any()
    moved = np.where(partly.support_, x, x + 5)
    np.testing.assert_array_equal(partly.predict_proba(moved), partly.predict_proba(x))
    several = clone(estimator).set_params(n_seeds=2, strength=0.2, num_epochs=10).fit(x, y)
    majority = several.selection_frequency_ >= 0.5
    np.testing.assert_array_equal(several.get_support(), majority)
    assert sorted(several.ranking_[majority]) == list(range(1, majority.sum() + 1))
    for number, columns_of_seed in enumerate(several.selected_):
        assert len(set(columns_of_seed)) == len(columns_of_seed)
        assert set(columns_of_seed) <= set(np.flatnonzero(several.selection_frequency_ > 0)), number
    assert quick(n_features_to_select=None).fit(x, y).n_features_ == COLUMNS // 2
    assert quick(n_features_to_select=0.5).fit(x, y).n_features_ == 3


@pytest.mark.slow
def test_more_seeds_agree_on_one_selection() -> None:
    x, y = table()
    estimator = IPCAE(2, hidden=(4,), num_epochs=2, n_seeds=3, random_state=5).fit(x, y)
    assert len(estimator.selected_) == 3 and estimator.result_.seeds == (5, 6, 7)
    assert estimator.get_support().sum() == 2
    assert estimator.history_["train/loss"].shape == (3, 2)
    counts = sum(np.isin(np.arange(COLUMNS), one) for one in estimator.selected_)
    np.testing.assert_allclose(estimator.selection_frequency_, counts / 3)
    np.testing.assert_allclose(estimator.scores_, estimator.result_.scores.mean(axis=0))
    again = clone(estimator).fit(x, y)
    np.testing.assert_array_equal(again.predict_proba(x), estimator.predict_proba(x))


def test_plots(fitted: FisherScore) -> None:
    x, y = table()
    named = quick(n_seeds=2).fit(pd.DataFrame(x, columns=list("abcdef")), y)
    labels = [label.get_text() for label in named.plot().axes[0].get_yticklabels()]
    assert labels[0] == "c" and set(labels) < set("abdef") | {"c"}
    assert "stability 1.00" in named.plot("stability").get_suptitle()
    assert len(fitted.plot("curves").axes) >= 2
    pixels = fitted.plot(image_shape=(2, 3))
    assert pixels.axes[0].get_xlabel() == "pixel column"
    # What a notebook asks of it.
    assert pixels._repr_png_().startswith(b"\x89PNG")
    with pytest.raises(ConfigError, match="kind='stabilty': did you mean 'stability'"):
        fitted.plot("stabilty")
    with pytest.raises(NotFittedError):
        quick().plot()


def test_documentation_names_every_argument() -> None:
    for estimator in ESTIMATORS.values():
        text = estimator.__doc__
        for name in estimator().get_params():
            assert name in text, f"{estimator.__name__}: {name}"


def test_type_stubs_are_up_to_date() -> None:
    for path, text in stubs.stubs().items():
        assert path.read_text() == text, "run: python -m tools.stubs"
