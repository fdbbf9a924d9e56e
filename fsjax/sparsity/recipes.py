"""How a network is made sparse: how many connections, which drop and grow rule, and when."""

from __future__ import annotations

import dataclasses
import math
import numbers
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

import jax
import jax.numpy as jnp
import optax
from jax import Array

from fsjax.arguments import Count, Fraction, Positive, Share, check
from fsjax.errors import ConfigError
from fsjax.sparsity import drop as drop_rules
from fsjax.sparsity.masks import (
    Where,
    apply_masks,
    by_pattern,
    density_counts,
    erdos_renyi_counts,
    erdos_renyi_density_counts,
    init_masks,
    is_kernel,
    named_leaves,
    uniform_counts,
)
from fsjax.sparsity.pruning import Scope, pruned
from fsjax.sparsity.schedules import Periodic, Polynomial, Schedule, ShareAt, Timed
from fsjax.sparsity.structures import Structure, unstructured
from fsjax.sparsity.topology import Changed, DropRule, GrowRule, Layer, needs_of, rewire, shrinks
from fsjax.sparsity.trees import path_name, with_leaves
from fsjax.typing import PyTree

#: ``(key, shape, dtype) -> array``, as in ``jax.nn.initializers``.
Initializer = Callable[..., Array]

#: A share of active connections in (0, 1], one by path pattern, or a function from the shapes of
#: the masked layers by path to their densities by path.
Density = (
    float | Mapping[str, float] | Callable[[Mapping[str, tuple[int, ...]]], Mapping[str, float]]
)

_DISTRIBUTIONS: dict[str, Callable[[Sequence[Sequence[int]], float], list[int]]] = {
    "uniform": uniform_counts,
    "er": lambda shapes, density: erdos_renyi_density_counts(shapes, density, kernel=False),
    "erk": erdos_renyi_density_counts,
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Recipe:
    """What :func:`fsjax.sparsity.sparse` does; any drop rule goes with any grow rule.

    - With ``drop`` and ``grow`` connections move, and their number stays (dynamic sparse training).
    - With ``drop`` and ``schedule``, without ``grow``, the network starts dense and is pruned.
    - With ``drop`` and ``straight_through`` all weights train, and the forward pass uses those with
      the highest scores.
    - Without ``drop`` the initial connections stay.

    A value outside its range and an unknown distribution are a ConfigError.

    Attributes:
      density: share of the connections of the masked layers that are active, in (0, 1]; or a
        share by path pattern, as in ``{"conv_*/kernel": 0.5, "*": 0.1}``, where the first pattern
        counts that matches, and layers without any stay dense; or a function from the shapes by
        path to the densities by path. Give either this or ``epsilon``, or a structure that has a
        density of its own.
      epsilon: above 0; a layer gets ``epsilon (n_in + n_out)`` connections.
      distribution: of one density over the layers: ``"uniform"``, ``"er"`` or ``"erk"``
        (Erdos-Renyi without and with the spatial dimensions of convolutions).
      drop: drop rule, one of :mod:`fsjax.sparsity.drop` or your own; ``None`` keeps the initial
        connections.
      grow: grow rule, one of :mod:`fsjax.sparsity.grow` or your own; ``None`` only drops, so that
        the connections become fewer.
      fraction: share of the active connections that is replaced, in [0, 1]: a number, which may
        be traced, or an Optax schedule of the step.
      every: steps between two changes; the first is at step ``every``, counted from 1. A
        ``schedule`` says this itself.
      end_step: there is no change at this step and after; ``None`` for no end.
      grow_init: initial values of new connections.
      replaces_step: whether a change comes in place of that step's gradient step (RigL) or
        after it.
      structure: which connections come and go together, from
        :mod:`fsjax.sparsity.structures`; ``None`` is each by itself.
      schedule: when connections change, from :mod:`fsjax.sparsity.schedules`, in place of
        ``every`` and ``end_step``. For pruning it is also how far it has come, and may be a
        function from the step to the share of the way from dense to ``density``, in [0, 1].
      scope: of pruning: whether connections compete within their ``"layer"``, or all together
        (``"global"``).
      momentum_decay: of the running mean of the gradients that rules see as ``momentum``, in
        [0, 1]; it is kept only where a rule needs it.
      straight_through: whether all weights train, and only the forward pass is sparse; then the
        loss takes :func:`fsjax.sparsity.forward_params`.
    """

    density: Density | None = None
    epsilon: float | None = None
    distribution: Literal["uniform", "er", "erk"] = "erk"
    drop: DropRule | None = None
    grow: GrowRule | None = None
    fraction: float | Array | optax.Schedule = 0.3
    every: int = 100
    end_step: int | None = None
    grow_init: Initializer = jax.nn.initializers.zeros
    replaces_step: bool = False
    structure: Structure | None = None
    schedule: Schedule | ShareAt | None = None
    scope: Scope = "layer"
    momentum_decay: float = 0.9
    straight_through: bool = False

    def __post_init__(self) -> None:
        self._check_density()
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
        check(Share, momentum_decay=self.momentum_decay)
        check(Count, every=self.every)
        check(Count | None, end_step=self.end_step)
        self._check_pruning()

    def _check_density(self) -> None:
        given = (self.density, self.epsilon, self.structure and self.structure.fixed_density)
        if sum(value is not None for value in given) != 1:
            has_own = given[2] is not None
            raise ConfigError(
                f"density={self.density} and epsilon={self.epsilon}; "
                + (
                    f"give neither, as {self.structure} has a density of its own"
                    if has_own
                    else "give one of the two"
                )
            )
        if isinstance(self.density, Mapping):
            for pattern, density in self.density.items():
                check(Fraction, **{f"density of {pattern!r}": density})
        elif not callable(self.density):
            check(Fraction | None, density=self.density)
        check(Positive | None, epsilon=self.epsilon)

    def _check_pruning(self) -> None:
        check(Literal["layer", "global"], scope=self.scope)
        if self.schedule is not None and not callable(self.schedule):
            raise ConfigError(
                f"schedule={self.schedule!r} is not a schedule; give one such as "
                "fsjax.sparsity.polynomial(0, 1000)"
            )
        if self.drop is None and (self.schedule is not None or self.straight_through):
            raise ConfigError(
                "connections that never change take no schedule; to prune, give a drop rule such "
                "as fsjax.sparsity.drop.magnitude"
            )
        if self.grow is not None and self.straight_through:
            raise ConfigError("straight_through=True chooses from all connections; give grow=None")
        if self.grow is not None and not isinstance(self.times, Periodic):
            raise ConfigError(
                f"the number of connections stays where some are grown, and schedule="
                f"{self.schedule} prunes; give fsjax.sparsity.periodic(every), or grow=None"
            )
        if self.scope == "global" and not (self.prunes and self.structure is None):
            raise ConfigError(
                "scope='global' is for pruning connection by connection; give a schedule or "
                "straight_through=True, and no structure"
            )

    @property
    def prunes(self) -> bool:
        """Whether connections become fewer, or are chosen anew from all, as pruning does."""
        return self.grow is None and (self.schedule is not None or self.straight_through)

    @property
    def needs_momentum(self) -> bool:
        """Whether one of the rules looks at the running mean of the gradients."""
        rules = (rule for rule in (self.drop, self.grow) if rule is not None)
        return any("momentum" in needs_of(rule) for rule in rules)

    @property
    def times(self) -> Schedule:
        """When connections change, and how far pruning has come."""
        every = Periodic(self.every, 0, self.end_step)
        if self.schedule is None:
            return every
        if isinstance(self.schedule, Periodic | Polynomial):
            return self.schedule
        return Timed(self.schedule, every)

    def counts(
        self, shapes: Sequence[Sequence[int]], names: Sequence[str] | None = None
    ) -> list[int]:
        """Active connections of layers of these shapes, in the end.

        Args:
          shapes: of the masked layers.
          names: their paths, for densities by path.

        Raises:
          ConfigError: for a pattern that matches no path, or without the names that it needs.
        """
        counts = self._counts(shapes, names)
        if self.structure is None:
            return counts
        return [
            self.structure.connections(shape, units)
            for shape, units in zip(shapes, self._units(shapes, counts), strict=True)
        ]

    def units(
        self, shapes: Sequence[Sequence[int]], names: Sequence[str] | None = None
    ) -> list[int]:
        """Active units of each group of these layers, in the end; otherwise as :meth:`counts`."""
        return self._units(shapes, self._counts(shapes, names))

    def _units(self, shapes: Sequence[Sequence[int]], counts: Sequence[int]) -> list[int]:
        if self.structure is None:
            return list(counts)
        return [
            self.structure.count(shape, count / math.prod(shape))
            for shape, count in zip(shapes, counts, strict=True)
        ]

    def _counts(self, shapes: Sequence[Sequence[int]], names: Sequence[str] | None) -> list[int]:
        """Connections before a structure rounds them to whole units."""
        if self.structure is not None and self.structure.fixed_density is not None:
            return uniform_counts(shapes, self.structure.fixed_density)
        if self.epsilon is not None:
            return erdos_renyi_counts(shapes, self.epsilon)
        if isinstance(self.density, Mapping):
            return density_counts(shapes, by_pattern(self.density, _needed(names)))
        assert self.density is not None  # as _check_density says
        if callable(self.density):
            return density_counts(shapes, _densities(self.density, shapes, _needed(names)))
        return _DISTRIBUTIONS[self.distribution](shapes, self.density)

    def fraction_at(self, step: Array | int) -> Array | float:
        """The share that is replaced at a step."""
        return self.fraction(step) if callable(self.fraction) else self.fraction

    def initial_masks(self, key: Array, params: PyTree, where: Where = is_kernel) -> PyTree:
        """The masks before the first step, bool in the structure of ``params``.

        They are random; all true where the network starts dense; and of the largest weights where
        these are chosen from all (``straight_through``).

        Args:
          key: PRNG key.
          params: parameters.
          where: which are masked, as for :func:`fsjax.sparsity.init_masks`.

        Raises:
          ConfigError: if no parameter is chosen, for a pattern that matches none, and for a layer
            that the structure does not fit.
        """
        leaves = named_leaves(params, where)
        shapes, names = [leaf.shape for leaf in leaves.values()], list(leaves)
        self._check_fits(dict(zip(names, shapes, strict=True)))
        counts = self.counts(shapes, names)
        if not self.prunes and self.structure is None:
            return init_masks(key, params, lambda _: counts, where)
        dense = jax.tree.map(lambda leaf: jnp.ones(leaf.shape, bool), params)
        if self.schedule is not None and self.prunes:
            return dense
        units = dict(zip(names, self.units(shapes, names), strict=True))
        layers = {
            name: Layer(leaf, jnp.ones(leaf.shape, bool), number)
            for number, (name, leaf) in enumerate(leaves.items())
        }
        rule = drop_rules.magnitude if self.straight_through else drop_rules.random
        masks = pruned(layers, rule, units, key, self.structure, self.scope)
        return with_leaves(dense, masks)

    def _check_fits(self, shapes: Mapping[str, tuple[int, ...]]) -> None:
        if self.structure is None:
            return
        for name, shape in shapes.items():
            try:
                self.structure.layout(shape)
            except ConfigError as error:
                raise ConfigError(f"{name}: {error}") from None

    def check_masks(self, masks: PyTree, where: Where = is_kernel) -> None:
        """Checks that masks, such as restored ones, are of this recipe.

        Raises:
          ConfigError: for a mask without the structure, or with another number of connections
            than the recipe gives, which names its path.
        """
        leaves = named_leaves(masks, where)
        shapes, names = [leaf.shape for leaf in leaves.values()], list(leaves)
        self._check_fits(dict(zip(names, shapes, strict=True)))
        structure = self.structure or unstructured()
        exact = not self.prunes and not (self.drop is not None and shrinks(self.grow))
        for (name, mask), units in zip(leaves.items(), self.units(shapes, names), strict=True):
            layout = structure.layout(mask.shape)
            active = layout.active(mask)
            of_groups = jnp.sum(active, axis=1)
            whole = (layout.mask(active, mask.shape) == mask).all()
            if not whole or (of_groups != of_groups[0]).any():
                raise ConfigError(f"{name}: the mask does not have the structure {structure}")
            if exact and of_groups[0] != units:
                raise ConfigError(
                    f"{name}: the mask has {int(mask.sum())} active connections, and the recipe "
                    f"gives {structure.connections(mask.shape, units)}"
                )

    def is_due(self, step: Array) -> Array:
        """Whether the connections change at a step, counted from 1."""
        return self.times.is_due(step)

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
          step: for a schedule of ``fraction``, or of pruning.
        """
        if self.prunes:
            return self._pruned(params, masks, layers, key, step)

        def one(path: tuple, weight: Array, mask: Array) -> tuple[Array, Array, Array]:
            layer = layers.get(path_name(path))
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
        fraction = self.fraction_at(step)
        rewired = rewire(layer, self.drop, self.grow, fraction, key_rewire, self.structure)
        kept = rewired.mask & ~rewired.new
        initial = self.grow_init(key_init, weight.shape, weight.dtype)
        fresh = jnp.where(rewired.new, initial, jnp.where(kept, weight, 0))
        return fresh, rewired.mask, kept

    def _pruned(
        self,
        params: PyTree,
        masks: PyTree,
        layers: Mapping[str, Layer],
        key: Array,
        step: Array | int,
    ) -> Changed:
        shapes = [layer.weight.shape for layer in layers.values()]
        way = self.times(step)
        structure = self.structure or unstructured()
        counts = {}
        for name, shape, units in zip(
            layers, shapes, self.units(shapes, list(layers)), strict=True
        ):
            all_units = structure.layout(shape).sizes[1]
            # Rounded down, so that the end is exact and nothing goes before its time.
            gone = jnp.floor(jnp.asarray(way, jnp.float32) * (all_units - units) + 1e-3)
            counts[name] = all_units - gone.astype(jnp.int32)
        if self.straight_through:
            layers = {
                name: layer._replace(mask=jnp.ones_like(layer.mask))
                for name, layer in layers.items()
            }
        assert self.drop is not None  # as _check_pruning says
        left = pruned(layers, self.drop, counts, key, self.structure, self.scope)
        new_masks = with_leaves(masks, left)
        if self.straight_through:
            return Changed(params, new_masks, jax.tree.map(jnp.ones_like, new_masks))
        return Changed(apply_masks(params, new_masks), new_masks, new_masks)


def _needed(names: Sequence[str] | None) -> Sequence[str]:
    if names is None:
        raise ConfigError("densities by path need the paths of the layers; give names=")
    return names


def _densities(
    density: Callable[[Mapping[str, tuple[int, ...]]], Mapping[str, float]],
    shapes: Sequence[Sequence[int]],
    names: Sequence[str],
) -> list[float]:
    """What a function says of these layers, one by one."""
    densities = density({name: tuple(shape) for name, shape in zip(names, shapes, strict=True)})
    missing = [name for name in names if name not in densities]
    if missing:
        raise ConfigError(f"density= returns none for {', '.join(missing)}; give one for each path")
    return [densities[name] for name in names]
