"""Estimators in files whose parts contradict each other: refused by name, before any prediction.

Covers ``fsjax.estimators.files``.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fsjax import estimators
from fsjax.errors import ConfigError, DataError
from fsjax.estimators.packing import pack
from fsjax.storage import npz


@pytest.fixture(scope="module")
def fitted() -> dict[str, estimators.Selector]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 5))
    options = {"n_features_to_select": 2, "num_epochs": 1, "hidden": (3,)}
    classes = np.array(["no", "some", "yes"])[(X[:, 0] > 0).astype(int) + (X[:, 1] > 0)]
    return {
        "classes": estimators.STG(**options).fit(X, classes),
        "numbers": estimators.STG(task="regression", **options).fit(X, X[:, 0]),
    }


def written(estimator: Any, change: Callable[[dict, dict], Any], path: Path) -> Path:
    header, arrays = pack(estimator)
    change(header, arrays)
    own = ("format", "version", "fsjax")
    npz.write(path, {k: v for k, v in header.items() if k not in own}, arrays)
    return path


def relabel(*labels: object) -> Callable[[dict, dict], None]:
    return lambda h, a: a.update({"estimator/classes_": np.array(labels)})


def parameters(**changes: object) -> Callable[[dict, dict], None]:
    return lambda h, a: h["parameters"].update(changes)


@pytest.mark.parametrize(
    ("which", "change", "reason"),
    [
        ("classes", relabel("no", "yes"), "'classes_' has the shape \\(2,\\), .* has 3 classes"),
        ("classes", relabel("no", "no", "yes"), "'classes_' is not in ascending order"),
        ("classes", relabel(0.0, 1.0, np.nan), "'classes_' holds NaN"),
        ("classes", lambda h, a: a.pop("estimator/classes_"), "'classes_' does not belong"),
        ("numbers", relabel("a"), "'classes_' does not belong to the task regression"),
        (
            "classes",
            lambda h, a: a.update({"estimator/feature_names_in_": np.array(list("aacde"))}),
            "'feature_names_in_' does not hold 5 different names",
        ),
        ("classes", lambda h, a: h.update(target=[0, 1]), "'target' does not belong"),
        ("numbers", lambda h, a: h.update(target=[]), "'target' does not belong"),
        ("numbers", lambda h, a: h.update(target=[0, -1]), "deviation that is not above 0"),
        ("numbers", lambda h, a: h.update(target=[0, float("nan")]), "'target' is not finite"),
        ("numbers", lambda h, a: h.update(target=[[1, 2], 1]), "'target' has the shapes"),
        ("classes", lambda h, a: h.update(own_number="x"), "'own_number' is 'x'"),
        (
            "classes",
            lambda h, a: h.update({"class": "IPCAE"}),
            "not an estimator of this|is for 'ip_cae'",
        ),
        ("classes", lambda h, a: h.update({"class": ["STG"]}), "estimator \\['STG'\\]"),
        ("classes", lambda h, a: h["parameters"].update(task="regression"), "task='regression'"),
        ("classes", parameters(learning_rate="os:system"), "learning_rate='os:system'; choose"),
        ("classes", parameters(hidden=[7]), r"hidden=\(7,\), but .* trained with \(3,\)"),
        ("classes", parameters(num_epochs=[1]), r"num_epochs=\(1,\); choose a whole number"),
        ("classes", parameters(max_time=-1), "max_time=-1; choose a value above 0"),
        ("classes", parameters(random_state="x"), "random_state='x'; choose a seed"),
        ("classes", parameters(standardize="x"), "standardize='x'; choose True"),
        ("classes", parameters(class_weight={"pairs": [["none", 1]]}), "class 'none'; y has"),
        ("numbers", parameters(class_weight="balanced"), "class_weight='balanced' needs task="),
        ("classes", parameters(n_features_to_select=9), "n_features_to_select=9 but"),
        ("classes", parameters(callback="os:system"), "has the parameter 'callback'"),
        ("classes", lambda h, a: h["parameters"].update(groups=[0, 0, 1, 1, 2]), "'groups' is not"),
        (
            "classes",
            lambda h, a: h["parameters"].update(hidden={"pairs": [[1]]}),
            "not an estimator of",
        ),
        ("classes", lambda h, a: h.update(result=3), "not an estimator of this version"),
        ("classes", lambda h, a: h["result"].update(seeds=[1, 1]), "expected|repeats a seed"),
    ],
)
def test_what_no_estimator_can_be(
    which: str, change: Callable, reason: str, fitted: dict, tmp_path: Path
) -> None:
    path = written(fitted[which], change, tmp_path / "a.npz")
    with pytest.raises(DataError, match=f"a.npz.*({reason})"):
        estimators.load(path)


def test_an_estimator_as_it_is(fitted: dict, tmp_path: Path) -> None:
    X = np.random.default_rng(1).normal(size=(6, 5))
    for one in fitted.values():
        again = estimators.load(written(one, lambda h, a: None, tmp_path / "a.npz"))
        np.testing.assert_array_equal(again.predict(X), one.predict(X))


def test_other_arrays_are_not_unfolded(fitted: dict, tmp_path: Path) -> None:
    def add(header: dict, arrays: dict) -> None:
        arrays["unknown"] = np.zeros(10**7)

    path = written(fitted["classes"], add, tmp_path / "a.npz")
    assert path.stat().st_size < 200_000
    estimators.load(path, max_bytes=10**6)
    with pytest.raises(DataError, match=r"would take .*\(max_bytes\) are allowed"):
        estimators.load(path, max_bytes=50_000)


def test_a_network_of_other_arguments_is_not_saved(fitted: dict, tmp_path: Path) -> None:
    other = copy(fitted["classes"]).set_params(hidden=(9,), verbose=True)
    with pytest.raises(ConfigError, match=r"hidden=\(9,\), but the network .* \(3,\)"):
        other.save(tmp_path / "a.npz")
    other.set_params(hidden=(3,)).save(tmp_path / "a.npz")
