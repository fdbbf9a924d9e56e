"""Functions among the settings of a run: schedules, optimisers and losses of the user's own.

Other settings are numbers and names. A function has no text that would tell it from another one,
and no file holds it: look here for what it is called, and for what stands in its place in a result
that was loaded.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
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


def check_optimizer(name: str, optimizer: Any) -> Any:
    """An Optax transformation, or a function of the Spec that gives one, as it is.

    Raises:
      ConfigError: for functions such as ``optax.adam`` itself, which take a learning rate.
    """
    if isinstance(optimizer, optax.GradientTransformation):
        return optimizer
    check_hashable(name, optimizer)
    try:
        parameters = inspect.signature(optimizer).parameters
    except (TypeError, ValueError):  # of compiled code
        return optimizer
    if "learning_rate" in parameters:
        raise ConfigError(
            f"{name} is the function {text_of(optimizer)}, which takes a learning rate; call it, "
            f"as in {name}=optax.adam(1e-3), or give a function of the Spec"
        )
    return optimizer


def check_schedule(name: str, schedule: Callable[[Array], Any]) -> Callable[[Array], Any]:
    """A function of the step that gives a number, as it is.

    Raises:
      ConfigError: for one that fails for a step or gives anything else.
    """
    if isinstance(schedule, Missing):
        return schedule
    check_hashable(name, schedule)
    advice = (
        "give an Optax schedule, a function of the step such as "
        "optax.cosine_decay_schedule(1e-2, 1000); one that depends on the length of the run goes "
        "into the argument optimizer, as a function of the Spec"
    )
    subject = f"{name} is the function {text_of(schedule)}, which"
    try:
        rate = jax.eval_shape(schedule, jax.ShapeDtypeStruct((), jnp.int32))
    except Exception as error:
        raise ConfigError(f"{subject} fails for a step ({error}); {advice}") from error
    is_array = hasattr(rate, "shape") and hasattr(rate, "dtype")
    if not is_array or rate.shape != () or not np.isrealobj(np.zeros((), rate.dtype)):
        raise ConfigError(f"{subject} does not give a number for a step; {advice}")
    return schedule
