"""The methods: functions of their hyperparameters that return a ``fsjax.Method``.

Equal arguments return the same object, so that nothing is compiled twice. For all methods, a value
outside its range raises a ConfigError, and an unknown argument a TypeError.

Each file in this folder contains one method or one family of methods; code that several of them
share is in ``shared/``.
"""

from __future__ import annotations

import functools
import importlib.metadata
import pkgutil
from typing import NoReturn, cast

from fsjax.arguments import imported
from fsjax.errors import ConfigError, nearest
from fsjax.errors import unknown_attribute as _unknown_attribute
from fsjax.registry import METHODS, Builder, Registration

#: The entry point group for methods of other packages: ``name = package.module:builder``.
GROUP = "fsjax.methods"

for _module in pkgutil.iter_modules(__path__):
    if _module.name != "shared":
        importlib.import_module(f"{__name__}.{_module.name}")

# Last, because some modules have the same name as the function in them.
globals().update({_name: _build for _name, _build in METHODS.items()})


def get_method(name: str) -> Builder:
    """The builder of the method with this name.

    Args:
      name: a registered method, or ``module:function`` for a registered builder in another module,
        which is imported; the working directory is searched too.

    Raises:
      ConfigError: for an unknown name; the message names the nearest known one.

    Examples:
      >>> print(sorted(fsjax.methods.METHODS)[:3])
      >>> method = fsjax.methods.get_method("wast")(hidden=(8,))
    """
    if ":" in name:
        return _imported(name)
    if name not in METHODS:
        _load_entry_points()
    if name not in METHODS:
        raise ConfigError(
            f"unknown method {name!r}: {nearest(name, METHODS)} (give your own method as "
            "module:function)"
        )
    return METHODS[name]


def _imported(name: str) -> Builder:
    builder = imported("method", name)
    if not isinstance(getattr(builder, "registration", None), Registration):
        raise ConfigError(
            f"method {name!r} is not registered; decorate its builder with @fsjax.register(...)"
        )
    return cast(Builder, builder)


@functools.cache
def _load_entry_points() -> None:
    for point in importlib.metadata.entry_points(group=GROUP):
        point.load()


def __getattr__(name: str) -> NoReturn:
    raise _unknown_attribute(__name__, name, METHODS)


__all__ = ["METHODS", "get_method", *METHODS]  # noqa: PLE0604
