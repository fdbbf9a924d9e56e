"""Compiled programs of the processes other than 0, kept on disk like those of process 0."""

from __future__ import annotations

import contextlib
from typing import Any

from jax._src import compilation_cache, compiler

from fsjax.environment.jax_settings import setting


def keep_own_programs() -> None:
    """Lets this process write to the compilation cache, where the processes' programs differ.

    JAX leaves that to process 0, whose programs it finds for process 0 only on CPUs: all others
    would compile theirs at every start. A name is written by one process, so none get in each
    other's way.
    """
    if hasattr(compiler, "_cache_write"):
        setattr(compiler, "_cache_write", _write)  # noqa: B010 (which types do not know)


def _write(
    key: str, seconds: float, name: str, backend: Any, executable: Any, callbacks: Any
) -> None:
    short = seconds < setting("jax_persistent_cache_min_compile_time_secs")
    if callbacks or short or backend.platform != "cpu":
        return
    # A full disk costs the next start some seconds, never this run.
    with contextlib.suppress(Exception):
        compilation_cache.put_executable_and_time(key, name, executable, backend, int(seconds))
