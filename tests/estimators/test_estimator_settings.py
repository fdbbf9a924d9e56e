"""Parameters that all estimators have: each mistake is named before anything is trained."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from bad_calls import bad_calls, refuses
from marks import slow_ids

import fsjax
from fsjax.errors import DataError
from fsjax.estimators import ESTIMATORS, IPCAE, STG, WAST, FisherScore, RandomSelection, load

ROWS = 60
X = np.random.default_rng(0).normal(size=(ROWS, 4))
Y = (X[:, 1] > 0).astype(int)


@pytest.fixture
def untrained(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing may be trained."""

    def train(*_: Any, **__: Any) -> None:
        raise AssertionError("it trains")

    monkeypatch.setattr(fsjax.Plan, "train", train)


FRAME = pd.DataFrame(X, columns=list("abcd"))
DAYS = pd.date_range("2020", periods=ROWS)
GAPS = np.array(["a", None] * (ROWS // 2), object)
CLASSES = np.where(Y, "a", "b")


def fit(build: Any = IPCAE, x: Any = X, y: Any = Y, k: Any = 2, weight: Any = None, **given: Any):
    """A call of fit, whose mistake is one of the arguments."""
    return lambda: build(k, **given).fit(x, y, weight)


@bad_calls(
    (fit(k=7), "X has 4 columns; choose at most 4"),
    (fit(k=0), "whole number from 1 to 4"),
    (fit(k=1.5), "share in (0, 1]"),
    (fit(k="two"), "whole number from 1 to 4"),
    (fit(task="clasification"), "did you mean 'classification'"),
    (fit(FisherScore, task="regression"), "allowed: 'classification'"),
    (fit(task="regression", y=CLASSES), "not numbers"),
    (fit(y=X[:, 2]), "choose task='regression'"),
    (fit(y=np.full(ROWS, "same")), "one class only"),
    (fit(y=None), "requires y"),
    (fit(y=GAPS), "y has missing labels"),
    (fit(hidden=(0,)), "hidden"),
    (fit(learning_rate=-1.0), "learning_rate"),
    (fit(n_seeds=0), "n_seeds=0"),
    (fit(num_epochs=0), "num_epochs=0"),
    (fit(batch_size=0), "batch_size=0"),
    (fit(validation_fraction=1.0), "validation_fraction"),
    (fit(class_weight={0: -1}), "class_weight has -1 for the class 0"),
    (fit(class_weight={0: "a"}), "class_weight has 'a' for the class 0"),
    (fit(class_weight={9: 1}), "class_weight has the class 9; y has [0, 1]"),
    (fit(class_weight={0: 0}), "leaves fewer than two classes"),
    (fit(class_weight="balancd"), "class_weight='balancd'; choose 'balanced', a dictionary"),
    (fit(verbose="no"), "verbose='no'; choose True or False"),
    (fit(standardize=2), "standardize=2; choose True, False, or"),
    (fit(standardize="standart"), "standardize='standart'", "did you mean"),
    (fit(random_state=1.5), "random_state=1.5; choose a seed from 0"),
    (fit(random_state=True), "random_state=True; choose a seed"),
    (fit(random_state=-1), "random_state=-1; choose a seed"),
    (fit(groups=[0, 0, 1, np.nan]), "groups has missing labels"),
    (fit(groups=[0, 0, 1, None]), "groups has missing labels"),
    (fit(groups=np.array([0, "a", 1, "c"], object)), "groups has labels of several types"),
    (fit(validation_data=(X, None)), "validation_data has 60 rows in X and a y"),
    (fit(validation_data=(X[:, :3], Y)), "validation_data: X has 3 features"),
    (fit(validation_data=(X * np.nan, Y)), "validation_data has ", "(NaN)", "impute"),
    (fit(validation_data=3), "validation_data is not a pair; give (X, y)"),
    (fit(x=FRAME.assign(c="text")), "1 of 4 columns that are not numbers"),
    (fit(x=FRAME.assign(d=DAYS)), "not numbers: 'd'"),
    (fit(x=FRAME.set_axis(list("abca"), axis=1)), "several columns called 'a'"),
    (fit(weight="balanced"), "sample_weight: ", "give a number for each row"),
    (lambda: IPCAE(seed=3), "no argument 'seed': did you mean 'random_state"),
    (lambda: IPCAE(lr=3), "no argument 'lr': did you mean 'learning_rate"),
    (lambda: IPCAE(k=3), "no argument 'k': did you mean 'n_features"),
    (lambda: IPCAE(X, Y), "got 2 arguments without names", "as"),
)
@pytest.mark.usefixtures("untrained")
def test_bad_calls(bad: tuple) -> None:
    refuses(*bad, error=(ValueError, TypeError))


def test_arguments_that_a_method_refuses_are_none_of_the_class() -> None:
    assert "finetune_epochs" not in STG().get_params()
    for name, estimator in ESTIMATORS.items():
        about = fsjax.methods.METHODS[name]().about
        assert ("groups" in estimator().get_params()) == about.takes_groups
    assert "groups" not in (WAST.__doc__ or "")


@pytest.mark.slow
def test_large_offsets_and_values() -> None:
    """Times in seconds, whose differences float32 does not hold."""
    plain = FisherScore(2, hidden=(4,), num_epochs=1).fit(X, Y)
    moved = FisherScore(2, hidden=(4,), num_epochs=1).fit(X + 1.7e9, Y)
    np.testing.assert_allclose(moved.scores_, plain.scores_, rtol=1e-4)
    np.testing.assert_array_equal(moved.predict(X + 1.7e9), plain.predict(X))
    huge = FisherScore(2, hidden=(4,), num_epochs=1).fit(X * 1e39, Y)
    np.testing.assert_allclose(huge.scores_, plain.scores_, rtol=1e-4)
    with pytest.raises(DataError, match="column 0', .*after the scaling 'none'"):
        FisherScore(2, standardize=False).fit(X * 1e39, Y)


@slow_ids("False")
@slow_ids("True")
@pytest.mark.parametrize("several", [False, True])
def test_targets_are_scaled_and_predictions_scaled_back(several: bool, tmp_path) -> None:
    y = 500.0 + 100.0 * X[:, 1]
    y = np.stack([y, 1e7 * y], axis=1) if several else y
    options = {"task": "regression", "hidden": (16,), "num_epochs": 60, "learning_rate": 0.01}
    # Columns 0 to 3, so nothing is left to chance.
    selector = RandomSelection(4, validation_fraction=0.0, **options).fit(X, y)
    assert selector.score(X, y) > 0.8
    selector.save(tmp_path / "a.npz")
    np.testing.assert_array_equal(load(tmp_path / "a.npz").predict(X), selector.predict(X))
    raw = RandomSelection(4, validation_fraction=0.0, standardize=False, **options).fit(X, y)
    assert raw.score(X, y) < 0.0


@pytest.mark.usefixtures("untrained")
def test_numbers_are_hardly_classes() -> None:
    table = np.ones((132, 1))
    with pytest.warns(UserWarning, match="y holds 33 different"):
        with pytest.raises(DataError, match="constant"):
            FisherScore(1).fit(table, np.arange(132) // 4)


@pytest.mark.slow
def test_random_generators_draw_the_seed() -> None:
    seeds = [
        FisherScore(2, hidden=(4,), num_epochs=1, random_state=generator).fit(X, Y).result_.seeds
        for generator in (
            np.random.default_rng(3), np.random.default_rng(3), None,
            np.random.RandomState(3), np.random.RandomState(3), np.random.RandomState(4),
        )
    ]  # fmt: skip
    assert seeds[0] == seeds[1] != seeds[2]
    assert seeds[3] == seeds[4] != seeds[5]


def test_what_is_saved_where(tmp_path) -> None:
    fitted = FisherScore(2, hidden=(4,), num_epochs=1).fit(X, Y)
    refuses(lambda: fitted.save(tmp_path), "is a folder; give the name of a file")
    refuses(lambda: fsjax.save(fitted, tmp_path / "a"), "save an estimator with its own method")
    refuses(lambda: fitted.plot(tittle="a"), "plot('selection') has no option 'tittle'")
