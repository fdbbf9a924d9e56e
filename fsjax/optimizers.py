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
    """The optimiser of a run: the transformation itself, or the one a function of the Spec returns.

    Raises:
      ConfigError: if the function does not return an Optax transformation.
    """
    if isinstance(optimizer, optax.GradientTransformation):
        return optimizer
    transformation = optimizer(spec)
    if not isinstance(transformation, optax.GradientTransformation):
        raise ConfigError(
            f"the optimizer {text_of(optimizer)} returns a {type(transformation).__name__}; a "
            "function of the Spec must return an Optax transformation, such as optax.adam(1e-3)"
        )
    return transformation


def cosine_by_epoch(
    first: Array | float, last: Array | float, num_epochs: int, steps_per_epoch: int
) -> optax.Schedule:
    """A cosine learning rate schedule that changes once per epoch (BinMask, Algorithm 1).

    The rate is ``first`` in the first epoch, and ``last`` from the last of ``num_epochs`` (at least
    1) on; an epoch has ``steps_per_epoch`` optimiser steps.
    """

    def schedule(step: Array) -> Array:
        epoch = jnp.minimum(step // steps_per_epoch, num_epochs - 1)
        progress = epoch / max(num_epochs - 1, 1)
        return last + 0.5 * (first - last) * (1.0 + jnp.cos(jnp.pi * progress))

    return schedule


def active_between(
    inner: optax.GradientTransformation, start: int, end: int | None = None
) -> optax.GradientTransformation:
    """Restricts an optimiser to the steps from ``start`` to before ``end``.

    In all other steps its moments and schedules do not advance either. ``None`` has no end.
    """
    return optax.conditionally_mask(
        inner, lambda step: (step >= start) & (end is None or step < end)
    )


def clip_params(limit: float) -> optax.GradientTransformation:
    """Shortens updates so that every parameter ends within ``[-limit, limit]``."""

    def shortened(updates: optax.Updates, params: optax.Params) -> optax.Updates:
        return jax.tree.map(lambda u, p: jnp.clip(p + u, -limit, limit) - p, updates, params)

    return optax.stateless(shortened)
