"""Results in files: a round trip, also between processes, and files that are refused.

Covers ``fsjax.storage.results.packing``, ``fsjax.storage.results.unpacking``.
"""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import chex
import jax
import numpy as np
import pytest
from bad_calls import bad_calls, refuses
from marks import slow_ids

import fsjax
from fsjax.errors import ConfigError, DataError
from fsjax.methods import ip_cae, stg, wast
from fsjax.storage.npz import read, write
from fsjax.storage.results import load, pack, save, unpack

#: Methods are built when they are trained, because the registry keeps only the latest ones.
METHODS = {
    # A snapshot of the best epoch; tuples and None among the settings.
    "ip_cae": (lambda: ip_cae(3, hidden=(4,), embedding_dim=5, dropout=0.1), {}),
    # Masks, counted connections, no labels, a split for each seed.
    "wast": (lambda: wast(hidden=(4,), density=0.5), {"num_features": 3, "split_per_seed": True}),
    # Gates, a penalty and a threshold that are searched, the last epoch; further options.
    "stg": (lambda: stg(3, hidden=(4,), batch_norm=True), {}),
}


@pytest.fixture(scope="module")
def x() -> np.ndarray:
    x = np.random.default_rng(0).normal(size=(60, 8)).astype(np.float32)
    x[:, 5] = 1.0
    return x


class MadeWhenAsked(dict):
    """Values that are made when they are first asked for."""

    def __init__(self, make: Callable[[str], Any]) -> None:
        super().__init__()
        self.make = make

    def __missing__(self, name: str) -> Any:
        return self.setdefault(name, self.make(name))


@pytest.fixture(scope="module")
def results(x: np.ndarray) -> dict[str, fsjax.FitResult]:
    y = (x[:, 2] > 0).astype(int)

    def fitted(name: str) -> fsjax.FitResult:
        build, options = METHODS[name]
        return fsjax.fit(build(), (x, y), seeds=(3, 1), num_epochs=2, batch_size=16, **options)

    return MadeWhenAsked(fitted)


@pytest.fixture(scope="module")
def saved(results: dict[str, fsjax.FitResult], tmp_path_factory: Any) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("saved")

    def path(name: str) -> Path:
        save(results[name], folder / name)
        return folder / name

    return MadeWhenAsked(path)


@pytest.fixture
def packed(results: dict[str, fsjax.FitResult]) -> tuple[dict, dict]:
    """A header and arrays, which tests may change."""
    header, arrays = pack(results["wast"])
    return json.loads(json.dumps(header)), dict(arrays)


@pytest.mark.slow
def test_what_follows_from_the_rest_is_not_stored(packed: tuple[dict, dict]) -> None:
    header, arrays = packed
    derived = "task selected best_epoch connection_epochs input_connections".split()
    assert not {*derived} & {*header, *arrays}


def assert_same(tree: Any, other: Any) -> None:
    """Equal values, types and structure, bit for bit."""
    assert jax.tree.structure(tree) == jax.tree.structure(other)
    chex.assert_trees_all_equal(tree, other, strict=True)


@slow_ids("stg")
@pytest.mark.parametrize("name", METHODS)
def test_all_comes_back_bit_for_bit(
    name: str, results: dict[str, fsjax.FitResult], saved: dict[str, Path], x: np.ndarray
) -> None:
    result, loaded = results[name], load(saved[name])
    for field in dataclasses.fields(fsjax.FitResult):
        if field.name not in ("method", "states"):
            assert_same(getattr(result, field.name), getattr(loaded, field.name))
    assert loaded.method is result.method
    assert_same(result.states, loaded.states)
    np.testing.assert_array_equal(result.predict(x), loaded.predict(x))
    np.testing.assert_array_equal(result.select(5), loaded.select(5))
    np.testing.assert_array_equal(result.transform(x, seed=1), loaded.transform(x, seed=1))
    np.testing.assert_array_equal(result.selection_frequency, loaded.selection_frequency)


def test_shared_splits_and_scalers_are_stored_once(results: dict[str, fsjax.FitResult]) -> None:
    for name, number in (("ip_cae", 1), ("wast", 2)):
        header, arrays = pack(results[name])
        assert len([key for key in arrays if key.endswith("/train")]) == number
        loaded = unpack(header, arrays)
        assert len({id(split) for split in loaded.splits}) == number


@pytest.mark.slow
def test_another_process_predicts_the_same(
    results: dict[str, fsjax.FitResult], saved: dict[str, Path], x: np.ndarray, tmp_path: Path
) -> None:
    np.save(tmp_path / "x.npy", x)
    script = """
import sys
import numpy as np
from fsjax.storage.results import load, save
path, folder = sys.argv[1:]
result = load(path)
np.save(folder + "/outputs.npy", result.predict(np.load(folder + "/x.npy")))
save(result, folder + "/again")
assert "matplotlib" not in sys.modules
"""
    command = [sys.executable, "-c", script, str(saved["ip_cae"]), str(tmp_path)]
    subprocess.run(command, check=True, cwd=Path(__file__).parents[1], timeout=300)
    outputs = np.load(tmp_path / "outputs.npy")
    np.testing.assert_array_equal(outputs, results["ip_cae"].predict(x))
    # The other process built the method again, and its file is equal.
    np.testing.assert_array_equal(load(tmp_path / "again").predict(x), outputs)


def test_the_path_is_taken_as_given(results: dict[str, fsjax.FitResult], tmp_path: Path) -> None:
    path = tmp_path / "new" / "result.v1"
    path.parent.mkdir()
    path.write_text("older")
    save(results["ip_cae"], str(path))
    assert [file.name for file in path.parent.iterdir()] == ["result.v1"]
    assert load(str(path)).seeds == (3, 1)


def test_numpy_numbers_are_settings(results: dict[str, fsjax.FitResult]) -> None:
    method = wast(hidden=[np.int64(4)], density=np.float32(0.5))
    header, _ = pack(dataclasses.replace(results["wast"], method=method))
    assert header["method"]["settings"]["hidden"] == [4]
    assert json.loads(json.dumps(header)) == header


@bad_calls(
    ({"name": "mine"}, "'mine' is not registered"),
    ({"name": "stg"}, "'stg' was changed after it was built"),
    ({"settings": (("hidden", (5,)),)}, "'wast' was changed after it was built"),
    ({"select": lambda state: None}, "'wast' was changed after it was built"),
    ({"after_step": lambda state, *_: state}, "'wast' was changed after it was built"),
    ({"keep": "auc"}, "'wast' was changed after it was built"),
)
def test_a_method_that_no_name_and_settings_give_is_not_saved(
    bad: tuple, results: dict[str, fsjax.FitResult], tmp_path: Path
) -> None:
    changes, message = bad
    result = results["wast"]
    method, about = result.method, result.method.about
    fields = {name: value for name, value in changes.items() if name in about._fields}
    functions = {name: value for name, value in changes.items() if name not in fields}
    method = method._replace(about=about._replace(**fields) if fields else about, **functions)
    changed = dataclasses.replace(result, method=method)
    refuses(lambda: save(changed, tmp_path / "result.npz"), message)
    refuses(lambda: save({}, tmp_path / "a"), "takes the result of fsjax.fit, not dict")
    assert not list(tmp_path.iterdir())


def test_states_of_another_method_are_not_saved(results: dict[str, fsjax.FitResult]) -> None:
    changed = dataclasses.replace(results["wast"], method=wast(hidden=(5,)))
    with pytest.raises(ConfigError, match="do not fit its method: .*layer_0.* expected"):
        pack(changed)


def network(header: dict) -> dict:
    return header["method"]["settings"]


@bad_calls(
    (lambda h, a: h.update(kind="estimator"), "holds 'estimator', not a result"),
    (lambda h, a: h["spec"].update(num_outputs=3), "states/", " shape ", " expected"),
    (lambda h, a: h["method"].update(name="mine"), "'mine' is not registered here; import 'fs"),
    (lambda h, a: network(h).update(colour=1), "cannot be built again: ", "colour"),
    (lambda h, a: network(h).update(hidden={}), "cannot be built again"),
    (lambda h, a: network(h).update(hidden=[5]), "expected (2, 5)"),
    (lambda h, a: h["spec"].update(colour=1), "cannot be built again: ", "colour"),
    (lambda h, a: h["spec"].update(task="mine"), "the task 'mine' is not registered here"),
    (lambda h, a: a.pop("states/key"), "'states/key' is missing"),
    (lambda h, a: a.update({"states/params/bias": a["scores"]}), "no 'states/params/bias'"),
    (lambda h, a: a.update({"states/step": np.zeros(2)}), "'states/step' has the type float64"),
)
def test_what_is_not_of_a_method_of_this_package_is_refused(bad: tuple, packed: tuple) -> None:
    bad[0](*packed)
    refuses(lambda: unpack(*packed), *bad[1:])


def test_a_file_imports_nothing(
    packed: tuple[dict, dict], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine_alone.py").write_text("raise SystemExit('imported')")
    monkeypatch.syspath_prepend(tmp_path)
    header, arrays = packed
    header["method"].update(name="mine_alone:build", origin="mine_alone:build")
    with pytest.raises(DataError, match="import 'mine_alone' first"):
        unpack(header, arrays)


def test_a_file_may_hold_a_result_beside_other_things(
    packed: tuple[dict, dict], tmp_path: Path
) -> None:
    header, arrays = packed
    path = tmp_path / "estimator"
    write(
        path, {"kind": "estimator", "result": header}, {**arrays, "names": np.array(["tr\u00e9s"])}
    )
    header_read, stored = read(path)
    assert header_read["kind"] == "estimator" and header_read["fsjax"] == fsjax.__version__
    assert stored["names"].tolist() == ["tr\u00e9s"]
    assert unpack(header_read["result"], stored).dataset == header["dataset"]
    refuses(lambda: load(path), "estimator: it holds 'estimator'")
