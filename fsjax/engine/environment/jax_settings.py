"""Settings of JAX under which the engine runs, whatever the user has set; its processor."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import platform
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax

from fsjax.errors import ConfigError

#: The process in which the engine first ran.
_process: int | None = None


def setting(name: str) -> Any:
    """The value of a setting of JAX in this thread; ``jax.config`` declares no types for them."""
    return getattr(jax.config, name)


@functools.cache
def processor_type() -> str:
    """A digest of the type of processor: machines that share a home may not share programs."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = [platform.processor()]
    cpu_lines = [line for line in lines if line.startswith(("model name", "flags", "Features"))]
    known = [platform.machine(), *sorted(set(cpu_lines or lines))]
    return hashlib.sha256("\n".join(known).encode()).hexdigest()[:16]


@contextlib.contextmanager
def own_settings() -> Iterator[None]:
    """A context, or decorator, with the engine's settings of JAX, in this thread only.

    - Single precision (no ``jax_enable_x64``): states, checkpoints and saved files are float32.
    - Compilation (no ``JAX_DISABLE_JIT``): the engine compiles its programs ahead of time.
    - JAX's defaults for rank promotion, type promotion and transfers between host and device:
      stricter settings are meant for the user's own code.
    """
    with (
        jax.enable_x64(False),
        jax.disable_jit(False),
        jax.numpy_rank_promotion("allow"),
        jax.numpy_dtype_promotion("standard"),
        jax.transfer_guard("allow"),
    ):
        yield


def check_process() -> None:
    """Raises ConfigError in a process that was forked from one in which the engine ran.

    JAX would hang there, because a fork does not copy the threads that run its programs.
    """
    global _process
    if _process is None:
        _process = os.getpid()
    elif _process != os.getpid():
        raise ConfigError(
            "this process was forked after JAX had started, so JAX would hang; start processes "
            "with multiprocessing.get_context('spawn') or joblib"
        )
