"""Functions among the settings of a run: schedules, optimisers and losses of the user's own.

Other settings are numbers and names. A function has no text that would tell it from another one,
and no file holds it: look here for what it is called, and for what stands in its place in a result
that was loaded.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any, NoReturn

import optax

from fsjax.errors import ConfigError


@dataclasses.dataclass(frozen=True)
class Missing:
    """Stands for a function with which a saved result was trained.

    Attributes:
      argument: what the function was given as.
      text: what :func:`text_of` says of it.
      sha256: what :func:`fsjax.engine.fingerprint.digest` says of it.
    """

    argument: str
    text: str
    sha256: str

    def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Raises ConfigError: what was loaded predicts and selects, but does not train."""
        raise ConfigError(
            f"{self.argument} was {self.text} where this result was trained, and files hold no "
            f"functions; to train, build the method again and give {self.argument} anew"
        )

    def as_optimizer(self) -> optax.GradientTransformation:
        """An optimiser without a state whose first step raises the ConfigError."""
        return optax.GradientTransformation(_no_state, self)


def _no_state(params: Any) -> tuple[()]:
    del params
    return ()


def is_function(value: Any) -> bool:
    """Whether a setting is a function, or an optimiser, which is a pair of them."""
    return callable(value) or isinstance(value, optax.GradientTransformation)


def text_of(value: Any) -> str:
    """A setting in text that is the same in every process: ``repr``, of functions their name."""
    if not is_function(value):
        return repr(value)
    if isinstance(value, Missing):
        return value.text
    if isinstance(value, optax.GradientTransformation):
        return text_of(value.update)
    if isinstance(value, functools.partial):
        return text_of(value.func)
    named = value if hasattr(value, "__qualname__") else type(value)
    return f"{named.__module__}.{named.__qualname__}"


def check_hashable(name: str, value: Any) -> None:
    """ConfigError for a callable object that cannot be a part of a program's key."""
    try:
        hash(value)
    except TypeError:
        raise ConfigError(
            f"{name} is a {type(value).__name__}, which is not hashable; give a function"
        ) from None
