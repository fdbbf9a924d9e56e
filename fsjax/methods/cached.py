"""Equal arguments give the same ``Method``, so that a second fit finds its compiled program."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from fsjax.method import Method


def cached_method(build: Callable[..., Method]) -> Callable[..., Method]:
    """Caches a method builder by its arguments; lists among them become tuples."""
    cached = functools.lru_cache(build)

    def freeze(value: Any) -> Any:
        return tuple(map(freeze, value)) if isinstance(value, list | tuple) else value

    @functools.wraps(build)
    def wrapper(*args: Any, **kwargs: Any) -> Method:
        return cached(*map(freeze, args), **{name: freeze(v) for name, v in kwargs.items()})

    return wrapper
