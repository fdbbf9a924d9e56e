"""The methods, each a function of its hyperparameters that returns a ``fsjax.Method``."""

from __future__ import annotations

from collections.abc import Callable

from fsjax.errors import ConfigError, nearest
from fsjax.method import Method
from fsjax.methods.cae import cae
from fsjax.methods.gjsd import gjsd
from fsjax.methods.ip_cae import ip_cae
from fsjax.methods.random_selection import random_selection

#: Every method by name. A new one is a file in this folder and a line here.
METHODS: dict[str, Callable[..., Method]] = {
    "cae": cae,
    "gjsd": gjsd,
    "ip_cae": ip_cae,
    "random_selection": random_selection,
}


def get_method(name: str) -> Callable[..., Method]:
    """The function that builds the method of this name.

    Raises:
      ConfigError: for an unknown name, with the nearest known one.
    """
    if name not in METHODS:
        raise ConfigError(f"unknown method {name!r}: {nearest(name, METHODS)}")
    return METHODS[name]


__all__ = ["METHODS", "cae", "get_method", "gjsd", "ip_cae", "random_selection"]
