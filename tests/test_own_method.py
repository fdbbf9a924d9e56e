"""A method in a file of one's own has everything that the library's methods have.

Covers ``fsjax.arguments.checks``, ``fsjax.estimators.factory``.
"""

from __future__ import annotations

import importlib
import json
import os
import pickle
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from bad_calls import bad_calls, refuses
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import check_estimator

import fsjax
from fsjax import methods
from fsjax.engine import programs
from fsjax.errors import ConfigError, DataError
from fsjax.estimators import ESTIMATORS
from fsjax.methods import METHODS, get_method

ROOT = Path(__file__).parents[1]

#: The whole file.
SOURCE = '''\
"""Deep Lasso (Cherepanova et al., NeurIPS 2023): a network whose loss hardly feels most columns."""

import jax
import jax.numpy as jnp
import optax

import fsjax
from fsjax.arguments import Layers, NonNegative, Positive


@fsjax.register(
    estimator="OwnLasso",
    paper="Cherepanova et al., NeurIPS 2023",
    optimises="the task plus lambda times the norms of the loss's gradient by each column",
    num_epochs=50,
    small={"hidden": (6,)},
)
def own_lasso(
    *, penalty: NonNegative = 0.1, hidden: Layers = (64,), learning_rate: Positive = 1e-2
):
    """Deep Lasso: task loss + lambda sum_j || dloss / dx_j ||_2 over the rows of the batch.

    Args:
      penalty: lambda, at least 0.
      hidden: widths of the hidden layers.
      learning_rate: of Adam.
    """

    def network(spec):
        return fsjax.nets.MLP(spec.num_outputs, hidden)

    def init(key, spec, data):
        params = network(spec).init(key, data.x[:1])["params"]
        return fsjax.create_state(spec, params, extra={"norms": jnp.zeros(spec.num_columns)})

    def predict(params, spec, x):
        return network(spec).apply({"params": params}, x)

    def task_loss(x, params, spec, batch):
        return fsjax.tasks.loss(spec.task, predict(params, spec, x), batch.y, batch.weight)

    def norms(params, spec, batch):
        # A gradient of exactly 0 has no direction, hence the small number.
        slopes = jax.grad(task_loss)(batch.x, params, spec, batch)
        return jnp.sqrt(jnp.sum(jnp.square(slopes), axis=0) + 1e-16)

    def loss(params, state, batch, key):
        penalties = jnp.sum(norms(params, state.spec, batch))
        return task_loss(batch.x, params, state.spec, batch) + penalty * penalties, {}

    def finish(state, data, key):
        return state.replace(extra={"norms": norms(state.params, state.spec, data)})

    return fsjax.Method(
        fsjax.About(tasks=("classification", "regression"), flops=18.0),
        init=init, loss=loss, finish=finish,
        optimizer=optax.adam(learning_rate),
        predict=lambda state, x: predict(state.params, state.spec, x),
        select=lambda state: fsjax.Selection(state.extra["norms"]),
    )
'''

OPTIONS: dict[str, Any] = {"batch_size": 32, "num_epochs": 30, "scaling": "standard"}

#: Of a fit of the estimator.
QUICK: dict[str, Any] = {"hidden": (6,), "num_epochs": 10}


def table() -> tuple[np.ndarray, np.ndarray]:
    """Six columns, of which 1 and 4 determine the class."""
    x = np.random.default_rng(0).normal(size=(120, 6)).astype(np.float32)
    return x, np.where(x[:, 1] + x[:, 4] > 0, "high", "low")


def forget(module: str) -> None:
    """Takes the methods of a module out of the registry, and the module out of Python."""
    for name, builder in list(METHODS.items()):
        if builder.registration.build.__module__ == module:
            del METHODS[name], ESTIMATORS[name]
    sys.modules.pop(module, None)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the file lies, outside of the repository."""
    path = tmp_path_factory.mktemp("own")
    (path / "my_file.py").write_text(SOURCE)
    return path


@pytest.fixture(scope="module")
def my_file(folder: Path) -> Iterator[ModuleType]:
    """The imported file."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        yield importlib.import_module("my_file")
    forget("my_file")


@pytest.fixture(scope="module")
def result(my_file: ModuleType) -> fsjax.FitResult:
    method = my_file.own_lasso(hidden=(6,))
    return fsjax.fit(method, numbers(), num_features=2, seeds=(0, 1), split="random", **OPTIONS)


def numbers() -> tuple[np.ndarray, np.ndarray]:
    x, y = table()
    return x, (y == "high").astype(int)


def python(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Runs Python in the folder, where only the library is on the path."""
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=300,
    )


def test_it_selects_and_predicts(result: fsjax.FitResult) -> None:
    assert [set(columns) for columns in result.selected] == [{1, 4}] * 2
    assert (result.metrics["embedded_accuracy"] > 80).all()
    assert result.method.name == "own_lasso"
    assert repr(result.method).startswith("own_lasso(hidden=(6,)")


def test_another_penalty_compiles_nothing(
    my_file: ModuleType, result: fsjax.FitResult, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled = set(programs._kept)
    method = my_file.own_lasso(hidden=(6,), penalty=5.0, learning_rate=0.02)
    options = {"num_features": 2, "seeds": (0, 1), "split": "random", **OPTIONS}
    stronger = fsjax.fit(method, numbers(), **options)
    assert set(programs._kept) == compiled
    assert (stronger.scores.sum(axis=1) < result.scores.sum(axis=1)).all()


def test_arguments_are_checked_by_their_annotations(my_file: ModuleType) -> None:
    refuses(lambda: my_file.own_lasso(penalty=-1.0), "penalty=-1.0; choose a value from 0")
    refuses(lambda: my_file.own_lasso(penlty=1.0), "'penlty'", "'penalty'", error=TypeError)
    refuses(lambda: my_file.OwnLasso(hidden=()).fit(*table()), "hidden is empty")


@pytest.mark.slow
def test_saved_here_and_read_in_another_process(
    my_file: ModuleType, folder: Path, result: fsjax.FitResult
) -> None:
    x, y = table()
    fsjax.save(result, folder / "result.npz")
    again = fsjax.load(folder / "result.npz")
    assert again.method is result.method
    np.testing.assert_array_equal(again.predict(x), result.predict(x))

    estimator = my_file.OwnLasso(2, **QUICK).fit(x, y)
    estimator.save(folder / "estimator.npz")
    (folder / "estimator.pickle").write_bytes(pickle.dumps(estimator))
    np.save(folder / "x.npy", x)
    # A file of ours imports nothing, a pickle does.
    done = python("-c", READER, folder=folder)
    assert done.returncode == 0, done.stderr
    refused = done.stdout.splitlines()
    assert len(refused) == 2 and refused[0].startswith("result.npz: ")
    for name, message in zip(("'own_lasso'", "'OwnLasso'"), refused, strict=True):
        assert name in message and "import 'my_file'" in message
    found = np.load(folder / "found.npz")
    np.testing.assert_allclose(found["result"], result.predict(x), rtol=1e-5, atol=1e-6)
    for name in ("pickle", "estimator"):
        np.testing.assert_allclose(found[name], estimator.predict_proba(x), rtol=1e-5)


READER = """
import pickle, numpy as np, fsjax
for load, name in ((fsjax.load, "result.npz"), (fsjax.estimators.load, "estimator.npz")):
    try:
        load(name)
    except fsjax.DataError as error:
        print(error)
x = np.load("x.npy")
found = {"pickle": pickle.load(open("estimator.pickle", "rb")).predict_proba(x)}
found["estimator"] = fsjax.estimators.load("estimator.npz").predict_proba(x)
found["result"] = fsjax.load("result.npz").predict(x)
np.savez("found.npz", **found)
"""


def test_files_of_unknown_methods_are_refused_here(
    folder: Path, result: fsjax.FitResult, monkeypatch: pytest.MonkeyPatch
) -> None:
    fsjax.save(result, folder / "known.npz")
    monkeypatch.delitem(METHODS, "own_lasso")
    with pytest.raises(DataError, match="known.npz: .*import 'my_file' first"):
        fsjax.load(folder / "known.npz")


@pytest.mark.slow
def test_a_search_over_its_arguments(my_file: ModuleType) -> None:
    x, y = table()
    grid = {"penalty": [0.01, 0.1], "n_features_to_select": [1, 2]}
    search = GridSearchCV(my_file.OwnLasso(**QUICK), grid, cv=2).fit(x, y)
    assert set(search.best_params_) == set(grid)
    assert search.best_estimator_.score(x, y) > 0.7
    assert "norms of the loss's gradient" in METHODS["own_lasso"].registration.optimises
    assert "penalty: lambda, at least 0." in my_file.OwnLasso.__doc__


@pytest.mark.long
def test_all_checks_of_scikit_learn(my_file: ModuleType) -> None:
    unlike = "a repeated row is drawn otherwise than one of twice the weight"
    expected = {"check_sample_weight_equivalence_on_dense_data": unlike}
    options = {"hidden": (16,), "num_epochs": 40, "learning_rate": 0.02, "penalty": 1e-3}
    estimator = my_file.OwnLasso(0.9, **options)
    check_estimator(estimator, expected_failed_checks=expected, on_skip=None)


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments",
    [
        ("{config}:my_file:own_lasso,quick",),
        pytest.param(
            ("{config}:quick", "--config.method.name=my_file:own_lasso"), marks=pytest.mark.long
        ),
    ],
    ids=["in the variant", "in a field"],
)
def test_the_launcher_finds_it(arguments: tuple[str, ...], folder: Path, tmp_path: Path) -> None:
    config, *further = arguments
    in_variant = not further
    if in_variant:
        further = ["--config.method.penalty=0.3", "--config.method.hidden=6"]
    done = python(
        "-m",
        "experiments.run",
        "--config=" + config.format(config=ROOT / "configs" / "any.py"),
        *further,
        "--config.seeds=4,",
        f"--workdir={tmp_path / 'run'}",
        folder=folder,
    )
    assert done.returncode == 0, done.stderr
    assert "own_lasso" in done.stdout
    method = json.loads((tmp_path / "run" / "config.json").read_text())["method"]
    assert method["name"] == "my_file:own_lasso"
    if in_variant:
        assert (method["penalty"], method["hidden"]) == (0.3, [6])
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    assert (result["method"], result["dataset"], result["seeds"]) == ("own_lasso", "digits", [4])


#: A method of a few lines, for tests of the registry.
FILTER = """
import fsjax
from fsjax.methods.shared.fixed_columns import filter_method

@fsjax.register(estimator="{estimator}")
def {name}():
    return filter_method(lambda key, spec, data: {scores})
"""


def module_of(path: Path, **named: str) -> None:
    defaults = {"name": "first_columns", "estimator": "FirstColumns"}
    named = {**defaults, "scores": "-1.0 * __import__('numpy').arange(spec.num_columns)", **named}
    path.write_text(FILTER.format(**named))


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder on the path, whose modules are forgotten afterwards."""
    monkeypatch.syspath_prepend(tmp_path)
    methods._load_entry_points.cache_clear()
    yield tmp_path
    methods._load_entry_points.cache_clear()
    for path in tmp_path.glob("*.py"):
        forget(path.stem)


def test_entry_points_of_packages_are_methods(packages: Path) -> None:
    module_of(packages / "fsjax_first.py")
    about = packages / "fsjax_first-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: fsjax-first\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(
        "[fsjax.methods]\nfirst_columns = fsjax_first:first_columns\n"
    )
    assert "first_columns" not in METHODS
    result = fsjax.fit(get_method("first_columns")(), table(), num_features=3)
    np.testing.assert_array_equal(result.selected, [[0, 1, 2]])
    assert ESTIMATORS["first_columns"](2).fit(*table()).get_support(indices=True).tolist() == [0, 1]


@bad_calls(
    ({"name": "stg"}, "method name 'stg' is taken"),
    ({"estimator": "STG"}, "estimator name 'STG' is taken"),
    ({"estimator": "fsjax"}, "estimator name 'fsjax' is taken in taken"),
)
def test_names_that_are_taken_are_refused(bad: tuple, packages: Path) -> None:
    before = dict(METHODS), dict(ESTIMATORS)
    module_of(packages / "taken.py", **bad[0])
    refuses(lambda: importlib.import_module("taken"), bad[1])
    assert (METHODS, ESTIMATORS) == before


def test_two_files_cannot_have_one_name(packages: Path) -> None:
    module_of(packages / "one.py")
    module_of(packages / "other.py", estimator="Other")
    assert get_method("one:first_columns") is METHODS["first_columns"]
    with pytest.raises(ConfigError, match="'first_columns' is taken"):
        get_method("other:first_columns")


def test_a_cell_of_a_notebook_may_run_again() -> None:
    cell = {"__name__": "notebook"}
    source = FILTER.replace("{scores}", "1.0 * __import__('numpy').arange(spec.num_columns)")
    source = source.format(name="a_cell", estimator="ACell")
    try:
        exec(source, cell)
        first = cell["a_cell"], cell["ACell"]
        assert fsjax.fit(cell["a_cell"](), table(), num_features=1).selected == [[5]]
        exec(source.replace("1.0 *", "-1.0 *"), cell)
        assert METHODS["a_cell"] is cell["a_cell"] is not first[0]
        assert ESTIMATORS["a_cell"] is cell["ACell"] is not first[1]
        assert fsjax.fit(cell["a_cell"](), table(), num_features=1).selected == [[0]]
        assert cell["ACell"](1).fit(*table()).selected_[0] == [0]
    finally:
        forget("notebook")


@bad_calls(
    ("no_such_file:own_lasso", "no module 'no_such_file'"),
    ("my_file:deep_laso", "my_file has no function 'deep_laso'"),
    ("my_file:OPTIONS", "my_file has no function 'OPTIONS'"),
    ("math:sqrt", "'math:sqrt' is not registered"),
    ("own_laso", "did you mean 'own_lasso'", "module:function"),
)
def test_names_that_lead_nowhere(bad: tuple, my_file: ModuleType) -> None:
    refuses(lambda: get_method(bad[0]), *bad[1:])
