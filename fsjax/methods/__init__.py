"""The methods, each a function of its hyperparameters that returns a ``fsjax.Method``.

Equal arguments give the same object, so that nothing is compiled twice. A value outside its range
is a ConfigError, an unknown argument a TypeError.

Every file of this folder is a method or a family of them; what several share is in ``shared/``.
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

# After their modules, of which some have the name of their function.
globals().update({_name: _build for _name, _build in METHODS.items()})


def __getattr__(name: str) -> NoReturn:
    raise _unknown_attribute(__name__, name, METHODS)


__all__ = ["METHODS", "get_method", *METHODS]  # noqa: PLE0604
