"""What registered builders share, those of methods and those of tasks: arguments, and import."""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from fsjax.arguments import Kind, checked
from fsjax.errors import ConfigError, nearest


def checked_arguments(
    label: str,
    parameters: Mapping[str, inspect.Parameter],
    kinds: Mapping[str, Kind],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
) -> dict[str, Any]:
    """The values of all arguments of a builder, defaults among them, checked.

    Args:
      label: what messages call the builder, such as ``fsjax.methods.stg``.
      parameters: its parameters by name.
      kinds: what their annotations say, by name.
      args, kwargs: the call.

    Raises:
      TypeError: for arguments that the builder does not have, or lacks.
      ConfigError: for a value of another type or out of its range.
    """
    for name in kwargs:
        if name not in parameters:
            raise TypeError(f"{label} has no argument {name!r}: {nearest(name, parameters)}")
    try:
        bound = inspect.Signature(list(parameters.values())).bind(*args, **kwargs)
    except TypeError as error:
        short, last = label.rpartition(".")[2], next(reversed(list(parameters)), None)
        advice = f"; give arguments by name, as in {short}({last}=...)" if last else ""
        raise TypeError(f"{label}: {error}{advice}") from None
    bound.apply_defaults()
    return {name: checked(name, value, kinds[name]) for name, value in bound.arguments.items()}


def imported(what: str, name: str) -> Callable[..., Any]:
    """The function ``module:function``; modules are looked for in the working directory as well.

    Args:
      what: what messages call it, ``method`` or ``task``.
      name: module and function.

    Raises:
      ConfigError: if there is no such module or function.
    """
    module, _, function = name.partition(":")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        return getattr(importlib.import_module(module), function)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise
        raise ConfigError(f"{what} {name!r}: there is no module {error.name!r}") from None
    except AttributeError:
        raise ConfigError(f"{what} {name!r}: {module} has no function {function!r}") from None
