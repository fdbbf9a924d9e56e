"""How a network is made sparse: how many connections, which drop and grow rule, and when."""

from __future__ import annotations

import dataclasses
import numbers
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import jax
import jax.numpy as jnp
import optax
from jax import Array

from fsjax.arguments import Count, Share, check
from fsjax.errors import ConfigError
from fsjax.sparsity import drop as drop_rules
from fsjax.sparsity import grow as grow_rules
from fsjax.sparsity.masks import (
    erdos_renyi_counts,
    erdos_renyi_density_counts,
    name_of,
    uniform_counts,
)
from fsjax.sparsity.topology import Changed, DropRule, GrowRule, Layer, rewire
from fsjax.typing import PyTree

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
      drop: drop rule, one of :mod:`fsjax.sparsity.drop` or your own; ``None`` keeps the initial
        connections.
      grow: grow rule, one of :mod:`fsjax.sparsity.grow` or your own; ``None`` only drops, so that
        the connections become fewer.
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
            raise self._not_one_of_two()
        check(Literal[tuple(_DISTRIBUTIONS)], distribution=self.distribution)
        for name, rule in (("drop", self.drop), ("grow", self.grow)):
            if rule is not None and not callable(rule):
                raise ConfigError(
                    f"{name}={rule!r} is not a rule; pass a function, for example "
                    f"fsjax.sparsity.{name}.random"
                )
        if self.drop is None and self.grow is not None:
            raise ConfigError("a grow rule needs a drop rule, which tells how many to grow")
        if isinstance(self.fraction, numbers.Real):
            check(Share, fraction=self.fraction)
        check(Count, every=self.every)
        check(Count | None, end_step=self.end_step)
        self.counts([(1, 1)])  # The range of the density or epsilon.

    def counts(self, shapes: Sequence[Sequence[int]]) -> list[int]:
        """Active connections of layers of these shapes."""
        if self.epsilon is not None:
            return erdos_renyi_counts(shapes, self.epsilon)
        if self.density is None:
            raise self._not_one_of_two()
        return _DISTRIBUTIONS[self.distribution](shapes, self.density)

    def _not_one_of_two(self) -> ConfigError:
        return ConfigError(
            f"density={self.density} and epsilon={self.epsilon}; give one of the two"
        )

    def fraction_at(self, step: Array | int) -> Array | float:
        """The share that is replaced at a step."""
        return self.fraction(step) if callable(self.fraction) else self.fraction

    def change(
        self,
        params: PyTree,
        masks: PyTree,
        layers: Mapping[str, Layer],
        key: Array,
        step: Array | int = 0,
    ) -> Changed:
        """Changes the connections of some layers; every method that rewires does it by this.

        Args:
          params, masks: trees of the same structure, of which the layers are a part.
          layers: by path, from the input on; their weights are what is kept.
          key: PRNG key; each layer folds in its number.
          step: for a schedule of ``fraction``.
        """

        def one(path: tuple, weight: Array, mask: Array) -> tuple[Array, Array, Array]:
            layer = layers.get(name_of(path))
            if layer is None:
                return weight, mask, jnp.ones(weight.shape, bool)
            return self.change_layer(layer, key, step)

        triples = jax.tree_util.tree_map_with_path(one, params, masks)
        outer = jax.tree.structure(params)
        return Changed(*jax.tree.transpose(outer, jax.tree.structure((0, 0, 0)), triples))

    def change_layer(
        self, layer: Layer, key: Array, step: Array | int = 0
    ) -> tuple[Array, Array, Array]:
        """:meth:`change` of one layer: its weights, mask, and the connections that were kept."""
        weight = layer.weight
        key_rewire, key_init = jax.random.split(jax.random.fold_in(key, layer.number))
        rewired = rewire(layer, self.drop, self.grow, self.fraction_at(step), key_rewire)
        kept = rewired.mask & ~rewired.new
        initial = self.grow_init(key_init, weight.shape, weight.dtype)
        fresh = jnp.where(rewired.new, initial, jnp.where(kept, weight, 0))
        return fresh, rewired.mask, kept


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
