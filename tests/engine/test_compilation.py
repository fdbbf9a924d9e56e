"""The compilation cache on disk: its folder, its limit, and how to disable it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import jax
import pytest

import fsjax
from fsjax.engine import compilation
from fsjax.errors import ConfigError

#: The settings of JAX that the cache changes.
NAMES = (
    "jax_compilation_cache_dir",
    "jax_persistent_cache_min_compile_time_secs",
    "jax_persistent_cache_min_entry_size_bytes",
    "jax_compilation_cache_max_size",
)


@pytest.fixture(autouse=True)
def undecided(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The state of a fresh process, in which no cache was chosen."""
    before = {name: getattr(jax.config, name) for name in NAMES}
    monkeypatch.setattr(compilation, "_decided", False)
    jax.config.update("jax_compilation_cache_dir", None)
    yield
    for name, value in before.items():
        jax.config.update(name, value)
    compilation.compilation_cache.reset_cache()


def folder() -> str | None:
    return jax.config.jax_compilation_cache_dir


def test_programs_are_kept_by_default(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("FSJAX_CACHE", str(tmp_path))
    compilation.cache_by_default()
    assert Path(folder()).parent == tmp_path / "xla" and Path(folder()).is_dir()
    assert jax.config.jax_compilation_cache_max_size == -1
    assert jax.config.jax_persistent_cache_min_compile_time_secs == 0.0


def test_the_environment_switches_it_off(monkeypatch) -> None:
    monkeypatch.setenv("FSJAX_CACHE", "off")
    compilation.cache_by_default()
    assert folder() is None
    assert fsjax.use_compilation_cache() is None and folder() is None


def test_what_the_user_has_set_stays(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("FSJAX_CACHE", str(tmp_path / "ours"))
    jax.config.update("jax_compilation_cache_dir", str(tmp_path / "theirs"))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 7.0)
    compilation.cache_by_default()
    assert folder() == str(tmp_path / "theirs")
    assert jax.config.jax_persistent_cache_min_compile_time_secs == 7.0


def test_what_was_chosen_stays(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("FSJAX_CACHE", str(tmp_path / "default"))
    assert fsjax.use_compilation_cache(tmp_path / "own") == tmp_path / "own"
    compilation.cache_by_default()
    assert folder() == str(tmp_path / "own")
    assert fsjax.use_compilation_cache(on=False) is None
    compilation.cache_by_default()
    assert folder() is None


def test_a_folder_that_cannot_be_written_to(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("FSJAX_CACHE", str(tmp_path / "file"))
    compilation.cache_by_default()
    assert folder() is None
    with pytest.raises(ConfigError, match="cannot write to .*give another folder"):
        fsjax.use_compilation_cache(tmp_path / "file" / "below")


def test_the_oldest_programs_go(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(compilation, "MAX_BYTES", 1000)
    for number in range(8):
        entry = tmp_path / f"program {number}"
        entry.write_bytes(bytes(120))
        os.utime(entry, (number, number))
    fsjax.use_compilation_cache(tmp_path)
    assert len(list(tmp_path.iterdir())) == 8
    (tmp_path / "program 8").write_bytes(bytes(120))
    fsjax.use_compilation_cache(tmp_path)
    # 1,080 bytes exceed the limit; 480 are at most half of it.
    assert sorted(one.name[-1] for one in tmp_path.iterdir()) == ["5", "6", "7", "8"]


CODE = """
import sys
import jax, numpy as np, optax
jax.numpy.ones(3) + 1  # before there is a cache
from fsjax.estimators import WAST
events = []
jax.monitoring.register_event_listener(lambda name, **_: events.append(name))
jax.monitoring.register_event_duration_secs_listener(lambda name, *_, **__: events.append(name))
x = np.random.default_rng(0).normal(size=(40, 6))
own = {"optimizer": lambda spec: optax.sgd(0.1)} if sys.argv[1] == "own" else {}
WAST(2, num_epochs=1, hidden=(4,), **own).fit(x, x[:, 0] > 0)
for ending in ("backend_compile_duration", "cache_hits"):
    print(sum(name.endswith(ending) for name in events))
"""


@pytest.mark.slow
@pytest.mark.parametrize("functions", ["of the library", "own"])
def test_a_second_process_compiles_nothing(functions: str, tmp_path: Path) -> None:
    """JAX asks its cache for what it traced anew, and counts a program of the cache as compiled."""

    def counts() -> list[int]:
        environment = os.environ | {"FSJAX_CACHE": str(tmp_path)}
        command = [sys.executable, "-W", "error", "-c", CODE, functions]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        return [int(word) for word in done.stdout.split()[-2:]]

    compiled, hits = counts()
    assert compiled >= 3 and hits == 0
    compiled, hits = counts()
    assert compiled == hits
    assert hits == 0 if functions == "of the library" else hits >= 3
