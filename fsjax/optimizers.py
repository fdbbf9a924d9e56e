"""Optax optimisers and schedules that the methods share, and checks of those of the user's own."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array

from fsjax.errors import ConfigError
from fsjax.user_functions import Missing, check_hashable, text_of


def for_run(optimizer: Any, spec: Any) -> optax.GradientTransformation:
    """The optimiser of a run: the transformation itself, or what a function makes of the Spec.

    Raises:
      ConfigError: if the function gives anything else.
    """
    if isinstance(optimizer, optax.GradientTransformation):
        return optimizer
    transformation = optimizer(spec)
    if not isinstance(transformation, optax.GradientTransformation):
        raise ConfigError(
            f"the optimizer {text_of(optimizer)} gives a {type(transformation).__name__}; a "
            "function of the Spec gives an Optax transformation, such as optax.adam(1e-3)"
        )
    return transformation


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


def cosine_by_epoch(
    first: Array | float, last: Array | float, num_epochs: int, steps_per_epoch: int
) -> optax.Schedule:
    """A rate that falls along half a cosine, from epoch to epoch (BinMask, Algorithm 1).

    It is ``first`` in the first epoch, and ``last`` in the last of ``num_epochs`` (at least 1) and
    after it; an epoch has ``steps_per_epoch`` optimiser steps.
    """

    def schedule(step: Array) -> Array:
        epoch = jnp.minimum(step // steps_per_epoch, num_epochs - 1)
        way = epoch / max(num_epochs - 1, 1)
        return last + 0.5 * (first - last) * (1.0 + jnp.cos(jnp.pi * way))

    return schedule


def active_between(
    inner: optax.GradientTransformation, start: int, end: int | None = None
) -> optax.GradientTransformation:
    """An optimiser that rests, moments and schedules too, before step ``start`` and from ``end``
    on.

    At ``start`` it acts, at ``end`` it rests again; ``None`` for never.
    """
    return optax.conditionally_mask(
        inner, lambda step: (step >= start) & (end is None or step < end)
    )


def clip_params(limit: float) -> optax.GradientTransformation:
    """Shortens updates so that every parameter ends within ``[-limit, limit]``."""

    def shortened(updates: optax.Updates, params: optax.Params) -> optax.Updates:
        return jax.tree.map(lambda u, p: jnp.clip(p + u, -limit, limit) - p, updates, params)

    return optax.stateless(shortened)
