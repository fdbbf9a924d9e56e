"""Traced programs on disk: what finds them, what does not, and that results stay the same."""

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
from fsjax.engine.program_files import path_of, traced
from fsjax.estimators import ESTIMATORS
from fsjax.methods.wast import wast
from fsjax.registry import MethodStructure

#: The arguments of each trace of :func:`scaled`.
traces: list[float] = []


def scaled(tree: dict[str, jax.Array], *, by: float) -> tuple[jax.Array, dict[str, jax.Array]]:
    traces.append(by)
    return tree["x"] * by, {"sum": tree["x"].sum() + jnp.arange(0).sum()}


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
    tree = {"x": jnp.arange(3.0)}
    expected = scaled(tree, by=2.0)
    traces.clear()
    for _ in range(2):
        chex.assert_trees_all_equal(jax.jit(traced(scaled, (tree,), {"by": 2.0}))(tree), expected)
    assert traces == [2.0]
    traced(scaled, (tree,), {"by": 3.0})
    traced(scaled, ({"x": jnp.arange(4.0)},), {"by": 2.0})
    assert traces == [2.0, 3.0, 2.0]


def test_a_damaged_file_is_written_anew(folder: Path) -> None:
    tree = {"x": jnp.arange(3.0)}
    traced(scaled, (tree,), {"by": 2.0})
    (path,) = folder.glob("scaled-*-traced")
    path.write_bytes(path.read_bytes()[:-1])
    loaded = jax.jit(traced(scaled, (tree,), {"by": 2.0}))
    np.testing.assert_array_equal(loaded(tree)[0], [0.0, 2.0, 4.0])
    assert traces == [2.0, 2.0]


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
    assert path_of("name", np.zeros(3, np.float32)) == path_of("name", np.ones(3, np.float32))
    others = [np.zeros(3, np.float32), np.zeros(3, np.int32), np.zeros((3, 1), np.float32)]
    assert len({path_of("name", other) for other in others}) == 3


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
    jax.config.update("jax_compilation_cache_dir", None)
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


def of_sparse(tree: dict[str, jax.Array], *, by: float) -> jax.Array:
    """A product whose kernel JAX does not export, as it may change with the version."""
    rows = sparse.BCSR((tree["x"], jnp.array([0, 2, 1]), jnp.array([0, 2, 3])), shape=(2, 3))
    return by * (rows @ jnp.ones((3, 4)))


def test_what_cannot_be_stored_runs_as_it_is(folder: Path) -> None:
    tree = {"x": jnp.arange(1.0, 4.0)}
    program = jax.jit(traced(of_sparse, (tree,), {"by": 2.0}))
    np.testing.assert_array_equal(program(tree), [[6.0] * 4] * 2)
    assert not list(folder.glob("of_sparse-*"))
    with pytest.raises(ValueError, match="Incompatible shapes"):
        jax.jit(traced(of_sparse, ({"x": jnp.ones(3)},), {"by": jnp.ones(3)}))({"x": jnp.ones(3)})


@pytest.mark.long
@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_estimator_fits_a_wide_table(name: str, folder: Path) -> None:
    X = np.random.default_rng(0).normal(size=(60, 2000)).astype(np.float32)
    y = (X[:, :3].sum(axis=1) > 0).astype(int)
    estimator = ESTIMATORS[name](10, random_state=0)
    if "num_epochs" in estimator.get_params():
        estimator.set_params(num_epochs=2)
    assert estimator.fit(X, y).get_support().sum() == 10
