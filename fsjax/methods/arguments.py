"""Arguments of methods, checked by their annotations before anything is built with them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from fsjax.errors import ConfigError, check_flag, check_whole, is_number

#: Annotations of what :func:`widths` checks.
_WIDTHS = ("Sequence[int]", "tuple[int, ...]")


def checked_arguments(annotations: Mapping[str, str], given: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments in plain Python types; their ranges are left to the methods.

    Args:
      annotations: by name, as text, such as ``float | None``. Names without one are not checked.
      given: values by name.

    Raises:
      ConfigError: naming the first argument of another type.
    """
    return {name: _checked(name, value, annotations.get(name, "")) for name, value in given.items()}


def _checked(name: str, value: Any, annotation: str) -> Any:
    kind = annotation.removesuffix(" | None")
    if isinstance(value, np.generic) or (isinstance(value, np.ndarray) and value.ndim == 0):
        value = value.item()
    if value is None and kind != annotation:
        return None
    if kind == "bool":
        return check_flag(name, value)
    if kind == "float":
        return _number(name, value, or_none=kind != annotation)
    if kind in _WIDTHS:
        return widths(name, value)
    return value


def _number(name: str, value: Any, or_none: bool) -> Any:
    if not is_number(value) or not math.isfinite(value):
        also = ", or None" if or_none else ""
        raise ConfigError(f"{name}={value!r}; choose a finite number{also}")
    return value


def widths(name: str, value: Any) -> tuple[int, ...]:
    """Numbers of neurons as a tuple.

    Raises:
      ConfigError: if these are no whole numbers from 1.
    """
    if not isinstance(value, list | tuple | np.ndarray):
        raise ConfigError(f"{name}={value!r}; give a tuple of widths, such as (64, 20)")
    return tuple(check_whole(f"a width of {name}", width) for width in value)
