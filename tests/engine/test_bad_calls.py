"""Mistakes in calls: a one-sentence error before any training, never silent acceptance."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

import fsjax
from fsjax import estimators
from fsjax.data import Dataset, Split, as_dataset, make_split
from fsjax.errors import ConfigError, DataError, FsjaxError
from fsjax.readers.target_columns import encode_target

X = np.random.default_rng(0).normal(size=(60, 4)).astype(np.float32)
Y = (X[:, 0] > 0).astype(int)
STG = fsjax.methods.stg(2, hidden=(3,))


def labels(*some: Any, dtype: Any = object) -> np.ndarray:
    return np.array(list(some) * (60 // len(some)), dtype)


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        ([[1, 2], [3]] * 30, Y, "X is not an array"),
        (np.ma.masked_array(X, X > 1), Y, "X has [0-9]+ masked values; fill them"),
        (pd.DataFrame(X, columns=list("abca")), Y, "X has several columns called 'a'"),
        (None, Y, r"X has shape \(\)"),
        (X, labels(1, "a"), r"y holds labels of several types \(int, str\)"),
        (X, labels("a", None), "y has 30 missing values"),
        (X, labels("a", "b", np.nan), "y has 20 missing values"),
        (X, labels("a", pd.NA), "y has 30 missing values"),
        (X, labels("a", "", dtype=str), "y has 30 missing values"),
        (X, labels("2020-01-01", "NaT", dtype="M8[D]"), "y has 30 missing values"),
        (X, labels(1.0, 2.0, np.inf, dtype=float), "y has 20 infinite values"),
        (X, labels(1.0, 2.0, np.nan, dtype=float), "y has 20 missing values"),
        (X, np.ma.masked_array(Y, X[:, 1] > 1), "y has [0-9]+ masked values"),
        (X, Y + 0j, "y has the type complex128"),
        (X, {"a": 1}, "give one target for each row"),
        (X, 3, "give one target for each row"),
        (X, [[1], [1, 2]] * 30, "y is not an array"),
        (X, np.zeros(60, [("a", float)]), "y has the type"),
    ],
)
def test_data_that_makes_no_table(x: Any, y: Any, message: str) -> None:
    with pytest.raises(FsjaxError, match=message) as caught:
        fsjax.plan(STG, (x, y), num_epochs=1)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("task", ["regression", "reconstruction"])
def test_numbers_that_are_none(task: str) -> None:
    method = fsjax.methods.random_selection(2)
    for y, message in ((Y + 0j, "complex"), (np.full(60, np.nan), "missing"), ("abc", "each row")):
        with pytest.raises(DataError, match=message):
            fsjax.plan(method, (X, y), task=task)
    with pytest.raises(DataError, match="y has 1 infinite value; leave this row out"):
        fsjax.plan(method, (X, np.where(np.arange(60) == 3, np.inf, X[:, 0])), task=task)
    made = Dataset("made", X, np.where(np.arange(60) == 3, np.nan, X[:, 0]))
    if task == "regression":
        with pytest.raises(DataError, match="the target of made has 1 missing value"):
            fsjax.plan(method, made, task=task)


def test_labels_that_look_like_one() -> None:
    for given in (labels("x", " x", "y"), labels("x", " x", "y", dtype=str)):
        with pytest.warns(UserWarning, match="' x' and 'x', which differ only by spaces"):
            assert as_dataset(X, given).class_names == (" x", "x", "y")
    with pytest.warns(UserWarning, match="the target has the labels|holds the labels 'x' and 'x '"):
        encode_target(labels("x", "x "), "the target")
    with pytest.warns(UserWarning, match="differ only by spaces"):
        estimators.FisherScore().fit(X, labels("x", " x", dtype=str))


def test_targets_of_files_that_are_none() -> None:
    with pytest.raises(DataError, match="no usable value in 30 of 60 rows"):
        encode_target(labels("2020-01-01", "NaT", dtype="M8[D]"), "the target")
    with pytest.raises(DataError, match="type complex128"):
        encode_target(Y + 0j, "the target")


@pytest.mark.parametrize(
    ("split", "message"),
    [
        (Split(["a"], ["b"], ["c"]), "the part 'train' of a split has the type <U1"),
        (Split([0.5], [1.5], [2.5]), "the part 'train' of a split has the type"),
        (Split([0], None, []), "the part 'valid' of a split has the type"),
        (Split(Y == 0, [], []), "the part 'train'"),
        (Split(np.arange(60).reshape(2, 30), [], []), r"the shape \(2, 30\)"),
        (Split([[1], [2, 3]], [], []), "'train' of a split is not an array"),
        (Split([2**70], [], []), "the part 'train' of a split has the type"),
        (Split([], [1], [2]), "a split needs training rows"),
        (Split(list(range(57)), [58], [60]), "a split has rows from 0 to 60"),
    ],
)
def test_splits_that_are_none(split: Split, message: str) -> None:
    with pytest.raises((ConfigError, DataError), match=message):
        fsjax.plan(STG, (X, Y), split=split)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sample_weight": np.ones(60) + 1j}, "sample_weight=array.*; give a number above 0"),
        ({"sample_weight": [[1], [1, 2]]}, "sample_weight is not an array"),
        ({"sample_weight": np.ma.masked_array(np.ones(60), Y)}, "sample_weight has .* masked"),
        ({"groups": [[1], [2, 3]]}, "groups has shape"),
        ({"columns": np.array([[0, 99]])}, "columns has numbers from 0 to 99"),
        ({"columns": np.array([[-1, 2]])}, "columns has numbers from -1"),
        ({"columns": np.array([[1, 1]])}, "columns has a column twice"),
        ({"columns": [1, 2]}, r"columns has the shape \(2,\)"),
        ({"columns": "ab"}, "columns has the shape"),
        ({"columns": np.array([[0.5, 1]])}, "the type float64"),
        ({"zero_others": "no"}, "zero_others='no'; choose True or False"),
        ({"num_epochs": 10**30}, "num_epochs=1000.*, at most 2147483647"),
        ({"batch_size": 10**30}, "batch_size=1000.*, at most 2147483647"),
        ({"min_steps_per_epoch": 10**12}, "min_steps_per_epoch=1000.*, at most"),
    ],
)
def test_options_that_are_none(options: dict[str, Any], message: str) -> None:
    with pytest.raises(FsjaxError, match=message) as caught:
        fsjax.plan(STG, (X, Y), **options)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Dataset("a", X.tolist(), None), "X of a is of the type list"),
        (lambda: Dataset("a", None, Y), "X of a is of the type NoneType"),
        (lambda: Dataset("a", X, Y.tolist()), "y of a is of the type list"),
        (lambda: Dataset("a", X, Y.astype(str)), "y of a has the type <U21; give numbers"),
        (lambda: Dataset("a", X, np.ma.masked_array(Y, Y)), "y of a has .* masked values"),
        (lambda: Dataset("a", X, Y, tuple("abca")), "several columns are called 'a'"),
        (lambda: Dataset("a", X, Y, class_names=("one",)), "1 class names for 2 classes"),
        (lambda: Dataset("a", X, Y, official_split=Y + 2), "official_split holds .2 3.; give 0"),
        (lambda: make_split(as_dataset(X, Y), seed="a"), "seed='a'; choose a whole number"),
        (
            lambda: make_split(as_dataset(X, Y), seed=2**32),
            "seed=4294967296; .* at most 4294967295",
        ),
        (lambda: make_split(as_dataset(X, Y), fractions=("a", 0, 1)), "three numbers that sum"),
        (lambda: make_split(as_dataset(X, Y), fractions=0.5), "three numbers that sum to 1"),
        (lambda: make_split(as_dataset(X, Y), fractions=(np.nan, 0, 1)), "three numbers that sum"),
    ],
)
def test_data_sets_made_by_hand(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(FsjaxError, match=message):
        make()


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        (np.ma.masked_array(X, X > 1), Y, "X has [0-9]+ masked values"),
        (X, np.ma.masked_array(Y, X[:, 1] > 1), "y has [0-9]+ masked values"),
        (X, Y + 0j, "Complex data not supported"),
        (X, labels("2020-01-01", "NaT", dtype="M8[D]"), "y has missing labels"),
        (pd.DataFrame(X, columns=list("abca")), Y, "several columns called 'a'"),
    ],
)
def test_what_estimators_refuse(x: Any, y: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        estimators.FisherScore().fit(x, y)


def test_complex_targets_are_refused_in_the_words_of_scikit_learn() -> None:
    method = fsjax.methods.stg(2, search=False)
    with pytest.raises(ValueError, match="Complex data not supported"):
        estimators.STG(task="regression", n_features_to_select=2).fit(X, Y + 1j)
    with pytest.raises(ValueError, match="complex128; give real numbers"):
        fsjax.fit(method, (X, Y + 1j), task="regression")


@pytest.mark.parametrize("mark", [257, -1, 0.5, 2])
def test_a_mark_of_a_split_does_not_wrap_around(mark: float, tmp_path: Any) -> None:
    path = tmp_path / "a.npz"
    np.savez(path, X=X, y=Y, split=np.where(np.arange(60) < 30, 0, mark))
    with pytest.raises(DataError, match="its array 'split' holds .*; give 0"):
        fsjax.data.load(str(path))


@pytest.mark.parametrize("function", [fsjax.plan, fsjax.fit, fsjax.fit_subsamples])
def test_misspelt_arguments(function: Callable[..., Any]) -> None:
    with pytest.raises(TypeError, match="'num_epoch': did you mean 'num_epochs'?"):
        function(STG, (X, Y), num_epoch=1)
