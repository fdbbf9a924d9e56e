"""When connections change, and how far pruning has come by then.

A schedule tells two things of a step, counted from 1: whether connections change
(``schedule.is_due(step)``), and which share of the way from dense to the density of the recipe the
network has gone (``schedule(step)``, 0 to 1).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Protocol

import jax.numpy as jnp
from jax import Array

from fsjax.arguments import Count, Positive, check
from fsjax.errors import ConfigError

#: ``(step) -> share of the way``, in [0, 1]: a schedule of one's own, asked every so many steps.
ShareAt = Callable[[Array], Array]


class Schedule(Protocol):
    """What a recipe asks of a schedule; steps may be traced."""

    def is_due(self, step: Array | int) -> Array:
        """Whether connections change at a step."""
        ...

    def __call__(self, step: Array | int) -> Array:
        """The share of the way to the density, in [0, 1]."""
        ...


@dataclasses.dataclass(frozen=True)
class Polynomial:
    """``1 - (1 - (t - start) / (end - start)) ** power``, of step t; see :func:`polynomial`."""

    start: int
    end: int
    every: int = 1
    power: float = 3.0

    def __post_init__(self) -> None:
        check(Count, end=self.end)
        check(Count, every=self.every)
        check(Positive, power=self.power)
        if not 0 <= self.start < self.end:
            raise ConfigError(
                f"the schedule starts at step {self.start} and ends at {self.end}; it must start "
                "at 0 or later, and end after that"
            )

    def is_due(self, step: Array | int) -> Array:
        """Every so many steps from the start, and at the end."""
        now = jnp.asarray(step)
        passed = now - self.start
        between = (passed % self.every == 0) & (passed > 0) & (now < self.end)
        return between | (now == self.end)

    def __call__(self, step: Array | int) -> Array:
        """The share of the way to the density, in [0, 1]."""
        passed = (jnp.asarray(step, jnp.float32) - self.start) / (self.end - self.start)
        return 1.0 - jnp.clip(1.0 - passed, 0.0, 1.0) ** self.power


@dataclasses.dataclass(frozen=True)
class Periodic:
    """Every so many steps; see :func:`periodic`."""

    every: int
    start: int = 0
    end: int | None = None

    def __post_init__(self) -> None:
        check(Count, every=self.every)
        check(Count | None, end_step=self.end)
        if self.start < 0 or (self.end is not None and self.end <= self.start):
            raise ConfigError(
                f"the schedule starts at step {self.start} and ends at {self.end}; it must start "
                "at 0 or later, and end after that"
            )

    def is_due(self, step: Array | int) -> Array:
        """Every so many steps after the start, before the end."""
        now = jnp.asarray(step)
        passed = now - self.start
        due = (passed % self.every == 0) & (passed > 0)
        return due if self.end is None else due & (now < self.end)

    def __call__(self, step: Array | int) -> Array:
        """1: pruning goes all the way at the first change."""
        return jnp.float32(1.0)


@dataclasses.dataclass(frozen=True)
class Timed:
    """A function of the step that is asked at the changes of a :class:`Periodic` schedule."""

    share_at: ShareAt
    times: Periodic

    def is_due(self, step: Array | int) -> Array:
        """As the periodic schedule says."""
        return self.times.is_due(step)

    def __call__(self, step: Array | int) -> Array:
        """What the function says."""
        return self.share_at(jnp.asarray(step))


def polynomial(start: int, end: int, every: int = 1, power: float = 3.0) -> Polynomial:
    """Prunes from one step to another, most at first (Zhu and Gupta, 2017: cubic).

    Args:
      start: last step at which the network is dense, at least 0.
      end: first step at which it has its density, above ``start``.
      every: steps between two changes, at least 1; the last one is at ``end`` in any case.
      power: above 0; 1 prunes evenly.

    Raises:
      ConfigError: for values outside these ranges.
    """
    return Polynomial(start, end, every, power)


def one_shot(step: int) -> Polynomial:
    """Changes connections at one step, at least 1, and never again."""
    check(Count, step=step)
    return Polynomial(step - 1, step)


def periodic(every: int, start: int = 0, end: int | None = None) -> Periodic:
    """Changes connections every so many steps; pruning goes all the way at the first change.

    Args:
      every: steps between two changes, at least 1.
      start: the first change is ``every`` steps after this one, at least 0.
      end: there is no change at this step and after; ``None`` for no end.

    Raises:
      ConfigError: for values outside these ranges.
    """
    return Periodic(every, start, end)
