"""Schedules: at which steps connections change, and how far pruning has progressed by then.

A schedule answers two questions about a step, counted from 1: whether connections change
(``schedule.is_due(step)``), and how far the network has been pruned from dense to the density of
the recipe (``schedule(step)``, from 0 to 1).

For Optax there are learning rates by epoch, and optimisers that act in a range of steps.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import optax
from jax import Array

from fsjax.arguments import Count, Positive, Whole, check
from fsjax.errors import ConfigError

#: ``(step) -> progress of pruning``, in [0, 1]: your own schedule, evaluated at each change.
ShareAt = Callable[[Array], Array]


@runtime_checkable
class TopologySchedule(Protocol):
    """The interface of a schedule, also of your own; steps may be traced."""

    def is_due(self, step: Array | int) -> Array:
        """Whether connections change at this step."""
        ...

    def __call__(self, step: Array | int) -> Array:
        """Progress of pruning, in [0, 1]: 0 is dense, 1 the density of the recipe."""
        ...


@dataclasses.dataclass(frozen=True)
class Polynomial:
    """``1 - (1 - (t - start) / (end - start)) ** power`` at step t; see :func:`polynomial`."""

    start: int
    end: int
    every: int = 1
    power: float = 3.0

    def __post_init__(self) -> None:
        check(Count, end=self.end)
        check(Count, every=self.every)
        check(Positive, power=self.power)
        _check_steps(self.start, self.end)

    def is_due(self, step: Array | int) -> Array:
        """True every ``every`` steps after the start, and at the end."""
        now = jnp.asarray(step)
        passed = now - self.start
        between = (passed % self.every == 0) & (passed > 0) & (now < self.end)
        return between | (now == self.end)

    def __call__(self, step: Array | int) -> Array:
        """Progress of pruning, in [0, 1]."""
        passed = (jnp.asarray(step, jnp.float32) - self.start) / (self.end - self.start)
        return 1.0 - jnp.clip(1.0 - passed, 0.0, 1.0) ** self.power


@dataclasses.dataclass(frozen=True)
class Periodic:
    """A change every ``every`` steps; see :func:`periodic`."""

    every: int
    start: int = 0
    end: int | None = None

    def __post_init__(self) -> None:
        check(Count, every=self.every)
        check(Count | None, end_step=self.end)
        _check_steps(self.start, self.end)
        if self.end is not None and self.start + self.every >= self.end:
            raise ConfigError(
                f"no change comes before end={self.end}: the first would be at step "
                f"{self.start + self.every}; choose a smaller every, or a later end"
            )

    def is_due(self, step: Array | int) -> Array:
        """True every ``every`` steps after the start, before the end."""
        now = jnp.asarray(step)
        passed = now - self.start
        due = (passed % self.every == 0) & (passed > 0)
        return due if self.end is None else due & (now < self.end)

    def __call__(self, step: Array | int) -> Array:
        """Always 1: the first change prunes to the final density."""
        return jnp.float32(1.0)


@dataclasses.dataclass(frozen=True)
class Timed:
    """A function of the step, evaluated at the changes of a :class:`Periodic` schedule."""

    share_at: ShareAt
    times: Periodic

    def is_due(self, step: Array | int) -> Array:
        """True where the periodic schedule has a change."""
        return self.times.is_due(step)

    def __call__(self, step: Array | int) -> Array:
        """Progress of pruning according to the function, in [0, 1]."""
        return self.share_at(jnp.asarray(step))


def polynomial(start: int, end: int, every: int = 1, power: float = 3.0) -> Polynomial:
    """Prunes gradually, fastest at the beginning (Zhu and Gupta, 2017, section 3: cubic).

    Args:
      start: last step at which the network is dense, at least 0.
      end: first step with the final density, above ``start``.
      every: steps between two changes, at least 1; the last change is always at ``end``.
      power: exponent, above 0; 3 in the paper, and 1 prunes linearly.

    Raises:
      ConfigError: for values outside these ranges.
    """
    return Polynomial(start, end, every, power)


def one_shot(step: int) -> Polynomial:
    """Changes connections at a single step, and prunes to the final density there.

    Args:
      step: step of the change, at least 1; else ConfigError.

    Examples:
      >>> once = sparsity.magnitude(0.1, schedule=sparsity.one_shot(100))
      >>> often = sparsity.magnitude(0.1, schedule=sparsity.periodic(20, start=100, end=300))
      >>> gradual = sparsity.magnitude(0.1, schedule=sparsity.polynomial(20, 150, every=10))
    """
    check(Count, step=step)
    return Polynomial(step - 1, step)


def periodic(every: int, start: int = 0, end: int | None = None) -> Periodic:
    """Changes connections every ``every`` steps; the first change prunes to the final density.

    Args:
      every: steps between two changes, at least 1.
      start: the first change is ``every`` steps after this one, at least 0.
      end: no changes from this step on; ``None`` for no end.

    Raises:
      ConfigError: for values outside these ranges.
    """
    return Periodic(every, start, end)


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


def _check_steps(start: int, end: int | None) -> None:
    check(Whole, start=start)
    if end is not None and end <= start:
        raise ConfigError(
            f"the schedule starts at step {start} and ends at {end}; choose a later end"
        )
