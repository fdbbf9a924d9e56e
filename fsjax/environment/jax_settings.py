"""Settings of JAX that the engine has for itself, whatever those of the user's own code are."""

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
    """The value of a setting of JAX in this thread; ``jax.config`` has no types for them."""
    return getattr(jax.config, name)


def own_settings(function: Callable[P, R]) -> Callable[P, R]:
    """The function with the engine's settings of JAX, in this thread, meanwhile.

    - Single precision (not ``jax_enable_x64``): states, checkpoints and saved files have its types,
      and mixed ones would be another run.
    - Compilation (not ``JAX_DISABLE_JIT``): programs are compiled before they run, for many epochs.
    - Promotion of ranks and types, and transfers between host and device, as JAX has them by
      default: what raises elsewhere is meant for the user's own code.
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
    """ConfigError in a process that was forked from one in which the engine ran.

    JAX hangs there: the threads that run its programs are not copied.
    """
    global _process
    if _process is None:
        _process = os.getpid()
    elif _process != os.getpid():
        raise ConfigError(
            "this process was forked after JAX had started, so that JAX would hang here; start "
            "processes by multiprocessing.get_context('spawn'), or by joblib"
        )
