"""Functions that take the arguments of another function, or have a signature that is made.

Editors, type checkers and ``inspect`` see what such a function takes, where its own parameters are
``*args`` and ``**options``.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, ParamSpec, Protocol, TypeVar, cast

P = ParamSpec("P")
R = TypeVar("R")


class _Signed(Protocol):
    """A function with the attribute that ``inspect.signature`` goes by."""

    __signature__: inspect.Signature


def set_signature(function: Callable[..., Any], signature: inspect.Signature) -> None:
    """Sets what ``inspect.signature`` says of a function."""
    cast(_Signed, function).__signature__ = signature


def takes_arguments_of(
    other: Callable[P, Any],
) -> Callable[[Callable[..., R]], Callable[P, R]]:
    """Gives a function the arguments of the one to which it hands them on.

    The name, the documentation and the result are its own.
    """

    def decorate(function: Callable[..., R]) -> Callable[P, R]:
        result = inspect.signature(function).return_annotation
        functools.update_wrapper(function, other, assigned=())
        set_signature(function, inspect.signature(other).replace(return_annotation=result))
        return function

    return decorate
