"""Runs that end before a phase that the selection needs are warned of before training.

Covers ``fsjax.engine.phases``.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from marks import slow_ids

import fsjax
from fsjax.auto.contest import network_rankings
from fsjax.auto.contest.network_rankings import rank_folds
from fsjax.auto.contest.rankers.parts import Part
from fsjax.engine.sweep import plan_sweep
from fsjax.errors import UnreachedPhaseWarning
from fsjax.methods import (
    METHODS,
    binmask,
    entryprune,
    get_method,
    lassonet,
    neurofs,
    probmask,
    sparse,
    wast,
)  # fmt: skip

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 12)).astype(np.float32)
Y = (X[:, :3].sum(axis=1) > 0).astype(int)

#: Methods that differ in kind; the others are slow.
SOME = ("wast", "ip_cae", "binmask", "set", "fisher_score", "lassonet")


def each_method(names=METHODS) -> list:
    return [
        pytest.param(name, marks=() if name in SOME else pytest.mark.long) for name in sorted(names)
    ]


def planned(name: str, **options) -> fsjax.Plan:
    build = get_method(name)
    parameters = build.registration.parameters
    fields = {"num_features": 3} if "num_features" in parameters else {}
    return fsjax.plan(build(**fields), (X, Y), seeds=(0,), num_features=3, **options)


@slow_ids("wast-2")
@slow_ids("ip_cae-10", "ip_cae-2", "set-10", "set-2", "wast-1", "wast-10")
@pytest.mark.parametrize("num_epochs", [1, 2, 10])
@pytest.mark.parametrize("name", each_method())
def test_short_runs_say_so_or_have_scores_of_the_data(name: str, num_epochs: int) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UnreachedPhaseWarning)
        plan = planned(name, num_epochs=num_epochs)
    if any(issubclass(warning.category, UnreachedPhaseWarning) for warning in caught):
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnreachedPhaseWarning)
        (result,) = plan.fit()
        scores = result.scores[0]
    finite = scores[np.isfinite(scores)]
    assert len(finite) >= 3 and len(np.unique(finite)) > 1


@pytest.mark.parametrize("name", sorted(METHODS))
def test_the_usual_number_of_epochs_reaches_all(name: str) -> None:
    usual = get_method(name).registration
    options = {"num_epochs": usual.num_epochs, "batch_size": usual.batch_size, **usual.training}
    with warnings.catch_warnings():
        warnings.simplefilter("error", UnreachedPhaseWarning)
        planned(name, **options)


@pytest.mark.parametrize(
    ("method", "num_epochs", "message"),
    [
        (lassonet(3), 5, "num_epochs=5 ends before the path begins"),
        (lassonet(3, dense_epochs=30, dense_patience=20), 10, "give num_epochs=31 or more"),
        (lassonet(3, dense_epochs=30, dense_patience=5), 10, "may end before the path begins"),
        (entryprune(3, every=100), 2, "first exchange of columns"),
        (sparse.set(), 1, "num_epochs=1 ends before connections"),
        (wast(update="epoch"), 1, "num_epochs=1 ends before connections"),
        (neurofs(3), 3, "give num_epochs=4 or more"),
        # 20 steps of 0.001 from 0.02 to 0, two in each epoch, after a tenth of the epochs.
        (binmask(3), 10, r"masks can close.*give num_epochs=11 or more"),
    ],
)
def test_runs_that_end_too_early_are_warned_of(method, num_epochs: int, message: str) -> None:
    size = {"batch_size": 120} if method.name == "entryprune" else {}
    with pytest.warns(UnreachedPhaseWarning, match=message):
        fsjax.plan(method, (X, Y), num_epochs=num_epochs, **size)


@pytest.mark.parametrize(
    ("method", "num_epochs"),
    [
        (sparse.set(drop_fraction=0.0), 1),
        (wast(update="epoch", drop_fraction=0.0), 1),
        (wast(update="step"), 1),
        (binmask(3), 11),
        (binmask(3, initial=0.0), 1),
    ],
)
def test_what_is_not_to_change_is_not_waited_for(method, num_epochs: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", UnreachedPhaseWarning)
        fsjax.plan(method, (X, Y), num_epochs=num_epochs)


@pytest.mark.slow
def test_an_early_epoch_before_the_budget_is_reached_is_warned_of() -> None:
    method = probmask(hidden=(6,), density=0.2, sparsify_start=0.5, sparsify_end=0.9)
    stop = {"callback": lambda progress: True}
    with pytest.warns(UnreachedPhaseWarning, match="before the budget has fallen"):
        fsjax.fit(method, (X, Y), num_features=3, num_epochs=4, **stop)


def test_every_setting_of_a_sweep_is_checked() -> None:
    method = sparse.set(hidden=(6,), drop_fraction=0.0)
    with pytest.warns(UnreachedPhaseWarning, match="num_epochs=1 ends before connections"):
        plan_sweep(method, (X, Y), {"drop_fraction": [0.0, 0.3]}, num_features=3, num_epochs=1)


@pytest.mark.slow
def test_a_selection_does_not_warn_of_its_own_schedule(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network_rankings, "fit_options", lambda *_: {"num_epochs": 1})
    with warnings.catch_warnings():
        warnings.simplefilter("error", UnreachedPhaseWarning)
        units = np.arange(X.shape[1])
        (ranking,) = rank_folds("set", [Part(X.astype(float), Y)], "classification", units, [3], 0)
    assert len(ranking.scores) == X.shape[1]
