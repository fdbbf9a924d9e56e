"""How a network is made sparse: how many connections, which drop and grow rule, and when."""

from __future__ import annotations

import dataclasses
import numbers
from collections.abc import Callable, Sequence
from typing import Any

import jax
import optax

from fsjax.errors import ConfigError, check_whole, nearest
from fsjax.sparsity import drop as drop_rules
from fsjax.sparsity import grow as grow_rules
from fsjax.sparsity.masks import erdos_renyi_counts, erdos_renyi_density_counts, uniform_counts
from fsjax.sparsity.topology import DropRule, GrowRule

Array = jax.Array

#: ``(key, shape, dtype) -> array``, as in ``jax.nn.initializers``.
Initializer = Callable[..., Array]

_DISTRIBUTIONS: dict[str, Callable[[Sequence[Sequence[int]], float], list[int]]] = {
    "uniform": uniform_counts,
    "er": lambda shapes, density: erdos_renyi_density_counts(shapes, density, kernel=False),
    "erk": erdos_renyi_density_counts,
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Recipe:
    """What :func:`fsjax.sparsity.sparse` does; any drop rule goes with any grow rule.

    A value outside its range and an unknown distribution are a ConfigError.

    Attributes:
      density: share of the connections of the masked layers that are active, in (0, 1]. Give
        either this or ``epsilon``.
      epsilon: above 0; a layer gets ``epsilon (n_in + n_out)`` connections.
      distribution: of the density over the layers: ``"uniform"``, ``"er"`` or ``"erk"``
        (Erdos-Renyi without and with the spatial dimensions of convolutions).
      drop: drop rule; ``None`` keeps the initial connections.
      grow: grow rule; ``None`` only drops, so that the connections become fewer.
      fraction: share of the active connections that is replaced, in [0, 1]: a number, which may
        be traced, or an Optax schedule of the step.
      every: steps between two changes; the first is at step ``every``, counted from 1.
      end_step: there is no change at this step and after; ``None`` for no end.
      grow_init: initial values of new connections.
      replaces_step: whether a change comes in place of that step's gradient step (RigL) or
        after it.
    """

    density: float | None = None
    epsilon: float | None = None
    distribution: str = "erk"
    drop: DropRule | None = None
    grow: GrowRule | None = None
    fraction: float | Array | optax.Schedule = 0.3
    every: int = 100
    end_step: int | None = None
    grow_init: Initializer = jax.nn.initializers.zeros
    replaces_step: bool = False

    def __post_init__(self) -> None:
        if (self.density is None) == (self.epsilon is None):
            raise ConfigError(
                f"density={self.density} and epsilon={self.epsilon}; give one of the two"
            )
        if self.distribution not in _DISTRIBUTIONS:
            help_ = nearest(self.distribution, _DISTRIBUTIONS)
            raise ConfigError(f"distribution={self.distribution!r}; {help_}")
        if self.drop is None and self.grow is not None:
            raise ConfigError("a grow rule needs a drop rule, which tells how many to grow")
        if isinstance(self.fraction, numbers.Real) and not 0 <= self.fraction <= 1:
            raise ConfigError(f"fraction={self.fraction}; choose a value from 0 to 1")
        check_whole("every", self.every)
        if self.end_step is not None:
            check_whole("end_step", self.end_step)
        self.counts([(1, 1)])  # The range of the density or epsilon.

    def counts(self, shapes: Sequence[Sequence[int]]) -> list[int]:
        """Active connections of layers of these shapes."""
        if self.epsilon is not None:
            return erdos_renyi_counts(shapes, self.epsilon)
        return _DISTRIBUTIONS[self.distribution](shapes, self.density)

    def fraction_at(self, step: Array) -> Array | float:
        """The share that is replaced at a step."""
        return self.fraction(step) if callable(self.fraction) else self.fraction


def static(density: float | None = None, **options: Any) -> Recipe:
    """Random connections that never change. Arguments as in :class:`Recipe`."""
    return Recipe(density=density, **options)


def evolutionary(density: float | None = None, **options: Any) -> Recipe:
    """SET, sparse evolutionary training (Mocanu et al. 2018).

    The positive and the negative weights nearest 0 go, random connections come. Arguments as in
    :class:`Recipe`.
    """
    rules = {"drop": drop_rules.per_sign, "grow": grow_rules.random}
    return Recipe(density=density, **{**rules, **options})


def rigl(
    density: float | None = None,
    *,
    fraction: float = 0.3,
    end_step: int | None = None,
    **options: Any,
) -> Recipe:
    """RigL (Evci et al. 2020): the smallest weights go, the largest gradients come.

    With ``end_step`` the fraction falls to 0 by a cosine, as in the paper, which ends after three
    quarters of the training; without, it is constant. Arguments as in :class:`Recipe`.
    """
    # f/2 (1 + cos(pi t / T_end))
    decayed = fraction if end_step is None else optax.cosine_decay_schedule(fraction, end_step)
    rules = {"drop": drop_rules.magnitude, "grow": grow_rules.gradient, "replaces_step": True}
    return Recipe(density=density, fraction=decayed, end_step=end_step, **{**rules, **options})


def ctre_sim(density: float | None = None, *, fraction: float = 0.2, **options: Any) -> Recipe:
    """CTRE-sim (CTRE, algorithm 2): the smallest weights go, connections of similar neurons come.

    New weights start uniform within ``sqrt(6 / n_in)``, as in the authors' code. The paper sets
    ``epsilon`` and makes one change in each epoch. Arguments as in :class:`Recipe`.
    """
    rules = {
        "drop": drop_rules.magnitude,
        "grow": grow_rules.similar_or_random,
        "grow_init": jax.nn.initializers.he_uniform(),
    }
    return Recipe(density=density, fraction=fraction, **{**rules, **options})


def cht(density: float | None = None, **options: Any) -> Recipe:
    """CHT, Cannistraci-Hebb training: the smallest weights go, ends of short paths are joined.

    It needs no gradients of missing connections. What was dropped is often what is joined again,
    so that the topology settles; with ``grow=grow.sampled_short_paths``, the soft rule of CHTs,
    connections are drawn by their scores. Arguments as in :class:`Recipe`.
    """
    rules = {"drop": drop_rules.magnitude, "grow": grow_rules.short_paths}
    return Recipe(density=density, **{**rules, **options})
