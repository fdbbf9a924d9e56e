"""A task in a user's file is trained, saved, resumed and checked like a built-in one.

Covers ``fsjax.tasks.checks``, ``fsjax.tasks.contract``, ``fsjax.tasks.derived``,
``fsjax.tasks.examples``, ``fsjax.tasks.registry``, ``fsjax.tasks.task``.
"""

from __future__ import annotations

import dataclasses
import importlib
import json
import pickle
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, Literal

import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from bad_calls import bad_calls, refuses
from jax import Array
from marks import slow_ids
from sklearn.base import clone
from sklearn.metrics import mean_pinball_loss

import fsjax
from experiments.launch.config import load_config
from experiments.launch.experiment import run_experiment
from fsjax.arguments import Fraction, Positive
from fsjax.errors import ConfigError, DataError
from fsjax.estimators import DeepLasso
from fsjax.methods import deep_lasso, dufs, fisher_score, get_method, neural_network, wast
from fsjax.tasks import (
    TABLE,
    TASKS,
    Objective,
    Outputs,
    Target,
    Task,
    Words,
    get_task,
    like,
    name_of,
    weighted_mean,
)
from fsjax.tasks.task import RECORDS

#: The contents of the file.
SOURCE = '''\
"""Quantile regression (Koenker and Bassett, Econometrica 1978)."""

from typing import Annotated

import jax.numpy as jnp

import fsjax
from fsjax.arguments import Within
from fsjax.tasks import weighted_mean


@fsjax.tasks.register
def quantile(level: Annotated[float, Within(above=0, below=1)] = 0.5):
    def pinball(outputs, y, weight):
        error = y - outputs
        rows = jnp.maximum(level * error, (level - 1.0) * error)
        return weighted_mean(rows.mean(axis=-1), weight)

    def metrics(outputs, y, weight):
        return {"coverage": weighted_mean((y <= outputs).mean(axis=-1), weight)}

    return fsjax.tasks.like("regression", loss=pinball, metrics=metrics)
'''

FIT: dict[str, Any] = {"num_features": 2, "num_epochs": 30, "split": "random"}


@pytest.fixture(scope="module")
def my_tasks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    """The imported file, which is outside the repository."""
    folder = tmp_path_factory.mktemp("tasks")
    (folder / "my_tasks.py").write_text(SOURCE)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        yield importlib.import_module("my_tasks")
    sys.modules.pop("my_tasks")


def table(rows: int = 2000) -> tuple[np.ndarray, np.ndarray]:
    """The mean depends on columns 0 and 3 of six."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(rows, 6)).astype(np.float32)
    return x, x[:, 0] - x[:, 3] + rng.normal(size=rows)


def absolute(outputs: Any, y: Any, weight: Any) -> Any:
    return weighted_mean(jnp.abs(y - outputs).mean(axis=-1), weight)


@pytest.mark.slow
def test_held_out_rows_are_covered_as_often_as_the_level_says(my_tasks: ModuleType) -> None:
    method, data = deep_lasso(hidden=(16,), penalty=0.0), table()
    results = {
        level: fsjax.fit(method, data, task=my_tasks.quantile(level), **FIT) for level in (0.9, 0.5)
    }
    assert results[0.9].task == "quantile(level=0.9)"
    for level, result in results.items():
        assert abs(result.metrics["coverage"][0] - level) < 0.05, level
        assert sorted(result.selected[0]) == [0, 3]
        test = result.splits[0].test
        x, y = data[0][test], data[1][test]
        predicted = result.predict(x)[0, :, 0]
        np.testing.assert_allclose(result.metrics["coverage"], np.mean(y <= predicted), atol=2e-3)
        expected = mean_pinball_loss(y, predicted, alpha=level)
        np.testing.assert_allclose(result.metrics["loss"], expected, rtol=1e-4)
        assert "valid/coverage" in result.history


def test_test_metrics_take_targets_as_a_vector(my_tasks: ModuleType) -> None:
    outputs, y = np.array([[1.0], [2.0], [4.0]]), np.array([1.0, 2.0, 5.0])
    name = name_of(my_tasks.quantile(0.5))
    expected = {"loss": pytest.approx(0.5 / 3), "coverage": pytest.approx(2 / 3)}
    for targets in (y, y[:, None]):
        assert fsjax.evaluation.embedded_metrics(name, outputs, targets) == expected


def test_a_task_is_known_by_text() -> None:
    @fsjax.tasks.register
    def named(width: Positive = 1.0, kind: Literal["a", "b"] = "a", flag: bool = False) -> Task:
        return like("regression", loss=absolute)

    task = named(2, flag=True)
    assert repr(task) == task.name == "named(width=2.0, kind='a', flag=True)"
    assert get_task(task.name) is get_task("named(2, 'a', True)") is task
    assert name_of(task) == name_of("named( width=2.0,flag=True )") == task.name
    assert get_task("named") is named() is not task


@pytest.mark.slow
def test_another_value_does_not_continue_a_checkpoint(tmp_path: Path, my_tasks: ModuleType) -> None:
    def run(task: Task, folder: str) -> fsjax.FitResult:
        short = FIT | {"num_epochs": 2, "checkpoint_every": 1, "checkpoint_dir": tmp_path / folder}
        return fsjax.fit(neural_network(hidden=(4,)), table(100), task=task, **short)

    assert run(my_tasks.quantile(0.9), "quantile").cost["trained_epochs"] == 2
    assert run(my_tasks.quantile(0.9), "quantile").cost["trained_epochs"] == 0
    with pytest.raises(ConfigError, match=r"another run \(.*level=0.9\)', is"):
        run(my_tasks.quantile(0.5), "quantile")


@pytest.mark.slow
def test_a_task_that_is_registered_again_is_another_task(tmp_path: Path) -> None:
    def loss_of(factor: float, **options: Any) -> float:
        @fsjax.tasks.register
        def scaled() -> Task:
            return like("regression", loss=lambda *rows: factor * absolute(*rows))

        short = FIT | {"num_epochs": 2} | options
        result = fsjax.fit(neural_network(hidden=(4,)), table(100), task=scaled(), **short)
        return float(result.history["valid/loss"][0, 0])

    # The program that was compiled for another loss with this name is not used.
    assert loss_of(3.0) > 2.0 * loss_of(1.0)
    with pytest.warns(UserWarning, match="could not find the task scaled by name"):
        loss_of(1.0, checkpoint_dir=tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_a_result_comes_back_where_the_task_is_registered(
    tmp_path: Path, my_tasks: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    x, y = table(100)
    task = my_tasks.quantile(0.9)
    short = FIT | {"num_epochs": 1}
    result = fsjax.fit(neural_network(hidden=(4,)), (x, y), task=task, **short)
    fsjax.save(result, tmp_path / "result.npz")
    back = fsjax.load(tmp_path / "result.npz")
    np.testing.assert_array_equal(back.predict(x), result.predict(x))
    assert back.states.spec == result.states.spec
    monkeypatch.delitem(fsjax.tasks.BUILDERS, "quantile")
    with pytest.raises(DataError, match="import the module that registers it first"):
        fsjax.load(tmp_path / "result.npz")


def test_no_file_imports_the_module_of_a_task(my_tasks: ModuleType, tmp_path: Path) -> None:
    short = FIT | {"num_epochs": 1}
    task = my_tasks.quantile(0.9)
    result = fsjax.fit(neural_network(hidden=(4,)), table(100), task=task, **short)
    header, arrays = fsjax.storage.results.pack(result)
    (tmp_path / "hostile.py").write_text("raise SystemExit")
    for name in ("hostile:f", "hostile:f(1)"):
        changed = header | {"task": name, "spec": header["spec"] | {"task": name}}
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(tmp_path)
            with pytest.raises(DataError, match="the task 'hostile.* is not registered here"):
                fsjax.storage.results.unpack(changed, arrays)


@pytest.mark.slow
def test_an_estimator_predicts_the_quantile_in_the_units_of_y(
    my_tasks: ModuleType, tmp_path: Path
) -> None:
    x, y = table(1000)
    y = 40.0 * y + 1000.0
    model = DeepLasso(2, task=my_tasks.quantile(0.9), hidden=(16,), num_epochs=30, penalty=0.0)
    assert clone(model).task is model.task
    model.fit(x[:700], y[:700])
    predicted = model.predict(x[700:])
    assert abs(np.mean(y[700:] <= predicted) - 0.9) < 0.06
    expected = -mean_pinball_loss(y[700:], predicted, alpha=0.9)
    np.testing.assert_allclose(model.score(x[700:], y[700:]), expected, rtol=1e-4)
    copy = pickle.loads(pickle.dumps(model))
    assert copy.task is model.task
    model.save(tmp_path / "model.npz")
    for other in (copy, fsjax.estimators.load(tmp_path / "model.npz")):
        np.testing.assert_array_equal(other.predict(x[700:]), predicted)
    with pytest.raises(ConfigError, match="level=1.5; choose a value above 0 to below 1"):
        clone(model).set_params(task="quantile(1.5)").fit(x, y)


@pytest.mark.slow
def test_a_config_takes_it_as_module_and_function(tmp_path: Path, my_tasks: ModuleType) -> None:
    x, y = table(200)
    names = [f"x{number}" for number in range(6)]
    frame = pd.DataFrame(np.column_stack([x, y]), columns=[*names, "y"])
    frame.to_csv(tmp_path / "table.csv", index=False)
    config = load_config("configs/any.py:stg,my_tasks:quantile(level=0.9),quick")
    config.data.update(name=str(tmp_path / "table.csv"), target="y")
    config.num_features = 2
    config.seeds = (0,)
    config.method.update(hidden=(4,), search=False)
    config.evaluation.protocols = ("embedded", "retrain")
    config.evaluation.retrain.num_epochs = 1
    run_experiment(config, tmp_path / "run", progress=False)
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    assert result["task"] == "quantile(level=0.9)"
    assert {"coverage", "loss", "retrain_coverage"} <= set(result["metrics"])
    assert (tmp_path / "run" / "curves.png").exists()
    with pytest.raises(ConfigError, match="level=2"):
        load_config("configs/any.py:stg,my_tasks:quantile(2)")
    with pytest.raises(ConfigError, match="there is no module 'nowhere'"):
        load_config("configs/any.py:stg,nowhere:quantile(0.5)")


def test_methods_that_ignore_the_loss_refuse_the_task(my_tasks: ModuleType) -> None:
    @fsjax.tasks.register
    def rows_apart() -> Task:
        return like("reconstruction", loss=absolute)

    @fsjax.tasks.register
    def smoothed() -> Task:
        return like("classification", loss=TABLE["classification"].objective.loss)

    neural = neural_network(hidden=(4,))
    own = neural._replace(loss=lambda params, state, batch, key: (0.0, {}))
    x, y = table(100)
    for method, task, *words in (
        (fisher_score(), smoothed(), "fisher_score trains nothing", "loss of the task"),
        (dufs(), rows_apart(), "dufs has a loss of its own"),
        (wast(hidden=(4,)), rows_apart(), "derivative of the squared error", "'reconstruction'"),
        (own, my_tasks.quantile(0.9), "has a loss of its own"),
        (wast(), my_tasks.quantile(0.9), "not for quantile", "like regression"),
    ):
        data = (x, (y > 0).astype(int) if task.like == "classification" else y)
        refuses(partial(fsjax.plan, method, data, task=task, num_features=2), *words)


@pytest.mark.parametrize("name", ["aefs", "binmask", "entryprune", "lassonet", "quick_selection"])
def test_methods_that_train_the_loss_take_the_task(name: str) -> None:
    builder = get_method(name)
    method = builder(**builder.registration.small)
    first = method.about.tasks[0]

    @fsjax.tasks.register
    def twin() -> Task:
        return like(first, loss=TABLE[first].objective.loss)

    x, y = table(100)
    planned = fsjax.plan(method, (x, (y > 0).astype(int)), task=twin(), num_features=4)
    assert planned.spec.task == "twin"


def of_rows(outputs: Any, y: Any, weight: Any) -> Any:
    return jnp.abs(y - outputs).mean(axis=-1)


@bad_calls(
    ({}, "loss=None", "'regression'"),
    ({"loss": of_rows}, "loss of the task wrong is an array of"),
    ({"loss": lambda o, y, w: jnp.argmax(w)}, "floating point"),
    ({"loss": lambda o, y: 0.0}, "the task wrong fails"),
    ({"metrics": absolute}, "metrics of the task wrong", "return a dict"),
    ({"metrics": lambda *rows: {"a": of_rows(*rows)}}, "'a' of the task wrong is an array"),
    ({"main_metric": "coverage"}, "main_metric='coverage'", "allowed: 'loss'"),
    ({"metrics": lambda *rows: {"loss": absolute(*rows)}}, "include 'loss'"),
    ({"metrics": 0.5}, "metrics of the task wrong is 0.5"),
    ({"like": "regresion"}, "task='regresion'", "did you mean 'regression'"),
    ({"lable": "x"}, "'lable': did you mean 'label'"),
    (TABLE["regression"], "built-in task"),
    (absolute, "returns function"),
)
def test_a_task_that_is_wrongly_made_is_refused(bad: tuple) -> None:
    made, *words = bad

    @fsjax.tasks.register
    def wrong() -> Any:
        if not isinstance(made, dict):
            return made
        options = ({"loss": absolute} if made else {}) | made
        return like(options.pop("like", "regression"), **options)

    refuses(wrong, *words)


@bad_calls(
    ("shifted(0.9)(1)", "cannot be read"),
    ("shifted(**{'by': 1})", "cannot be read"),
    ("shifted(by=one)", "cannot be read"),
    ("shifted(to=1)", "'to'"),
    ("shifted(1, 2)", "task='shifted(1, 2)': "),
)
def test_arguments_in_a_name_are_literals(bad: tuple) -> None:
    @fsjax.tasks.register
    def shifted(by: float = 0.0) -> Task:
        return like("regression", loss=lambda o, y, w: absolute(o + by, y, w))

    refuses(lambda: fsjax.tasks.get_task(bad[0]), bad[1])


def test_names_and_arguments_are_checked_as_it_is_registered() -> None:
    def regression() -> Task:
        return like("regression", loss=absolute)

    def bare(level=0.5) -> Task: ...

    def open_ended(**options: float) -> Task: ...

    def any_value(level: Any = 0.5) -> Task: ...

    @fsjax.tasks.register
    def shared(level: Fraction = 0.5) -> Task:
        return like("regression", loss=absolute)

    other = FunctionType(regression.__code__, {}, "shared")
    other.__module__ = "elsewhere"
    for build, *words in (
        (regression, "'regression'", "choose another"),
        (bare, "'level' of the task bare", "annotation"),
        (open_ended, "has the parameter"),
        (any_value, "'level' of the task any_value", "annotation"),
        (other, "'shared' is taken by", "choose another"),
    ):
        refuses(partial(fsjax.tasks.register, build), *words)
    refuses(lambda: shared(1.5), "level=1.5; choose")
    refuses(lambda: shared(levle=0.5), "'levle'", error=TypeError)
    own = like("regression", loss=absolute)
    planned = partial(fsjax.plan, neural_network(hidden=(4,)), table(100), num_features=2)
    refuses(partial(planned, task=own), "registered function")


@pytest.mark.parametrize("task", TASKS)
def test_built_in_tasks_keep_the_contract(task: str) -> None:
    fsjax.testing.check_task(task)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"loss": lambda o, y, w: jnp.abs(y - o).mean()}, "rows of weight 0 change loss"),
        ({"loss": lambda o, y, w: absolute(o, y, w > 0)}, "weight 2 is not two rows"),
        ({"loss": lambda o, y, w: jnp.sum(w * of_rows(o, y, w))}, "divide by the sum"),
        ({"loss": lambda o, y, w: absolute(o - o.mean(), y, w)}, "weight 0 change loss"),
        ({"loss": lambda o, y, w: absolute(o - w @ o / w.sum(), y, w)}, "set coupled=True"),
        ({"loss": lambda o, y, w: absolute(jnp.round(o), y, w)}, "gradient of the loss is 0"),
        ({"loss": lambda o, y, w: absolute(o, y, w) / 0.0}, "loss is inf"),
        ({"metrics": lambda o, y, w: {"worst": jnp.max(jnp.abs(y - o))}}, "change worst"),
        ({"test_metrics": lambda o, y: {"worst": np.nan}}, "'worst' is nan"),
    ],
)
def test_the_contract_tells_what_is_wrong(changes: dict[str, Any], words: str) -> None:
    @fsjax.tasks.register
    def broken() -> Task:
        return like("regression", **{"loss": absolute, **changes})

    with pytest.raises(AssertionError, match=words):
        fsjax.testing.check_task(broken())


def test_targets_that_the_example_does_not_fit() -> None:
    def check(y: np.ndarray, names: object, where: str) -> tuple[np.ndarray, None]:
        if (y <= 0).any():
            raise DataError(f"{where} has numbers up to 0")
        return y, None

    def logarithms(outputs: Array, y: Array, weight: Array) -> Array:
        return absolute(outputs, jnp.log(y), weight)

    @fsjax.tasks.register
    def positive() -> Task:
        return like("regression", loss=logarithms, check=check, scale=None, label="log error")

    task, built_in = positive(), TABLE["regression"]
    assert (task.target.scale, task.words.label) == (None, "log error")
    assert task.target.read is built_in.target.read and built_in.target.scale is not None
    with pytest.raises(DataError, match="the example has numbers up to 0"):
        fsjax.testing.check_task(task)
    fsjax.testing.check_task(task, np.random.default_rng(0).exponential(size=30))


@slow_ids("shape1")
@slow_ids("shape2")
@pytest.mark.parametrize("shape", [(40,), (40, 1), (40, 2)])
def test_predictions_in_the_units_of_a_task_have_the_shape_of_the_targets(shape: tuple) -> None:
    @fsjax.tasks.register
    def in_units() -> Task:
        return like("regression", loss=absolute, scale=None)

    rng = np.random.default_rng(0)
    estimator = DeepLasso(2, task=in_units(), hidden=(4,), num_epochs=2)
    assert estimator.fit(rng.normal(size=(40, 5)), rng.normal(size=shape)).predict(
        rng.normal(size=(7, 5))
    ).shape == (7, *shape[1:])


def test_no_field_is_in_two_records() -> None:
    records = (Target, Objective, Outputs, Words)
    assert len(RECORDS) == sum(len(dataclasses.fields(record)) for record in records)


@pytest.mark.slow
def test_the_contracts_take_it(my_tasks: ModuleType) -> None:
    fsjax.testing.check_task(my_tasks.quantile(0.9))
    method = neural_network(hidden=(6,), learning_rate=0.03)
    fsjax.testing.check_method(method, tasks=[my_tasks.quantile(0.9)], num_epochs=6)
