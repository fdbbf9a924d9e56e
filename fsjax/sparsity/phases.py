"""Phases of training in Optax: rates by epoch, steps of a range, parameters within bounds."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import optax
from jax import Array


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
