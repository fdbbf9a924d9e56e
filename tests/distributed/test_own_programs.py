"""Every process keeps its compiled programs where process 0 does."""

from __future__ import annotations

import inspect
from types import SimpleNamespace

import jax
import pytest
from jax._src import compilation_cache, compiler

from fsjax.distributed import own_programs


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> list[tuple]:
    kept: list[tuple] = []
    monkeypatch.setattr(
        compilation_cache, "put_executable_and_time", lambda *args: kept.append(args)
    )
    monkeypatch.setattr(compiler, "_cache_write", compiler._cache_write)
    return kept


def test_programs_of_cpus_are_written(kept: list[tuple], monkeypatch: pytest.MonkeyPatch) -> None:
    theirs = inspect.signature(compiler._cache_write)
    own_programs.keep_own_programs()
    assert len(inspect.signature(compiler._cache_write).parameters) == len(theirs.parameters)
    cpu, gpu = SimpleNamespace(platform="cpu"), SimpleNamespace(platform="gpu")
    before = jax.config.jax_persistent_cache_min_compile_time_secs
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.5)
    try:
        compiler._cache_write("key", 2.0, "name", cpu, "program", [])
        compiler._cache_write("short", 0.2, "name", cpu, "program", [])
        compiler._cache_write("callbacks", 2.0, "name", cpu, "program", [print])
        # Of these processes have one name for all, which process 0 writes.
        compiler._cache_write("gpu", 2.0, "name", gpu, "program", [])
    finally:
        jax.config.update("jax_persistent_cache_min_compile_time_secs", before)
    assert kept == [("key", "name", "program", cpu, 2)]


def test_a_cache_that_cannot_be_written_ends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "full")

    monkeypatch.setattr(compilation_cache, "put_executable_and_time", full)
    own_programs._write("key", 2.0, "name", SimpleNamespace(platform="cpu"), "program", [])
