"""Equal arguments give the same ``Method``, so that a second fit finds its compiled program."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from fsjax.errors import nearest
from fsjax.method import Method
from fsjax.methods.arguments import checked_arguments


def cached_method(build: Callable[..., Method]) -> Callable[..., Method]:
    """Caches a method builder by its arguments and records them in ``Method.settings``.

    Lists among the arguments become tuples, so that they can be compared. Types are checked here:
    the cache takes ``True`` for 1.
    """
    signature = inspect.signature(build)
    annotations = {name: str(one.annotation) for name, one in signature.parameters.items()}
    named = [name for name, one in signature.parameters.items() if one.kind is not one.VAR_KEYWORD]
    takes_more = len(named) < len(annotations)

    @functools.lru_cache
    def cached(settings: tuple[tuple[str, Any], ...]) -> Method:
        return build(**dict(settings))._replace(settings=settings)

    @functools.wraps(build)
    def wrapper(*args: Any, **kwargs: Any) -> Method:
        for name in () if takes_more else kwargs:
            if name not in named:
                raise TypeError(
                    f"fsjax.methods.{build.__name__} has no argument {name!r}: "
                    f"{nearest(name, named)}"
                )
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(
                f"fsjax.methods.{build.__name__}: {error}; give arguments by name, as in "
                f"{build.__name__}({named[-1]}=...)"
            ) from None
        bound.apply_defaults()
        arguments = checked_arguments(annotations, bound.arguments)
        arguments |= arguments.pop("options", {})
        return cached(tuple((name, _freeze(value)) for name, value in sorted(arguments.items())))

    return wrapper


def _freeze(value: Any) -> Any:
    return tuple(map(_freeze, value)) if isinstance(value, list | tuple) else value
