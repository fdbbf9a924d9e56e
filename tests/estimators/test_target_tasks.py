"""Labels, counts, survival and several numbers as targets of estimators.

Covers ``fsjax.tasks.targets``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from bad_calls import bad_calls, refuses
from marks import slow_ids, some_long
from sklearn.datasets import make_multilabel_classification
from sklearn.metrics import (
    accuracy_score,
    d2_tweedie_score,
    f1_score,
    get_scorer,
    roc_auc_score,
)
from sklearn.model_selection import cross_val_predict

from fsjax import estimators
from fsjax.errors import DataError
from fsjax.estimators import STG, BinMask, LassoNet, NeuralNetwork
from fsjax.estimators.factory import ESTIMATORS
from fsjax.registry import about_of
from fsjax.tasks import SUPERVISED
from fsjax.tasks.concordance import concordance_index
from fsjax.testing import table

#: The columns that matter of 50.
TRUE = (2, 11, 20, 29, 38)
SMALL = {"hidden": (10,), "search": False, "num_epochs": 40}


def survival(seed: int, rows: int = 300) -> tuple[np.ndarray, np.ndarray]:
    """Times of hazards that five columns of 50 tell, a part of them censored."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, 50))
    mean = np.exp(-0.8 * x[:, TRUE] @ np.array([1.0, -1.0, 1.0, -1.0, 1.0]))
    time, end = rng.exponential(mean), rng.exponential(2 * mean.mean(), rows)
    return x, np.column_stack([np.minimum(time, end) + 1e-6, time <= end])


@pytest.mark.slow
@pytest.mark.parametrize("build", some_long([STG, BinMask, LassoNet], [BinMask, LassoNet]))
def test_survival_finds_the_columns_and_a_shuffled_one_does_not(build: Any) -> None:
    x, y = survival(0)
    options = {} if build is LassoNet else {"num_epochs": 60}
    estimator = build(5, task="survival", hidden=(10,), **options).fit(x, y)
    assert np.flatnonzero(estimator.support_).tolist() == list(TRUE)
    x_new, y_new = survival(1)
    assert estimator.score(x_new, y_new) > 0.75
    assert estimator.score(x_new, y_new) == concordance_index(*y_new.T, estimator.predict(x_new))
    shuffled = build(5, task="survival", hidden=(10,), **options).fit(x, y[::-1])
    assert np.isin(np.flatnonzero(shuffled.support_), TRUE).sum() <= 2
    assert shuffled.score(x_new, y_new) < 0.62


@pytest.mark.slow
def test_survival_in_every_form() -> None:
    x, y = survival(0, 80)
    event, time = y[:, 1] > 0, y[:, 0]
    records = np.array(list(zip(event, time, strict=True)), [("cens", bool), ("days", float)])
    frame = pd.DataFrame({"days": time, "dead": event})
    plain = STG(5, task="survival", **SMALL).fit(x, y)
    for other in (records, frame, frame[["dead", "days"]], y.tolist(), frame.astype(float)):
        again = STG(5, task="survival", **SMALL).fit(x, other)
        np.testing.assert_array_equal(again.scores_, plain.scores_)
        assert again.score(x, other) == plain.score(x, y)
    # Only the order of the times matters, so they may be seconds since long ago.
    late = STG(5, task="survival", **SMALL).fit(x, y + [1.7e9, 0])
    np.testing.assert_array_equal(late.scores_, plain.scores_)


@pytest.mark.slow
def test_small_tables_are_one_batch_and_validation_has_events() -> None:
    x, y = survival(0, 300)
    y[:, 1] = np.arange(300) % 30 == 0
    model = STG(5, task="survival", **SMALL).fit(x, y)
    spec = model.result_.states.spec
    assert (spec.batch_size, spec.steps_per_epoch, spec.shuffle) == (270, 10, False)
    assert y[model.result_.splits[0].valid, 1].sum() == 1
    parts = STG(5, task="survival", batch_size=32, **SMALL).fit(x, y).result_.states.spec
    assert (parts.batch_size, parts.shuffle) == (32, True)


@pytest.mark.slow
def test_labels() -> None:
    rng = np.random.default_rng(0)
    x, y = make_multilabel_classification(600, 10, n_classes=4, random_state=0)
    x = np.column_stack([x, rng.poisson(x.mean(), (600, 30))]).astype(float)
    for build in (STG, BinMask):
        estimator = build(8, task="multilabel", hidden=(10,), num_epochs=60).fit(x[:400], y[:400])
        assert (np.flatnonzero(estimator.support_) < 10).sum() >= 7
        share, predicted = estimator.predict_proba(x[400:]), estimator.predict(x[400:])
        np.testing.assert_array_equal(predicted, share > 0.5)
        assert estimator.score(x[400:], y[400:]) == accuracy_score(y[400:], predicted)
        commonest = np.broadcast_to(y[:400].mean(axis=0) >= 0.5, y[400:].shape)
        assert estimator.score(x[400:], y[400:]) > accuracy_score(y[400:], commonest) + 0.15
    frame = pd.DataFrame(y[:400] > 0)
    again = build(8, task="multilabel", hidden=(10,), num_epochs=60).fit(x[:400], frame)
    np.testing.assert_array_equal(again.scores_, estimator.scores_)


@pytest.mark.parametrize("labels", [1, 3])
def test_scorers_of_scikit_learn_take_labels(labels: int) -> None:
    x = np.random.default_rng(0).normal(size=(60, 4))
    y = (x[:, :labels] > 0).astype(int)
    model = NeuralNetwork(3, task="multilabel", hidden=(4,), num_epochs=2).fit(x, y)
    np.testing.assert_array_equal(model.classes_, [[0, 1]] * labels)
    share = model.predict_proba(x)
    assert get_scorer("roc_auc")(model, x, y) == pytest.approx(roc_auc_score(y, share))
    assert get_scorer("f1_macro")(model, x, y) == f1_score(y, model.predict(x), average="macro")
    assert cross_val_predict(model, x, y, cv=2, method="predict_proba").shape == y.shape
    assert not hasattr(model.set_params(task="regression").fit(x, x[:, 0]), "classes_")


@pytest.mark.slow
@slow_ids("0.0")
@pytest.mark.parametrize("level", [0.0, 5.0])
def test_counts(level: float) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(800, 40))
    mean = np.exp(level + x[:, [3, 17, 30]] @ np.array([0.6, -0.6, 0.5]))
    y = rng.poisson(mean)
    for build in (STG, BinMask):
        estimator = build(3, task="counts", hidden=(10,), num_epochs=60).fit(x[:500], y[:500])
        assert np.flatnonzero(estimator.support_).tolist() == [3, 17, 30]
        expected = estimator.predict(x[500:])
        assert (expected > 0).all()
        score = estimator.score(x[500:], y[500:])
        assert score == pytest.approx(d2_tweedie_score(y[500:], expected, power=1))
        assert score > 0.6 * d2_tweedie_score(y[500:], mean[500:], power=1)
    several = STG(3, task="counts", **SMALL).fit(x, np.column_stack([y, y[::-1]]))
    assert several.predict(x).shape == (800, 2)


def test_every_method_with_a_head_for_numbers_takes_all_targets() -> None:
    of_methods = {name: about_of(one.registration).tasks for name, one in ESTIMATORS.items()}
    for name, tasks in of_methods.items():
        assert "regression" not in tasks or set(tasks) >= set(SUPERVISED), name


@pytest.mark.slow
@pytest.mark.parametrize("name", ["stg", "cae", "set", "neurofs"])
def test_several_numbers(name: str) -> None:
    x, y = table("regression")
    small = {k: v for k, v in ESTIMATORS[name].registration.small.items() if k != "num_features"}
    model = ESTIMATORS[name](4, task="regression", **{**small, "num_epochs": 40}).fit(x, y)
    assert model.predict(x).shape == y.shape
    # In the units of each target, however unlike they are.
    moved = ESTIMATORS[name](4, task="regression", **{**small, "num_epochs": 40})
    moved.fit(x, y * [1000.0, 1.0] + [0.0, 50.0])
    np.testing.assert_allclose(
        moved.predict(x), model.predict(x) * [1000.0, 1.0] + [0.0, 50.0], rtol=1e-2, atol=2.0
    )


TEXT = (lambda y: np.full(y.shape, "x"), "values that are not numbers")
MISTAKES = {
    "survival": [
        (lambda y: y - [1e-3 + y[:, 0].min(), 0], "times above 0, but y has 1 others"),
        (lambda y: y * [1, 0], "all rows of ", " are censored"),
        (lambda y: y + [0, 1], "events of 0 and 1 in the second column, but y has 2"),
        (lambda y: y[:, ::-1], "the first column holds the events: swap them"),
        (lambda y: y[:, 0], "needs two columns, time and event", "shape (72"),
        (lambda y: np.column_stack([y, y]), "needs two columns, time and event"),
        (lambda y: pd.DataFrame(y).assign(more=1), "needs two columns", "but y has 3"),
        (TEXT[0], "needs numbers, a time and an event of 0 or 1, but column 0 holds 'x'"),
    ],
    "counts": [
        (lambda y: y + 0.5, "fractions in 72 entries"),
        (lambda y: y - y.max(), "negative numbers"),
        (lambda y: y * 0, "holds only zeros"),
        TEXT,
    ],
    "multilabel": [
        (lambda y: y * 2, "needs 0 and 1, but the target of y holds 2 in row 0, label 0"),
        (lambda y: y - 1, "needs 0 and 1, but the target of y holds -1"),
        (lambda y: y[:, 0], "a column of 0 and 1 for each label", "shape (72,)"),
        TEXT,
    ],
}


@bad_calls(*((task, *mistake) for task, mistakes in MISTAKES.items() for mistake in mistakes))
def test_what_y_may_not_be(bad: tuple) -> None:
    task, spoil, *words = bad
    x, y = table(task)
    refuses(lambda: STG(4, task=task, **SMALL).fit(x, spoil(y)), *words)


@pytest.mark.slow
def test_validation_data_weights_and_saving(tmp_path: Any) -> None:
    for task in ("survival", "counts", "multilabel"):
        x, y = table(task)
        held = (x[50:], y[50:])
        model = NeuralNetwork(4, task=task, hidden=(4,), num_epochs=5, validation_data=held)
        weight = np.ones(50)
        weight[:5] = 0
        model.fit(x[:50], y[:50], sample_weight=weight)
        model.validation_data = None
        model.save(tmp_path / "model.npz")
        back = estimators.load(tmp_path / "model.npz")
        np.testing.assert_allclose(back.predict(x), model.predict(x), rtol=1e-5)
        bad = NeuralNetwork(4, task=task, validation_data=(x[50:], -1 - y[50:]))
        with pytest.raises(DataError, match="validation_data"):
            bad.fit(x[:50], y[:50])
