"""Checks at the boundary, the data set value itself, generated data, and error helpers."""

import numpy as np
import pytest

from fsjax import data
from fsjax.errors import ConfigError, DataError, FsjaxError, NonFiniteLossError, nearest


def table(y: np.ndarray | None, **more: object) -> data.Dataset:
    rows = 4 if y is None else len(y)
    return data.Dataset("t", np.zeros((rows, 3), np.float32), y, **more)


def test_nearest() -> None:
    assert nearest("Isolett", ["coil20", "isolet"]) == "did you mean 'isolet'?"
    assert nearest("zzz", ["a", "b"]) == "allowed: 'a', 'b'"
    assert "none" in nearest("zzz", [])
    assert issubclass(NonFiniteLossError, FsjaxError) and issubclass(FsjaxError, ValueError)


@pytest.mark.parametrize("number", [1, 64, np.int64(5)])
def test_num_features_in_range(number) -> None:
    data.check_num_features(number, 64)


@pytest.mark.parametrize(
    ("number", "message"),
    [
        (80, "num_features=80 but X has 64 columns; choose at most 64"),
        (0, "below 1"),
        (2.5, "not a whole number"),
        ("5", "not a whole number"),
        (True, "not a whole number"),
    ],
)
def test_num_features_out_of_range(number, message) -> None:
    with pytest.raises(ConfigError, match=message):
        data.check_num_features(number, 64)


@pytest.mark.parametrize(
    ("y", "task", "message"),
    [
        (None, "classification", "needs a target.*data.target"),
        (np.linspace(0, 1, 9, dtype=np.float32), "classification", "choose task=regression"),
        (np.zeros(4, np.int32), "classification", "at least 2 classes"),
        (np.array([-1, 1], np.int32), "classification", "number them from 0"),
        (None, "regression", "needs a target"),
    ],
)
def test_task_that_does_not_fit(y, task, message) -> None:
    with pytest.raises(DataError, match=message):
        data.check_task(table(y), task)


def test_task_of_named_classes_and_unknown_task() -> None:
    named = table(np.array([0, 1], np.int32), class_names=("cat", "dog"))
    assert data.check_task(named, "classification") is named
    with pytest.raises(DataError, match="classes 'cat', 'dog'"):
        data.check_task(named, "regression")
    with pytest.raises(ConfigError, match="did you mean 'regression'"):
        data.check_task(named, "regresion")


def test_features_and_constant_columns() -> None:
    X = np.array([[1, 2], [1, 3]], np.float32)
    data.check_features(X, None, "X")
    data.check_features(X.astype(np.uint8), ("a", "b"), "X")
    assert data.constant_columns(X).tolist() == [True, False]
    X[0, 1] = np.nan
    with pytest.raises(DataError, match="here has 1 missing.*: 'b'"):
        data.check_features(X, ("a", "b"), "here")
    with pytest.raises(DataError, match="'column 1'"):
        data.check_features(X, None, "here")
    with pytest.raises(DataError, match="real numbers"):
        data.check_features(X.astype(complex), None, "here")


def test_dataset_properties_and_grid() -> None:
    digits = data.load("digits")
    assert (digits.num_samples, digits.num_features, digits.num_classes) == (1797, 64, 10)
    assert digits.as_image(np.arange(64))[1, 0] == 8
    assert "1797 rows" in repr(digits)
    assert digits.column_names[1] == "pixel_0_1"
    with pytest.raises(DataError, match="no grid"):
        table(None).as_image(np.zeros(3))
    assert table(None).column_names == ("x0", "x1", "x2")


@pytest.mark.parametrize(
    "more",
    [
        {"official_split": np.zeros(3, np.uint8)},
        {"feature_names": ("a",)},
        {"image_shape": (2, 2)},
    ],
)
def test_dataset_parts_must_agree(more) -> None:
    with pytest.raises(DataError):
        table(None, **more)


def test_generated_data_knows_its_informative_columns() -> None:
    from sklearn.svm import SVC

    dataset = data.load("madelon_like", num_samples=600, num_features=60, seed=3)
    assert dataset.X.shape == (600, 60) and len(dataset.informative) == 20
    signal = list(dataset.informative)
    noise = [column for column in range(60) if column not in signal]
    scores = {}
    for name, columns in (("signal", signal), ("noise", noise)):
        X = dataset.X[:, columns]
        scores[name] = SVC().fit(X[:400], dataset.y[:400]).score(X[400:], dataset.y[400:])
    assert scores["signal"] > 0.75 > 0.6 > scores["noise"]
    # Redundant columns are linear in the informative ones: 20 columns of rank 5.
    centred = dataset.X[:, signal] - dataset.X[:, signal].mean(axis=0)
    assert np.linalg.matrix_rank(centred, tol=1e-2) == 5
    again = data.madelon_like(600, 60, seed=3)
    np.testing.assert_array_equal(dataset.X, again.X)


def test_no_single_generated_column_tells_the_class() -> None:
    dataset = data.madelon_like(seed=1)
    sign = np.where(dataset.y == 1, 1, -1)[:, None]
    above = dataset.X > np.median(dataset.X, axis=0)
    agreement = np.abs((np.where(above, 1, -1) * sign).mean(axis=0))
    assert agreement.max() < 0.5


@pytest.mark.parametrize(
    "options",
    [
        {"num_features": 10},
        {"num_informative": 2, "num_clusters_per_class": 16},
        {"num_informative": 0},
        {"num_samples": 5},
        {"sead": 1},
    ],
)
def test_generated_data_bad_options(options) -> None:
    with pytest.raises(ConfigError):
        data.load("madelon_like", **options)
