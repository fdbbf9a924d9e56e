"""Mistakes in calls: a one-sentence error before any training, never silent acceptance."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

import fsjax
from fsjax import estimators
from fsjax.data import Dataset, Split, as_dataset, make_split
from fsjax.errors import DataError, FsjaxError
from fsjax.tables.readers.target_columns import encode_target

X = np.random.default_rng(0).normal(size=(60, 4)).astype(np.float32)
Y = (X[:, 0] > 0).astype(int)
STG = fsjax.methods.stg(2, hidden=(3,))
CHOSEN = fsjax.methods.random_selection(2)


def labels(*some: Any, dtype: Any = object) -> np.ndarray:
    return np.array(list(some) * (60 // len(some)), dtype)


def test_labels_that_look_like_one() -> None:
    for given in (labels("x", " x", "y"), labels("x", " x", "y", dtype=str)):
        with pytest.warns(UserWarning, match="' x' and 'x', which differ only by spaces"):
            assert as_dataset(X, given).class_names == (" x", "x", "y")
    with pytest.warns(UserWarning, match="the target has the labels|holds the labels 'x' and 'x '"):
        encode_target(labels("x", "x "), "the target")
    with pytest.warns(UserWarning, match="differ only by spaces"):
        estimators.FisherScore().fit(X, labels("x", " x", dtype=str))


@pytest.mark.parametrize("mark", [257, -1, 0.5, 2])
def test_a_mark_of_a_split_does_not_wrap_around(mark: float, tmp_path: Any) -> None:
    path = tmp_path / "a.npz"
    np.savez(path, X=X, y=Y, split=np.where(np.arange(60) < 30, 0, mark))
    with pytest.raises(DataError, match="its array 'split' holds .*; give 0"):
        fsjax.data.load(str(path))


def changed(row: int, column: int, value: float) -> np.ndarray:
    x = X.copy()
    x[row, column] = value
    return x


#: X, y, and what is wrong with them.
TABLES = [
    ([[1, 2], [3]] * 30, Y, "X is not an array"),
    (np.ma.masked_array(X, X > 1), Y, "X has [0-9]+ masked values"),
    (pd.DataFrame(X, columns=list("abca")), Y, "X has several columns called 'a'"),
    (None, Y, r"X has shape \(\)"),
    (changed(3, 2, np.nan), Y, "1 missing .*in 1 of 4 columns"),
    (changed(5, 3, np.inf), Y, "1 infinite .*in 1 of 4 columns"),
    (np.ones_like(X), Y, "every column .* is constant"),
    (X, np.zeros(60, int), "class"),
    (X, np.where(np.arange(60) == 0, 9, Y), "1 row"),
    (X, Y[:3], "60 rows but y has 3"),
    (X, labels(1, "a"), "y holds labels of several types"),
    (X, labels("a", None), "y has 30 missing values"),
    (X, labels("a", pd.NA), "y has 30 missing values"),
    (X, labels("a", "", dtype=str), "y has 30 missing values"),
    (X, labels("2020-01-01", "NaT", dtype="M8[D]"), "y has 30 missing values"),
    (X, labels(1.0, 2.0, np.inf, dtype=float), "y has 20 infinite values"),
    (X, labels(1.0, 2.0, np.nan, dtype=float), "y has 20 missing values"),
    (X, np.ma.masked_array(Y, X[:, 1] > 1), "y has [0-9]+ masked values"),
    (X, Y + 0j, "y has the type complex128"),
    (X, {"a": 1}, "give one target for each row"),
    (X, [[1], [1, 2]] * 30, "y is not an array"),
    (X, scipy.sparse.csr_matrix(X), "y is a sparse matrix"),
]


@pytest.mark.parametrize(("x", "y", "message"), TABLES)
def test_data_that_makes_no_table(x: Any, y: Any, message: str) -> None:
    with pytest.raises(FsjaxError, match=message) as caught:
        fsjax.plan(STG, (x, y), num_epochs=1)
    assert "\n" not in str(caught.value)


#: Values that each option refuses.
OPTIONS: dict[str, tuple[Any, ...]] = {
    "seeds": (3, "12", (), [1.5], (-1,), (1, 1), [2**40], None, ("a",), np.zeros((2, 2))),
    "task": (3, "classify", ["a"]),
    "num_features": ("3", 0, -1, 99, 3.0, [None], [[3]], 4),
    "num_epochs": (0, -1, "x", None, float("nan"), 1.5, 10**30),
    "batch_size": (0, "x", float("nan"), 1.5, 10**30),
    "min_steps_per_epoch": (0, "x", None, 10**30),
    "shuffle": ("no", 1, None),
    "drop_last": ("x", 1),
    "split": (3, "papr", None, (1, 2), Split(["a"], ["b"], ["c"]), Split([0.5], [1.5], [2.5]),
              Split([0], None, []), Split(Y == 0, [], []), Split([[1], [2, 3]], [], []),
              Split([2**70], [], []), Split([], [1], [2]), Split([0], [0], [1]),
              Split(list(range(57)), [58], [60]), Split([-1], [], [])),
    "split_per_seed": ("x", 1),
    "scaling": (3, "minmaxx", None),
    "valid_fraction": (1, -0.1, "x", float("nan"), [0.1]),
    "noise_std": (-1, "x", float("nan"), float("inf"), None),
    "sample_weight": ("balanced", 3, Y[:5], -X[:, 0], np.full(60, np.nan), np.ones(60) + 1j,
                      np.zeros(60), [[1], [1, 2]], np.ma.masked_array(np.ones(60), Y)),
    "groups": ("abcd", [0], [0, 2, 2, 2], [None] * 4, [[1], [2, 3]], [0.5] * 4, [-1] * 4),
    "columns": ("ab", [1, 2], [[0, 99]], [[-1, 2]], [[1, 1]], [[0.5]], [], 3),
    "zero_others": ("no", None),
    "best_by": (3, "f1"),
    "record_test": ("x", None),
    "seed_axis": (3, "vmapp", None),
    "progress": ("x", None),
    "checkpoint_dir": (3, ["a"]),
    "checkpoint_every": (0, "x", None),
    "early_stopping": (0, "x", 1.5),
    "max_time": (0, -1, "x", float("nan")),
    "callback": (3, "x"),
    "keep_partial": ("x", None),
    "start": (3, "x"),
}  # fmt: skip


@pytest.mark.parametrize("name", OPTIONS)
def test_options_are_refused_by_name(name: str) -> None:
    for value in OPTIONS[name]:
        with pytest.raises(FsjaxError) as caught:
            fsjax.plan(STG, (X, Y), **{"num_epochs": 1, name: value})
        assert name.removesuffix("s") in str(caught.value)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: fsjax.fit("ip_cae", (X, Y)), "is not a method; give fsjax.fit a method"),
        (lambda: fsjax.fit(fsjax.methods.ip_cae, (X, Y)), "is not a method"),
        (lambda: fsjax.fit(STG, X), r"give a pair \(X, y\)"),
        (lambda: fsjax.fit(STG, (X, Y, Y)), r"give a pair \(X, y\)"),
        (lambda: fsjax.fit(STG, "digits"), r"give fsjax.data.load\('digits'\)"),
        (lambda: fsjax.fit(fsjax.methods.cae(20), (X, Y)), "num_features=20 but X has 4"),
        (lambda: fsjax.plan(STG, (X, Y), num_epoch=1), "did you mean 'num_epochs'"),
        (lambda: fsjax.plan(CHOSEN, (X, X[:, 0] / 0), task="regression"), "y has 60 infinite"),
        (lambda: fsjax.plan(CHOSEN, (X, Y + 1j), task="regression"), "complex"),
        (lambda: Dataset("a", X.tolist(), None), "X of a is of the type list"),
        (lambda: Dataset("a", X, Y.tolist()), "y of a is of the type list"),
        (lambda: Dataset("a", X, Y.astype(str)), "y of a has the type <U21; give numbers"),
        (lambda: Dataset("a", X, np.ma.masked_array(Y, Y)), "y of a has .* masked values"),
        (lambda: Dataset("a", X, Y, tuple("abca")), "several columns are called 'a'"),
        (lambda: Dataset("a", X, Y, class_names=("one",)), "1 class names for 2 classes"),
        (lambda: Dataset("a", X, Y, official_split=Y + 2), "official_split holds .2 3.; give 0"),
        (lambda: make_split(as_dataset(X, Y), seed="a"), "seed='a'; choose a whole number"),
        (lambda: make_split(as_dataset(X, Y), fractions=0.5), "three numbers that sum to 1"),
        (lambda: make_split(as_dataset(X, Y), fractions=(np.nan, 0, 1)), "three numbers that sum"),
    ],
)
def test_what_is_no_method_no_data_and_no_argument(call: Callable[[], Any], message: str) -> None:
    with np.errstate(all="ignore"), pytest.raises((FsjaxError, TypeError), match=message):
        call()
