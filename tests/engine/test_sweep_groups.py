"""The groups of a sweep: their folders, the places of their results, and their cost."""

from __future__ import annotations

import importlib
import signal
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import fsjax
from fsjax.engine.plan import Plan
from fsjax.engine.sweep import Sweep, best_places
from fsjax.errors import ConfigError
from fsjax.methods import neural_network, stg

TABLE = (np.random.default_rng(0).normal(size=(64, 5)).astype(np.float32), np.arange(64) % 2)
OPTIONS = {"seeds": (0,), "num_features": 2}
GRID = {"learning_rate": [0.01, 0.1], "num_epochs": [1, 2]}


@pytest.fixture
def trained_plans(monkeypatch: pytest.MonkeyPatch) -> list[Plan]:
    """The plans that are trained; a result is the rate and the epochs that it was asked for."""
    plans: list[Plan] = []

    def record(planned, methods):
        plans.append(planned)
        epochs = planned.spec.num_epochs
        return [(dict(method.about.settings)["learning_rate"], epochs) for method in methods]

    # The package has a function of the same name as the module.
    module = importlib.import_module("fsjax.engine.sweep")
    monkeypatch.setattr(module, "fit_many", record)
    return plans


def test_each_group_has_its_own_checkpoint_folder(trained_plans, tmp_path: Path) -> None:
    fsjax.sweep(neural_network(hidden=(4,)), TABLE, GRID, **OPTIONS, checkpoint_dir=tmp_path)
    assert [plan.checkpoint_dir for plan in trained_plans] == [tmp_path / "000", tmp_path / "001"]


def test_results_are_in_the_order_of_the_grid(trained_plans) -> None:
    outcome = fsjax.sweep(neural_network(hidden=(4,)), TABLE, GRID, **OPTIONS)
    assert outcome.names == ("learning_rate", "num_epochs")
    assert list(outcome.results) == [(0.01, 1), (0.01, 2), (0.1, 1), (0.1, 2)]


def test_every_group_is_checked_before_any_is_trained(trained_plans) -> None:
    with pytest.raises(ConfigError, match="num_epochs"):
        fsjax.sweep(neural_network(hidden=(4,)), TABLE, {"num_epochs": [1, 0]}, **OPTIONS)
    assert not trained_plans


@pytest.fixture
def handled_interrupts() -> Iterator[None]:
    """Jobs in the background ignore interrupts."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def interrupt(progress: fsjax.Progress) -> None:
    signal.raise_signal(signal.SIGINT)


@pytest.mark.parametrize(
    "ends",
    [
        {"max_time": 1e-3},
        {"callback": lambda progress: True},
        {"callback": interrupt, "keep_partial": True},
    ],
    ids=["max_time", "callback", "signal"],
)
@pytest.mark.usefixtures("handled_interrupts")
@pytest.mark.filterwarnings("ignore:training was interrupted")
def test_what_ends_a_training_ends_the_sweep(ends) -> None:
    grid = {"num_epochs": [1000, 2000], "learning_rate": [0.01, 0.1]}
    with pytest.warns(UserWarning, match="2 of 4 settings.*'num_epochs=2000, learning_rate=0.01'"):
        outcome = fsjax.sweep(neural_network(hidden=(4,)), TABLE, grid, **OPTIONS, **ends)
    assert [setting["num_epochs"] for setting in outcome.settings] == [1000, 1000]
    assert [len(result.history["train/loss"][0]) for result in outcome.results] == [1, 1]


def test_what_ends_a_search_ends_the_sweep() -> None:
    grid, options = {"learning_rate": [0.01, 0.1]}, {**OPTIONS, "num_epochs": 1000}
    with pytest.warns(UserWarning, match="1 of 2 settings.*'learning_rate=0.1'"):
        outcome = fsjax.sweep(stg(hidden=(4,)), TABLE, grid, **options, callback=lambda _: True)
    assert [dict(setting) for setting in outcome.settings] == [{"learning_rate": 0.01}]


@pytest.mark.slow
def test_settings_of_one_program_share_its_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    costs = []
    train = Plan.train

    def record(self, **options):
        trained = train(self, **options)
        costs.append(dict(trained.cost))
        return trained

    monkeypatch.setattr(Plan, "train", record)
    rates = {"learning_rate": [0.01, 0.1]}
    options = {**OPTIONS, "num_epochs": 1}
    outcome = fsjax.sweep(neural_network(hidden=(4,)), TABLE, rates, **options)
    for result in outcome.results:
        assert result.cost["train_seconds"] == pytest.approx(costs[0]["train_seconds"] / 2)
        assert result.cost["trained_epochs"] == costs[0]["trained_epochs"]


def sweep_of(settings: list[dict[str, object]], losses: list[float], task: str = "") -> Sweep:
    """A sweep whose settings had these validation losses, and negative accuracies."""
    results = tuple(
        SimpleNamespace(
            seeds=(0,),
            states=SimpleNamespace(
                spec=SimpleNamespace(best_by=setting.get("best_by", "loss"), task=task)
            ),
            metrics={},
            best_epoch=np.array([1]),
            history={"valid/loss": np.array([[loss]]), "valid/accuracy": np.array([[-loss]])},
        )
        for setting, loss in zip(settings, losses, strict=True)
    )
    return Sweep(tuple(settings[0]), tuple(settings), results)


def test_a_setting_without_a_finite_validation_loss_is_not_the_best() -> None:
    rates = [{"rate": rate} for rate in (1, 2, 3)]
    assert sweep_of(rates, [np.nan, 0.4, 0.2]).best() == 2


@pytest.mark.parametrize(
    ("name", "values", "task"),
    [
        ("best_by", ["last", "accuracy"], ""),
        ("loss", [None, np.sum], ""),
        ("sample_weight", [np.ones(2000), np.arange(2000.0)], ""),
        ("scaling", ["standard", "minmax"], "reconstruction"),
    ],
)
def test_settings_of_other_criteria_are_not_compared(name: str, values: list, task: str) -> None:
    settings = [{name: value, "rate": rate} for value in values for rate in (1, 2)]
    swept = sweep_of(settings, [0.4, 0.3, 0.1, 0.2], task)
    with pytest.raises(ConfigError, match="2 criteria that cannot be compared, validation='loss'"):
        swept.best()
    assert [place for _, place in best_places(swept)] == [1, 2]
    assert swept.table()["criterion"].nunique() == 2


def test_scalings_of_inputs_alone_are_compared() -> None:
    settings: list[dict[str, object]] = [{"scaling": kind} for kind in ("standard", "minmax")]
    swept = sweep_of(settings, [0.4, 0.3], "classification")
    assert swept.best() == 1 and "criterion" not in swept.table()


def test_long_arrays_of_a_grid_are_told_apart(trained_plans) -> None:
    weights = np.ones((2, 2000))
    weights[1, 500:900] = 50.0
    table = np.resize(TABLE[0], (2000, 5)), np.arange(2000) % 2
    method = neural_network(hidden=(4,))
    fsjax.sweep(method, table, {"sample_weight": list(weights)}, **OPTIONS)
    assert len(trained_plans) == 2
    with pytest.raises(ConfigError, match="each only once"):
        fsjax.sweep(method, table, {"sample_weight": weights[[0, 0]]}, **OPTIONS)
