"""scikit-learn's own checks for every class.

A program takes a second to compile, and the checks have some 20 shapes of data: the classes of a
task share a method here. ``-m slow`` runs all of them with their own.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from marks import slow_ids, some_long
from sklearn.utils.estimator_checks import check_estimator

import fsjax
from fsjax.engine import programs
from fsjax.estimators import ESTIMATORS, Selector
from fsjax.methods import METHODS

#: Enough for the few rows of the checks.
FAST: dict[str, Any] = {"n_features_to_select": 0.9, "num_epochs": 40, "batch_size": 32}

#: Networks and rates for so few steps, by method; the small ones of the registration elsewhere.
SMALL: dict[str, dict[str, Any]] = {
    **{
        name: {"hidden": (16,), "learning_rate": 0.02}
        for name in ("cae", "ip_cae", "gjsd", "random_selection", "stg")
    },
    **{
        name: {}
        for name in ("fisher_score", "laplacian_score", "mcfs", "l1_l21", "rfs", "cife", "icap")
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
    f"check_sample_weight_equivalence_on_{form}_data": (
        "training draws initial values, batches and validation rows by the number of rows, so "
        "that a repeated row is not the same as one of twice the weight"
    )
    for form in ("dense", "sparse")
}

#: What classes run with in place of their own method, by task and whether there are gates: a real
#: sparse network, a real concrete selector, and real gates.
SHARED: dict[tuple[str, bool], Callable[[int | None], fsjax.Method]] = {
    ("classification", False): lambda k: fsjax.methods.dense(hidden=(4,), learning_rate=0.05),
    ("classification", True): lambda k: fsjax.methods.stg(
        k, hidden=(), search=False, learning_rate=0.05
    ),
    ("reconstruction", False): lambda k: fsjax.methods.cae(k or 1, hidden=(4,)),
    ("reconstruction", True): lambda k: fsjax.methods.dufs(),
}

#: Filters have no program worth sharing.
OWN = ("fisher_score", "laplacian_score", "mcfs", "l1_l21", "rfs", "cife", "icap")

#: Tried by ``make test-long``: others are like them in what is checked here, or need many programs.
SLOW = (*OWN[2:], "aefs", "binmask", "cae", "dufs", "quick_selection", "stg", "wast")


def kind(name: str) -> tuple[str, bool]:
    """What the programs of a class depend on: the task, and whether there are gates."""
    about = METHODS[name]().about
    return about.tasks[0], about.gates


def estimator(name: str) -> Selector:
    small = {**SMALL.get(name, METHODS[name].registration.small)}
    small.pop("num_features", None)  # in FAST, by the estimator's name
    return ESTIMATORS[name](**{**FAST, **small})


def passes(checked: Selector) -> None:
    results = check_estimator(checked, expected_failed_checks=EXPECTED, on_fail=None, on_skip=None)
    failed = [
        f"{check['check_name']}: {check['exception']}"
        for check in results
        if check["status"] == "failed"
    ]
    assert not failed, "\n".join(failed)
    assert sum(check["status"] == "passed" for check in results) > 40


@pytest.fixture(scope="module", autouse=True)
def _programs_of_all_shapes() -> Iterator[None]:
    """Room for the programs of a kind, of which every class of the kind needs all."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(programs, "CAPACITY", 128)
        yield
    programs.free()


def test_every_method_has_an_estimator() -> None:
    assert set(ESTIMATORS) == set(METHODS)


@pytest.mark.slow
@slow_ids("ctre_seq")
@pytest.mark.parametrize(
    "name", some_long(sorted(sorted(set(ESTIMATORS) - set(OWN)), key=kind), SLOW)
)
def test_checks_of_the_class(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def shared(self: Selector, num_features: int | None) -> fsjax.Method:
        Selector._method(self, num_features)  # refuses what the method refuses
        return SHARED[kind(name)](num_features)

    monkeypatch.setattr(ESTIMATORS[name], "_method", shared)
    # The same for all, as other steps are another program.
    registration = dataclasses.replace(ESTIMATORS[name].registration, training={})
    monkeypatch.setattr(ESTIMATORS[name], "registration", registration)
    passes(ESTIMATORS[name](**FAST, standardize=True))


@pytest.mark.slow
@pytest.mark.parametrize("name", some_long(OWN, SLOW))
def test_checks_of_the_class_and_its_method(name: str) -> None:
    passes(estimator(name))


@pytest.mark.long
@pytest.mark.parametrize("name", sorted(set(ESTIMATORS) - set(OWN)))
def test_checks_of_every_class_and_its_method(name: str) -> None:
    passes(estimator(name))


@pytest.mark.long
@pytest.mark.parametrize("name", ["ip_cae", "set", "stg"])
def test_checks_of_regressors(name: str) -> None:
    passes(estimator(name).set_params(task="regression"))
