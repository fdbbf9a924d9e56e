"""Optax optimisers and schedules that the methods share."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import optax
from jax import Array

from fsjax.errors import ConfigError
from fsjax.user_functions import text_of


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
