"""Functions among the settings of a run: the user's schedules, optimisers and losses.

Numbers and names can be printed and saved; functions cannot. Look here for how a function is named
in messages and results, how it is checked, and what replaces it in a loaded result.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import sys
from collections.abc import Callable
from typing import Any, NoReturn

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array

from fsjax.errors import ConfigError


@dataclasses.dataclass(frozen=True)
class Missing:
    """Placeholder in a loaded result for a function with which it was trained.

    Attributes:
      argument: the name of the argument.
      text: :func:`text_of` of the function.
    """

    argument: str
    text: str

    def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Raises ConfigError: a loaded result predicts and selects, but cannot be trained."""
        raise ConfigError(
            f"this result was trained with the function {self.text} as {self.argument}, and "
            "functions are not saved; to train again, build the method with "
            f"{self.argument}={self.text}"
        )

    def as_optimizer(self) -> optax.GradientTransformation:
        """A stateless optimiser whose first step raises ConfigError."""
        return optax.GradientTransformation(_no_state, self)


def _no_state(params: Any) -> tuple[()]:
    del params
    return ()


def is_function(value: Any) -> bool:
    """Whether a setting is a function, or an optimiser, which is a pair of functions."""
    return callable(value) or isinstance(value, optax.GradientTransformation)


def text_of(value: Any) -> str:
    """A setting as text that is the same in every process: a function's name, else ``repr``."""
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


def is_importable(function: Any) -> bool:
    """Whether another process finds a function, or a decorated one, by its module and name.

    It does not find functions of a notebook or ``__main__``, lambdas, and functions in functions.
    """
    module = getattr(function, "__module__", None)
    found = None if module == "__main__" else sys.modules.get(module or "")
    for name in getattr(function, "__qualname__", "").split("."):
        found = getattr(found, name, None)
    return found is not None and function in (found, getattr(found, "__wrapped__", None))


def check_hashable(name: str, value: Any) -> None:
    """Raises ConfigError for a callable that is not hashable, as the key of a program must be."""
    try:
        hash(value)
    except TypeError:
        raise ConfigError(
            f"{name} is a {type(value).__name__}, which is not hashable; give a function"
        ) from None


def check_optimizer(name: str, optimizer: Any) -> Any:
    """Checks an Optax transformation, or a function of the Spec that returns one; returns it.

    Raises:
      ConfigError: for functions such as ``optax.adam`` itself, which take a learning rate.
    """
    if isinstance(optimizer, optax.GradientTransformation):
        return optimizer
    check_hashable(name, optimizer)
    try:
        parameters = inspect.signature(optimizer).parameters
    except (TypeError, ValueError):  # compiled code has no signature
        return optimizer
    if "learning_rate" in parameters:
        raise ConfigError(
            f"{name} is the function {text_of(optimizer)}, which takes a learning rate; call it, "
            f"as in {name}=optax.adam(1e-3), or give a function of the Spec"
        )
    return optimizer


def check_schedule(name: str, schedule: Callable[[Array], Any]) -> Callable[[Array], Any]:
    """Checks a learning rate schedule, a function of the step, and returns it.

    Raises:
      ConfigError: if it fails, or returns anything but a real number.
    """
    if isinstance(schedule, Missing):
        return schedule
    check_hashable(name, schedule)
    advice = (
        "give an Optax schedule, a function of the step such as "
        "optax.cosine_decay_schedule(1e-2, 1000); if it depends on the length of the run, give the "
        "optimizer as a function of the Spec instead"
    )
    subject = f"{name} is the function {text_of(schedule)}, which"
    try:
        rate = jax.eval_shape(schedule, jax.ShapeDtypeStruct((), jnp.int32))
    except Exception as error:
        raise ConfigError(f"{subject} fails for a step ({error}); {advice}") from error
    is_array = hasattr(rate, "shape") and hasattr(rate, "dtype")
    if not is_array or rate.shape != () or not np.isrealobj(np.zeros((), rate.dtype)):
        raise ConfigError(f"{subject} does not return a number for a step; {advice}")
    return schedule
