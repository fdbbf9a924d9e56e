"""Parameters that all estimators have: each mistake is named before anything is trained."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import fsjax
from fsjax.errors import ConfigError, DataError
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


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"class_weight": {0: -1}}, "class_weight has -1 for the class 0"),
        ({"class_weight": {0: "a"}}, "class_weight has 'a' for the class 0"),
        ({"class_weight": {9: 1}}, r"class_weight has the class 9; y has \[0, 1\]"),
        ({"class_weight": {0: 0}}, "leaves fewer than two classes"),
        ({"class_weight": "balancd"}, "class_weight='balancd'; choose 'balanced'"),
        ({"verbose": "no"}, "verbose='no'; choose True or False"),
        ({"standardize": 2}, "standardize=2; choose True, False, or"),
        ({"standardize": "standart"}, "standardize='standart'.*did you mean"),
        ({"random_state": 1.5}, "random_state=1.5; choose a seed from 0"),
        ({"random_state": True}, "random_state=True; choose a seed"),
        ({"random_state": -1}, "random_state=-1; choose a seed"),
        ({"groups": [0, 0, 1, np.nan]}, "groups has missing labels"),
        ({"groups": [0, 0, 1, None]}, "groups has missing labels"),
        ({"groups": np.array([0, "a", 1, "c"], object)}, "groups has labels of several types"),
        ({"validation_data": (X, None)}, "validation_data has 60 rows in X and a y"),
        ({"validation_data": (X[:, :3], Y)}, "validation_data: X has 3 features"),
        ({"validation_data": (X * np.nan, Y)}, r"validation_data has .*\(NaN\).*impute"),
        ({"validation_data": 3}, r"validation_data is not a pair; give \(X, y\)"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
@pytest.mark.usefixtures("untrained")
def test_mistakes(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        IPCAE(2, **given).fit(X, Y)


@pytest.mark.usefixtures("untrained")
def test_tables_that_are_none() -> None:
    frame = pd.DataFrame(X, columns=list("abcd"))
    with pytest.raises(DataError, match="1 of 4 columns that are not numbers"):
        IPCAE(2).fit(frame.assign(c="text"), Y)
    with pytest.raises(DataError, match="not numbers: 'd'"):
        IPCAE(2).fit(frame.assign(d=pd.date_range("2020", periods=ROWS)), Y)
    with pytest.raises(DataError, match="several columns called 'a'"):
        IPCAE(2).fit(frame.set_axis(list("abca"), axis=1), Y)
    with pytest.raises(DataError, match="y has missing labels"):
        IPCAE(2).fit(X, np.array(["a", None] * (ROWS // 2), object))
    with pytest.raises(DataError, match="sample_weight: .*give a number for each row"):
        IPCAE(2).fit(X, Y, sample_weight="balanced")


def test_arguments_have_their_names() -> None:
    for given, meant in (("seed", "random_state"), ("lr", "learning_rate"), ("k", "n_features")):
        with pytest.raises(TypeError, match=f"no argument '{given}': did you mean '{meant}"):
            IPCAE(**{given: 3})
    with pytest.raises(TypeError, match="got 2 arguments without names.*as"):
        IPCAE(X, Y)


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
    with pytest.raises(ConfigError, match="is a folder; give the name of a file"):
        fitted.save(tmp_path)
    with pytest.raises(ConfigError, match="save an estimator with its own method"):
        fsjax.save(fitted, tmp_path / "a")
    with pytest.raises(ConfigError, match=r"plot\('selection'\) has no option 'tittle'"):
        fitted.plot(tittle="a")
    assert (
        repr(fitted.result_) == "FitResult(fisher_score on table, classification, K=2, seeds=(0,))"
    )
