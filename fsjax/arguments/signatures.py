"""Signatures of functions whose own parameters are only ``*args`` and ``**options``.

Editors, type checkers and ``inspect`` then see which arguments such a function accepts.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, ParamSpec, Protocol, TypeVar, cast

P = ParamSpec("P")
R = TypeVar("R")


class _Signed(Protocol):
    """A function with the attribute that ``inspect.signature`` reads."""

    __signature__: inspect.Signature


def set_signature(function: Callable[..., Any], signature: inspect.Signature) -> None:
    """Sets the signature that ``inspect.signature`` returns for a function."""
    cast(_Signed, function).__signature__ = signature


def takes_arguments_of(
    other: Callable[P, Any],
) -> Callable[[Callable[..., R]], Callable[P, R]]:
    """Gives a function the signature of the function to which it passes its arguments.

    Its name, docstring and return type stay its own.
    """

    def decorate(function: Callable[..., R]) -> Callable[P, R]:
        result = inspect.signature(function).return_annotation
        functools.update_wrapper(function, other, assigned=())
        set_signature(function, inspect.signature(other).replace(return_annotation=result))
        return function

    return decorate
