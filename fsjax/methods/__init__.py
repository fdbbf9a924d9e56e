"""The methods: functions of their hyperparameters that return a ``fsjax.Method``.

Equal arguments return the same object, so that nothing is compiled twice. For all methods, a value
outside its range raises a ConfigError, and an unknown argument a TypeError.

Each file in this folder contains one method or one family of methods; code that several of them
share is in ``shared/``.
"""

from __future__ import annotations

import importlib
import pkgutil
from typing import NoReturn

from fsjax.errors import unknown_attribute as _unknown_attribute
from fsjax.registry import METHODS, get_method

for _module in pkgutil.iter_modules(__path__):
    if _module.name != "shared":
        importlib.import_module(f"{__name__}.{_module.name}")

# Last, because some modules have the same name as the function in them.
globals().update({_name: _build for _name, _build in METHODS.items()})


def __getattr__(name: str) -> NoReturn:
    raise _unknown_attribute(__name__, name, METHODS)


__all__ = ["METHODS", "get_method", *METHODS]  # noqa: PLE0604
