"""Compiled programs on disk: what finds them, what does not, and that results stay the same."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from engine_helpers import STATIC
from jax.experimental import sparse

import fsjax
from fsjax.engine import program_files, programs
from fsjax.engine.program_files import path_of
from fsjax.estimators import ESTIMATORS
from fsjax.methods.wast import wast
from fsjax.registry import MethodStructure

#: The arguments of each trace of :func:`scaled`.
traces: list[float] = []


@programs.program(donate=(0,))
def scaled(tree: dict[str, jax.Array], *, by: float) -> tuple[jax.Array, dict[str, jax.Array]]:
    traces.append(by)
    return tree["x"] * by, {"sum": tree["x"].sum() + jnp.arange(0).sum()}


def run_anew(program: programs.Program, *values: float, by: float) -> object:
    """What a process that has no program yet computes."""
    programs.free()
    return program({"x": jnp.array(values)}, by=by)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty cache in use; functions of this module count as those of the library."""
    monkeypatch.setattr(program_files, "enabled", True)
    monkeypatch.setattr(program_files, "KNOWN", (*program_files.KNOWN, __name__))
    before = jax.config.jax_compilation_cache_dir
    jax.config.update("jax_compilation_cache_dir", str(tmp_path))
    traces.clear()
    yield tmp_path
    jax.config.update("jax_compilation_cache_dir", before)


def test_a_program_is_traced_once(folder: Path) -> None:
    for _ in range(2):
        found = run_anew(scaled, 0.0, 1.0, 2.0, by=2.0)
        chex.assert_trees_all_equal(found, (jnp.array([0.0, 2.0, 4.0]), {"sum": jnp.array(3.0)}))
    assert traces == [2.0]
    run_anew(scaled, 0.0, 1.0, 2.0, by=3.0)
    run_anew(scaled, 0.0, 1.0, by=2.0)
    assert traces == [2.0, 3.0, 2.0]


def of_other_code(tree: dict[str, jax.Array], *, by: float) -> tuple[jax.Array, object]:
    traces.append(by)
    return tree["x"] * by, {"sum": tree["x"].sum() + jnp.arange(0).sum()}


def test_other_code_of_the_same_program_compiles_nothing(folder: Path, monkeypatch) -> None:
    run_anew(scaled, 1.0, by=2.0)
    monkeypatch.setattr(program_files, "code", lambda: {"fsjax": "other"})
    monkeypatch.setattr(scaled, "function", of_other_code)
    monkeypatch.setattr(of_other_code, "__name__", "scaled")
    monkeypatch.setattr(jax.stages.Lowered, "compile", None)
    for _ in range(2):
        found = run_anew(scaled, 1.0, by=2.0)
        chex.assert_trees_all_equal(found, (jnp.array([2.0]), {"sum": jnp.array(1.0)}))
    assert traces == [2.0, 2.0]


@programs.program()
def of_one(tree: dict[str, jax.Array], *, name: str) -> jax.Array:
    return 2 * tree[name].sum()


def test_arrays_that_a_program_does_not_use_count_as_well(folder: Path) -> None:
    """JAX drops them, and lowers the same code whatever they are."""
    ones = jnp.ones(2)
    for name, unused in (
        ("a", 0 * ones),
        ("b", 0 * ones),
        ("a", jnp.ones(3)),
        ("a", jnp.ones(3, int)),
    ):
        for _ in range(2):
            programs.free()
            tree = {"a": unused, "b": unused} | {name: ones}
            assert of_one(tree, name=name) == 4.0


@pytest.mark.parametrize("kind", ["described", "executable"])
def test_a_damaged_file_is_written_anew(kind: str, folder: Path, monkeypatch) -> None:
    run_anew(scaled, 1.0, by=2.0)
    (path,) = folder.glob(f"*-{kind}")
    path.write_bytes(path.read_bytes()[:-1])
    chex.assert_trees_all_equal(run_anew(scaled, 2.0, by=2.0)[0], jnp.array([4.0]))
    monkeypatch.setattr(jax.stages.Lowered, "compile", None)
    run_anew(scaled, 2.0, by=2.0)
    assert traces == [2.0, 2.0]


@programs.program()
def in_a_loop(tree: dict[str, jax.Array], *, by: float) -> jax.Array:
    return jax.lax.fori_loop(0, 3, lambda _, x: jnp.sort(x[::-1] * by + jnp.cumsum(x)), tree["x"])


def test_what_jax_cache_holds_is_stored_whole(folder: Path, monkeypatch) -> None:
    """XLA loses functions of a program that is loaded from a cache and stored again."""
    found = []
    for enabled in (False, True, True):
        monkeypatch.setattr(program_files, "enabled", enabled)
        found.append(run_anew(in_a_loop, 3.0, 1.0, 2.0, by=2.0))
    np.testing.assert_array_equal(found, found[:1] * 3)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jax.stages.Lowered, "compile", None)
        run_anew(in_a_loop, 3.0, 1.0, 2.0, by=2.0)


def test_a_file_depends_on_settings_and_code(folder: Path, monkeypatch) -> None:
    first = path_of("name", 1, wast)
    assert first == path_of("name", 1, wast)
    others = {
        first,
        path_of("other", 1, wast),
        path_of("name", 2, wast),
        path_of("name", True, wast),
    }
    with jax.default_matmul_precision("bfloat16"):
        others.add(path_of("name", 1, wast))
    monkeypatch.setattr(program_files, "code", lambda: {"fsjax": "other"})
    others.add(path_of("name", 1, wast))
    assert len(others) == 6


def test_arrays_count_by_their_types_alone(folder: Path) -> None:
    zeros, ones = np.zeros(3, np.float32), np.ones(3, np.float32)
    assert path_of("name", arrays=zeros) == path_of("name", arrays=ones)
    assert path_of("name", arrays={"x": np.int32(1)}) == path_of("name", arrays={"x": np.int32(2)})
    others = [zeros, np.zeros(3, np.int32), np.zeros((3, 1), np.float32)]
    assert len({path_of("name", arrays=other) for other in others}) == 3


@pytest.mark.parametrize("value", [np.int64, np.float32, np.str_, lambda x: np.arange(3) == x])
def test_static_values_of_numpy_count_by_their_values(value, folder: Path) -> None:
    assert path_of("name", (value(1),)) == path_of("name", (value(1),)) is not None
    assert path_of("name", (value(1),)) != path_of("name", (value(2),))


def test_equal_values_of_other_types_have_their_own_programs(folder: Path) -> None:
    for by in (2, 2.0, np.int64(2)):
        scaled({"x": jnp.array([1])}, by=by)
    assert [type(by) for by in traces] == [int, float, np.int64]


class OfUser:
    """Stands for an object of which the code may change."""


@pytest.mark.parametrize("part", [lambda x: x, OfUser(), pytest.raises, np.sum, jax.jit(abs)])
def test_functions_and_types_of_the_user_have_no_file(part: object, folder, monkeypatch) -> None:
    monkeypatch.setattr(program_files, "KNOWN", ("fsjax", "optax", "builtins"))
    assert path_of("name", 1) is not None
    assert path_of("name", 1, (part,)) is None


def test_there_is_no_file_without_a_cache_or_if_turned_off(folder: Path, monkeypatch) -> None:
    monkeypatch.setattr(program_files, "enabled", False)
    assert path_of("name") is None
    monkeypatch.setattr(program_files, "enabled", True)
    for folder_name in (None, "gs://bucket/programs"):  # JAX writes to buckets as well.
        jax.config.update("jax_compilation_cache_dir", folder_name)
        assert path_of("name") is None


@pytest.mark.slow
def test_a_fit_in_another_process_traces_nothing(folder: Path, data, monkeypatch) -> None:
    def fitted() -> fsjax.FitResult:
        programs.free()
        fsjax.engine.method_checks._check_traced.cache_clear()
        return fsjax.fit(STATIC, data, num_features=3, num_epochs=2, batch_size=16)

    monkeypatch.setattr(program_files, "enabled", False)
    plain = fitted()
    monkeypatch.setattr(program_files, "enabled", True)
    written = fitted()
    monkeypatch.setattr(MethodStructure, "bind", None)
    loaded = fitted()
    for result in (written, loaded):
        chex.assert_trees_all_equal(result.states, plain.states)
        chex.assert_trees_all_equal(result.history, plain.history)


@programs.program()
def calls_python(tree: dict[str, jax.Array], *, by: float) -> jax.Array:
    return jax.pure_callback(lambda x: np.asarray(x) * by, tree["x"], tree["x"])


def test_a_program_that_calls_python_is_not_stored(folder: Path) -> None:
    for _ in range(2):
        chex.assert_trees_all_equal(run_anew(calls_python, 1.0, by=2.0), jnp.array([2.0]))
    assert not list(folder.glob("*-executable"))


@programs.program()
def of_sparse(tree: dict[str, jax.Array], *, by: float) -> jax.Array:
    rows = sparse.BCSR((tree["x"], jnp.array([0, 2, 1]), jnp.array([0, 2, 3])), shape=(2, 3))
    return by * (rows @ jnp.ones((3, 4)))


def test_kernels_of_other_libraries_are_stored_too(folder: Path) -> None:
    for _ in range(2):
        found = run_anew(of_sparse, 1.0, 2.0, 3.0, by=2.0)
        np.testing.assert_array_equal(found, [[6.0] * 4] * 2)
    assert len(list(folder.glob("*-executable"))) == 1


@pytest.mark.long
@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_estimator_fits_a_wide_table(name: str, folder: Path) -> None:
    X = np.random.default_rng(0).normal(size=(60, 2000)).astype(np.float32)
    y = (X[:, :3].sum(axis=1) > 0).astype(int)
    estimator = ESTIMATORS[name](10, random_state=0)
    if "num_epochs" in estimator.get_params():
        estimator.set_params(num_epochs=2)
    assert estimator.fit(X, y).get_support().sum() == 10
