"""Settings of JAX under which the engine runs, whatever the user's code has set."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import Any

import jax

from fsjax.errors import ConfigError

#: The process in which the engine first ran.
_process: int | None = None


def setting(name: str) -> Any:
    """The value of a setting of JAX in this thread; ``jax.config`` declares no types for them."""
    return getattr(jax.config, name)


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
