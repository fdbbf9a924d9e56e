"""Many settings and seeds in one program give the results of single fits."""

from __future__ import annotations

from types import SimpleNamespace

import chex
import numpy as np
import pytest
from bad_calls import bad_calls, refuses

import fsjax
from fsjax.engine import programs
from fsjax.engine.sweep import Sweep, combinations
from fsjax.errors import ConfigError
from fsjax.methods import neural_network, random_selection, wast


@pytest.fixture(scope="module")
def table() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(96, 8)).astype(np.float32)
    return x, (x[:, 2] + 0.5 * x[:, 5] > 0).astype(int)


OPTIONS = {"num_epochs": 4, "batch_size": 32, "num_features": 3, "seeds": (0, 3)}


@pytest.mark.slow
def test_each_setting_is_what_a_fit_of_it_gives(table) -> None:
    grid = {"learning_rate": [0.01, 0.1], "drop_fraction": [0.1, 0.5]}
    method = wast(hidden=(6,))
    found = fsjax.sweep(method, table, grid, **OPTIONS)
    assert [dict(one) for one in found.settings] == combinations(grid)
    for setting, result in zip(found.settings, found.results, strict=True):
        alone = fsjax.fit(wast(hidden=(6,), **setting), table, **OPTIONS)
        np.testing.assert_array_equal(result.selected, alone.selected)
        np.testing.assert_allclose(result.scores, alone.scores, rtol=1e-5)
        assert dict(result.method.about.settings)["learning_rate"] == setting["learning_rate"]
        assert result.seeds == alone.seeds
        for name, values in alone.metrics.items():
            np.testing.assert_allclose(result.metrics[name], values, rtol=1e-5)
    # The settings must have an effect, or the test shows nothing.
    assert len({result.scores.tobytes() for result in found.results}) == 4


@pytest.mark.slow
def test_traced_settings_share_a_program_and_shapes_do_not(table, monkeypatch) -> None:
    made = []
    compiled = programs.Program.compiled

    def counted(self, *args, **options):
        made.append(self.__name__)
        return compiled(self, *args, **options)

    monkeypatch.setattr(programs.Program, "compiled", counted)
    rates = [0.01, 0.02, 0.03]
    method = neural_network(hidden=(5,))
    fsjax.sweep(method, table, {"learning_rate": rates}, **OPTIONS)
    assert made.count("train_seeds") == 1
    made.clear()
    grid = {"hidden": [(5,), (7,)], "learning_rate": rates}
    found = fsjax.sweep(method, table, grid, **OPTIONS)
    assert made.count("train_seeds") == 2
    assert found.results[4].states.params["FanInDense_0"]["Dense_0"]["kernel"].shape[-1] == 7


@pytest.mark.slow
def test_options_of_the_run_can_vary_and_splits_of_seeds(table) -> None:
    options = {name: value for name, value in OPTIONS.items() if name != "num_epochs"}
    grid = {"num_epochs": [1, 3], "learning_rate": [0.01, 0.3]}
    method = neural_network(hidden=(5,))
    found = fsjax.sweep(method, table, grid, **options, split_per_seed=True, valid_fraction=0.2)
    for setting, result in zip(found.settings, found.results, strict=True):
        assert result.history["train/loss"].shape == (2, setting["num_epochs"])
        rate, epochs = setting["learning_rate"], setting["num_epochs"]
        alone = fsjax.fit(
            neural_network(hidden=(5,), learning_rate=rate),
            table,
            **options,
            num_epochs=epochs,
            split_per_seed=True,
            valid_fraction=0.2,
        )
        np.testing.assert_array_equal(result.splits[1].test, alone.splits[1].test)
        np.testing.assert_allclose(result.scores, alone.scores, rtol=1e-5)


@pytest.mark.slow
def test_the_best_is_told_by_the_validation_rows(table) -> None:
    method = neural_network(hidden=(5,))
    grid = {"learning_rate": [1e-6, 0.05]}
    found = fsjax.sweep(method, table, grid, **OPTIONS, valid_fraction=0.25)
    assert found.best() == 1
    rows = found.table()
    assert list(rows["seed"]) == [0, 3, 0, 3]
    assert rows["validation"][2:].max() < rows["validation"][:2].min()
    without = fsjax.sweep(method, table, grid, **OPTIONS, valid_fraction=0.0)
    with pytest.raises(ConfigError, match="valid_fraction"):
        without.best()


@pytest.mark.slow
def test_each_setting_starts_from_an_earlier_result(table) -> None:
    method = neural_network(hidden=(5,))
    first = fsjax.fit(method, table, **OPTIONS)
    # The rates are so small that the weights hardly change.
    rates = {"learning_rate": [1e-9, 2e-9]}
    results = fsjax.sweep(method, table, rates, **{**OPTIONS, "num_epochs": 1}, start=first).results
    for result in results:
        chex.assert_trees_all_close(result.states.params, first.states.params, atol=1e-6)


def best_of(best_by: str, *curves: list[list[float]], best_epoch: int) -> int:
    """The best of settings with these validation curves of two seeds."""
    states = SimpleNamespace(spec=SimpleNamespace(best_by=best_by))
    results = tuple(
        SimpleNamespace(
            seeds=(0, 1),
            states=states,
            metrics={},
            best_epoch=np.array([best_epoch, best_epoch]),
            history={f"valid/{name}": np.array(curve) for name in ("loss", best_by)},
        )
        for curve in curves
    )
    return Sweep(("rate",), ({"rate": 1}, {"rate": 2}), results).best()


def test_the_best_has_the_best_mean_over_the_seeds_at_the_kept_epoch() -> None:
    # The first setting has the best seed, and the best last epoch.
    losses = [[0.1, 0.0], [0.9, 0.0]], [[0.3, 9.0], [0.4, 9.0]]
    assert best_of("loss", *losses, best_epoch=1) == 1
    percents = [[90.0, 99.0], [10.0, 99.0]], [[60.0, 1.0], [55.0, 1.0]]
    assert best_of("accuracy", *percents, best_epoch=1) == 1


@pytest.mark.slow
def test_a_sweep_goes_on_where_it_stopped(table, tmp_path) -> None:
    method, grid = wast(hidden=(6,)), {"learning_rate": [0.01, 0.1]}
    whole = fsjax.sweep(method, table, grid, **OPTIONS, checkpoint_dir=tmp_path)
    again = fsjax.sweep(method, table, grid, **OPTIONS, checkpoint_dir=tmp_path)
    assert again.results[0].cost["trained_epochs"] == 0
    for one, other in zip(whole.results, again.results, strict=True):
        np.testing.assert_array_equal(one.scores, other.scores)


@bad_calls(
    ({}, "empty"),
    ({"learning_rates": [0.1]}, "did you mean 'learning_rate'"),
    ({"learning_rate": []}, "each only once"),
    ({"learning_rate": [0.1, 0.1]}, "each only once"),
    ({"learning_rate": 0.1}, "a list"),
    ({"learning_rate": [-1.0]}, "learning_rate"),
    ({"seeds": [(0,), (1,)]}, "whole sweep"),
    ({"num_features": [2, 3]}, "whole sweep"),
    (
        {"learning_rate": [0.2]},
        "fsjax.register",
        random_selection(3, hidden=(5,))._replace(keep="last"),
    ),
)
def test_bad_calls(bad: tuple, table) -> None:
    grid, message, *own = bad
    method = own[0] if own else wast(hidden=(6,))
    refuses(lambda: fsjax.sweep(method, table, grid, **OPTIONS), message)
