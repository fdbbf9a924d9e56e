"""scikit-learn's own checks for every class.

A program takes seconds to compile, and the checks have 17 shapes of data: the classes share two
methods here, and one of them runs with its own. ``-m slow`` runs all of them so.
"""

from __future__ import annotations

import dataclasses
import gc
from typing import Any

import jax
import pytest
from sklearn.utils.estimator_checks import check_estimator

import fsjax
from fsjax.estimators import ESTIMATORS, Selector
from fsjax.methods import METHODS

#: Enough for the few rows of the checks.
FAST: dict[str, Any] = {"n_features_to_select": 0.9, "num_epochs": 40, "batch_size": 32}

#: Networks and rates for so few steps, by method.
SMALL: dict[str, dict[str, Any]] = {
    **{
        name: {"hidden": (16,), "learning_rate": 0.02}
        for name in ("cae", "ip_cae", "gjsd", "fisher_score", "random_selection", "stg")
    },
    **{
        name: {"hidden": (16,), "epsilon": None, "density": 0.9, "learning_rate": 0.05}
        for name in ("set", "rigl", "snip", "ctre_sim", "ctre_seq", "static_sparse")
    },
    "dense": {"hidden": (16,), "learning_rate": 0.05},
    "wast": {"hidden": (8,)},
    "quick_selection": {"hidden": (8,)},
    "lassonet": {
        "hidden": (16,),
        "dense_epochs": 300,
        "num_epochs": 1000,
        "batch_size": None,
        "path_epochs": 5,
        "path_multiplier": 1.5,
        "learning_rate": 0.01,
    },
    "binmask": {"hidden": (16,)},
    "probmask": {"hidden": (16,), "density": 0.9},
    "neural_network": {"hidden": (16,)},
}

#: Checks that no method passes, and why.
EXPECTED = {
    "check_sample_weight_equivalence_on_dense_data": (
        "training draws initial values, batches and validation rows by the number of rows, so "
        "that a repeated row is not the same as one of twice the weight"
    ),
}

#: Kinds of classes whose shared programs this process holds.
COMPILED: set[tuple[str, bool]] = set()

#: A concrete selector with its own method; what the others share, below, is a real sparse network
#: and real gates.
REPRESENTATIVES = ("ip_cae", "fisher_score")


def kind(name: str) -> tuple[str, bool]:
    """What the programs of a class depend on: the task, and whether there are gates."""
    about = METHODS[name]().about
    return about.tasks[0], about.gates


def estimator(name: str) -> Selector:
    return ESTIMATORS[name](**{**FAST, **SMALL[name]})


def passes(checked: Selector) -> None:
    results = check_estimator(checked, expected_failed_checks=EXPECTED, on_fail=None, on_skip=None)
    failed = [
        f"{one['check_name']}: {one['exception']}" for one in results if one["status"] == "failed"
    ]
    assert not failed, "\n".join(failed)
    assert sum(one["status"] == "passed" for one in results) > 40


def _free_programs() -> None:
    """A process cannot hold as many programs as all kinds of these tests together need."""
    COMPILED.clear()
    jax.clear_caches()
    gc.collect()


def test_every_method_has_an_estimator() -> None:
    assert set(ESTIMATORS) == set(METHODS)


@pytest.mark.parametrize("name", sorted(set(ESTIMATORS) - set(REPRESENTATIVES), key=kind))
def test_checks_of_the_class(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if kind(name) not in COMPILED:
        _free_programs()
        COMPILED.add(kind(name))

    def shared(self: Selector, num_features: int | None) -> fsjax.Method:
        Selector._method(self, num_features)  # refuses what the method refuses
        if METHODS[name]().about.gates:
            return fsjax.methods.stg(num_features, hidden=(), search=False, learning_rate=0.05)
        return fsjax.methods.dense(hidden=(4,), learning_rate=0.05)

    monkeypatch.setattr(ESTIMATORS[name], "_method", shared)
    # The same for all, as other steps are another program.
    one = dataclasses.replace(ESTIMATORS[name].registration, training={})
    monkeypatch.setattr(ESTIMATORS[name], "registration", one)
    passes(ESTIMATORS[name](**FAST))


@pytest.mark.parametrize("name", REPRESENTATIVES)
def test_checks_of_the_class_and_its_method(name: str) -> None:
    _free_programs()
    passes(estimator(name))


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(set(ESTIMATORS) - set(REPRESENTATIVES)))
def test_checks_of_every_class_and_its_method(name: str) -> None:
    _free_programs()
    passes(estimator(name))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ip_cae", "set", "stg"])
def test_checks_of_regressors(name: str) -> None:
    _free_programs()
    passes(estimator(name).set_params(task="regression"))
