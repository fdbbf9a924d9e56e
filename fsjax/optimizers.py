"""Optax optimisers and schedules that the methods share."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax

from fsjax.errors import ConfigError


def adam(learning_rate: float) -> optax.GradientTransformation:
    """Adam with Optax's defaults (0.9, 0.999, 1e-8) and the learning rate in its state.

    Raises:
      ConfigError: unless the learning rate is positive.
    """
    if not learning_rate > 0:
        raise ConfigError(f"learning_rate={learning_rate}; choose a value above 0")
    static = ("b1", "b2", "eps", "eps_root", "nesterov", "mu_dtype")
    return optax.inject_hyperparams(optax.adam, static_args=static)(learning_rate=learning_rate)


def sgd(learning_rate: float, momentum: float) -> optax.GradientTransformation:
    """Gradient descent with Nesterov's momentum and the learning rate in its state.

    Raises:
      ConfigError: unless the learning rate is positive and the momentum in [0, 1).
    """
    if not learning_rate > 0:
        raise ConfigError(f"learning_rate={learning_rate}; choose a value above 0")
    if not 0 <= momentum < 1:
        raise ConfigError(f"momentum={momentum}; choose a value from 0 to below 1")
    static = ("momentum", "nesterov", "accumulator_dtype")
    return optax.inject_hyperparams(optax.sgd, static_args=static)(
        learning_rate=learning_rate, momentum=momentum, nesterov=True
    )


def cosine_by_epoch(
    first: float, last: float, num_epochs: int, steps_per_epoch: int
) -> optax.Schedule:
    """A rate that falls along half a cosine, from epoch to epoch (BinMask, Algorithm 1).

    Args:
      first: in the first epoch.
      last: in the last of ``num_epochs``, and after it.
      num_epochs: at least 1.
      steps_per_epoch: optimiser steps in an epoch.
    """

    def schedule(step: jax.Array) -> jax.Array:
        epoch = jnp.minimum(step // steps_per_epoch, num_epochs - 1)
        way = epoch / max(num_epochs - 1, 1)
        return last + 0.5 * (first - last) * (1.0 + jnp.cos(jnp.pi * way))

    return schedule


class ActiveState(NamedTuple):
    """State of :func:`active_between`: steps done, and that of the inner optimiser."""

    step: jax.Array
    inner: optax.OptState


def active_between(
    inner: optax.GradientTransformation, start: int, end: int | None = None
) -> optax.GradientTransformation:
    """An optimiser that rests, moments and schedules too, before ``start`` and from ``end`` on.

    Args:
      inner: the optimiser.
      start: the first step at which it acts.
      end: the first step at which it rests again; ``None`` for never.
    """

    def init(params: optax.Params) -> ActiveState:
        return ActiveState(jnp.zeros((), jnp.int32), inner.init(params))

    def update(
        updates: optax.Updates, state: ActiveState, params: optax.Params | None = None
    ) -> tuple[optax.Updates, ActiveState]:
        acts = state.step >= start
        if end is not None:
            acts &= state.step < end
        moves, after = inner.update(updates, state.inner, params)
        moves = jax.tree.map(lambda move: jnp.where(acts, move, 0), moves)
        after = jax.tree.map(lambda new, old: jnp.where(acts, new, old), after, state.inner)
        return moves, ActiveState(state.step + 1, after)

    return optax.GradientTransformation(init, update)


def clip_params(limit: float) -> optax.GradientTransformation:
    """Shortens updates so that every parameter ends within ``[-limit, limit]``."""

    def update(
        updates: optax.Updates, state: optax.EmptyState, params: optax.Params | None = None
    ) -> tuple[optax.Updates, optax.EmptyState]:
        moves = jax.tree.map(lambda u, p: jnp.clip(p + u, -limit, limit) - p, updates, params)
        return moves, state

    return optax.GradientTransformation(lambda params: optax.EmptyState(), update)
