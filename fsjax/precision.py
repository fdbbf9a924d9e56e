"""The engine works in single precision, also where the user's own code has JAX in double."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

import jax

P = ParamSpec("P")
R = TypeVar("R")


def single(function: Callable[P, R]) -> Callable[P, R]:
    """The function with 64-bit types of JAX off (``jax_enable_x64``), in this thread, meanwhile.

    States, checkpoints and saved files have the types of single precision: mixed ones would be
    another run.
    """

    @functools.wraps(function)
    def inner(*args: P.args, **options: P.kwargs) -> R:
        with jax.enable_x64(False):
            return function(*args, **options)

    return inner
