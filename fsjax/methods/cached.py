"""Equal arguments give the same ``Method``, so that a second fit finds its compiled program."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from fsjax.method import Method


def cached_method(build: Callable[..., Method]) -> Callable[..., Method]:
    """Caches a method builder by its arguments and records them in ``Method.settings``.

    Lists among the arguments become tuples, so that they can be compared.
    """
    signature = inspect.signature(build)

    @functools.lru_cache
    def cached(settings: tuple[tuple[str, Any], ...]) -> Method:
        return build(**dict(settings))._replace(settings=settings)

    @functools.wraps(build)
    def wrapper(*args: Any, **kwargs: Any) -> Method:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        arguments = dict(bound.arguments)
        arguments |= arguments.pop("options", {})
        return cached(tuple((name, _freeze(value)) for name, value in sorted(arguments.items())))

    return wrapper


def _freeze(value: Any) -> Any:
    return tuple(map(_freeze, value)) if isinstance(value, list | tuple) else value
