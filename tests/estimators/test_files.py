"""Estimators in files: what comes back, and what is refused.

Covers ``fsjax.estimators.files``.
"""

from __future__ import annotations

import json
from copy import copy
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from bad_calls import bad_calls, refuses

from fsjax import estimators
from fsjax.errors import ConfigError, DataError
from fsjax.estimators.packing import from_json, pack, to_json
from fsjax.storage import npz


@pytest.fixture(scope="module")
def fitted() -> dict[str, estimators.Selector]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 5))
    options = {"n_features_to_select": 2, "num_epochs": 1, "hidden": (3,), "search": False}
    classes = np.array(["no", "some", "yes"])[(X[:, 0] > 0).astype(int) + (X[:, 1] > 0)]
    return {
        "classes": estimators.STG(**options).fit(X, classes),
        "numbers": estimators.STG(task="regression", **options).fit(X, X[:, 0]),
    }


@bad_calls(
    (lambda h: h.update(kind="result"), "'result' and not an estimator; use fsjax.load"),
    (lambda h: h.update({"class": "Mine", "origin": "mine:f"}), "'Mine' ", " import 'mine'"),
    (lambda h: h["parameters"].update(colour=1), "not an estimator of this version ", "colour"),
    (lambda h: h["result"]["spec"].update(colour=1), "cannot be built again: ", "colour"),
)
def test_what_this_package_does_not_have_is_refused(bad: tuple, fitted: dict, tmp_path: Path):
    header, arrays = pack(fitted["classes"])
    bad[0](header)
    npz.write(tmp_path / "a.npz", header, arrays)
    refuses(lambda: estimators.load(tmp_path / "a.npz"), "a.npz", *bad[1:])


@pytest.mark.parametrize("labels", [pd.Series([2, 1, 2]), pd.Series([*"bab"], dtype="category")])
def test_groups_may_be_a_series(labels: pd.Series) -> None:
    assert from_json(json.loads(json.dumps(to_json("groups", labels)))) == tuple(labels)


def test_an_estimator_as_it_is(fitted: dict, tmp_path: Path) -> None:
    X = np.random.default_rng(1).normal(size=(6, 5))
    for one in fitted.values():
        one.save(tmp_path / "a.npz")
        again = estimators.load(tmp_path / "a.npz")
        np.testing.assert_array_equal(again.predict(X), one.predict(X))


def test_arrays_that_are_too_large_are_not_unpacked(fitted: dict, tmp_path: Path) -> None:
    fitted["classes"].save(tmp_path / "a.npz")
    with pytest.raises(DataError, match=r"would take .*\(max_bytes\) are allowed"):
        estimators.load(tmp_path / "a.npz", max_bytes=1000)


def test_a_network_of_other_arguments_is_not_saved(fitted: dict, tmp_path: Path) -> None:
    other = copy(fitted["classes"]).set_params(hidden=(9,), verbose=True)
    with pytest.raises(ConfigError, match=r"hidden=\(9,\), but the network .* \(3,\)"):
        other.save(tmp_path / "a.npz")
    other.set_params(hidden=(3,)).save(tmp_path / "a.npz")
