"""Settings of JAX under which the engine runs, whatever the user's code has set."""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import jax

from fsjax.errors import ConfigError

P = ParamSpec("P")
R = TypeVar("R")

#: The process in which the engine first ran.
_process: int | None = None


def setting(name: str) -> Any:
    """The value of a setting of JAX in this thread; ``jax.config`` declares no types for them."""
    return getattr(jax.config, name)


def own_settings(function: Callable[P, R]) -> Callable[P, R]:
    """Makes a function run with the engine's settings of JAX, in this thread only.

    - Single precision (no ``jax_enable_x64``): states, checkpoints and saved files are float32.
    - Compilation (no ``JAX_DISABLE_JIT``): the engine compiles its programs ahead of time.
    - JAX's defaults for rank promotion, type promotion and transfers between host and device:
      stricter settings are meant for the user's own code.
    """

    @functools.wraps(function)
    def inner(*args: P.args, **options: P.kwargs) -> R:
        with contextlib.ExitStack() as settings:
            settings.enter_context(jax.enable_x64(False))
            settings.enter_context(jax.disable_jit(False))
            settings.enter_context(jax.numpy_rank_promotion("allow"))
            settings.enter_context(jax.numpy_dtype_promotion("standard"))
            settings.enter_context(jax.transfer_guard("allow"))
            return function(*args, **options)

    return inner


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
