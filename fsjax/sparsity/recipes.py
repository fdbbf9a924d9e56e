"""Recipes: how many connections a network has, by which rules they change, and when."""

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
    Scope,
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
from fsjax.sparsity.rules import DropRule, GrowRule, Layer, Rules, as_rules
from fsjax.sparsity.schedules import Periodic, Polynomial, ShareAt, Timed, TopologySchedule
from fsjax.sparsity.structures import Structure, unstructured
from fsjax.sparsity.topology import Changed, pruned, rewire
from fsjax.sparsity.trees import path_name, with_leaves
from fsjax.typing import PyTree

#: ``(key, shape, dtype) -> array``, as in ``jax.nn.initializers``.
Initializer = Callable[..., Array]

#: A share of active connections in (0, 1]; shares by path pattern; or a function from the shapes
#: of the masked layers, by path, to their densities, by path.
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
    """A method of sparse training for :func:`fsjax.sparsity.sparse`; any rules can be combined.

    - With ``drop`` and ``grow``, connections move and their number is constant (dynamic sparse
      training).
    - With ``drop`` and ``schedule``, but without ``grow``, the network starts dense and is pruned.
    - With ``drop`` and ``straight_through``, all weights are trained, and the forward pass uses
      those with the highest scores.
    - Without ``drop``, the initial connections never change.

    A value outside its range, an unknown distribution or options that contradict each other raise
    a ConfigError.

    Attributes:
      density: share of the connections of the masked layers that are active, in (0, 1]; or shares
        by path pattern, for example ``{"conv_*/kernel": 0.5, "*": 0.1}``, where the first pattern
        that matches applies and layers without a match stay dense; or a function from the shapes
        of the layers, by path, to their densities, by path. Give either this or ``epsilon``, or a
        structure with a fixed density.
      epsilon: above 0; a layer gets ``epsilon (n_in + n_out)`` connections (SET, Mocanu et
        al., 2018).
      distribution: how a single density is distributed over the layers: ``"uniform"``, ``"er"``
        or ``"erk"`` (Erdos-Renyi without and with the spatial dimensions of convolutions; Evci et
        al., 2020).
      drop: drop rule, one of :mod:`fsjax.sparsity.drop` or your own; ``None`` keeps the initial
        connections.
      grow: grow rule, one of :mod:`fsjax.sparsity.grow` or your own; ``None`` only drops, so the
        number of connections decreases.
      fraction: share of the active connections that is replaced in a change, in [0, 1]: a number,
        which may be traced, or an Optax schedule of the step.
      every: steps between two changes, at least 1; the first change is at step ``every``, counted
        from 1. Not used if ``schedule`` says when changes are due.
      end_step: no changes from this step on; ``None`` for no end.
      grow_init: initializer of the weights of new connections.
      replaces_step: whether a change replaces the gradient step (RigL) instead of following it.
      structure: which connections are added and removed together, from
        :mod:`fsjax.sparsity.structures`; ``None`` is unstructured.
      schedule: when connections change, from :mod:`fsjax.sparsity.schedules` or your own with
        ``is_due``; it replaces ``every`` and ``end_step``. For pruning it also determines the
        progress, and may be a function from the step to the progress from dense (0) to ``density``
        (1), evaluated every ``every`` steps.
      scope: whether pruning compares the connections within each ``"layer"``, or those of all
        layers (``"global"``).
      momentum_decay: decay of the running mean of the gradients, in [0, 1], which rules see as
        ``momentum``. The mean is computed only if a rule needs it.
      straight_through: whether all weights are trained and only the forward pass is sparse; the
        loss must then use :func:`fsjax.sparsity.forward_params`.

    Examples:
      >>> def smallest(layer, fraction, key):  # a sparsity.DropRule: the lowest scores go
      ...     return jnp.abs(layer.weight)
      >>> def anywhere(layer, dropped, key):  # a sparsity.GrowRule: the highest scores come
      ...     return jax.random.uniform(key, layer.weight.shape)
      >>> rules = {"drop": smallest, "grow": anywhere}
      >>> recipe = sparsity.Recipe(density=0.1, **rules, fraction=0.3, every=20)
      >>> tx = sparsity.sparse(optax.adam(1e-3), recipe, jax.random.key(0))
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
    schedule: TopologySchedule | ShareAt | None = None
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
            raise ConfigError(
                "a grow rule replaces the connections that a drop rule removes; give drop= too"
            )
        if isinstance(self.fraction, numbers.Real):
            check(Share, fraction=self.fraction)
        check(Share, momentum_decay=self.momentum_decay)
        check(Count, every=self.every)
        check(Count | None, end_step=self.end_step)
        self._check_pruning()

    def _check_density(self) -> None:
        fixed = self.structure and self.structure.fixed_density
        if sum(value is not None for value in (self.density, self.epsilon, fixed)) != 1:
            remedy = "give exactly one of the two"
            if fixed is not None:
                remedy = f"give neither, because {self.structure} determines the density"
            raise ConfigError(f"density={self.density} and epsilon={self.epsilon}; {remedy}")
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
                f"schedule={self.schedule!r} is not a schedule; pass one, for example "
                "fsjax.sparsity.polynomial(0, 1000), or a function of the step"
            )
        if self.drop is None and (self.schedule is not None or self.straight_through):
            raise ConfigError(
                "schedule= and straight_through= have no effect without a drop rule; give one, for "
                "example fsjax.sparsity.drop.magnitude"
            )
        if self.grow is not None and self.straight_through:
            raise ConfigError("straight_through=True chooses among all connections; give grow=None")
        if self.grow is not None and isinstance(self.times, Polynomial | Timed):
            raise ConfigError(
                f"schedule={self.schedule} prunes, but with a grow rule the number of connections "
                "is constant; give fsjax.sparsity.periodic(every), or grow=None"
            )
        if self.scope == "global" and not (self.prunes and self.structure is None):
            raise ConfigError(
                "scope='global' works only for unstructured pruning; give a schedule or "
                "straight_through=True, and no structure"
            )

    @property
    def rules(self) -> Rules:
        """The drop and the grow rule with what is known about them."""
        return as_rules(self.drop, self.grow)

    @property
    def prunes(self) -> bool:
        """Whether connections are pruned, or chosen anew among all, instead of being moved."""
        return self.grow is None and (self.schedule is not None or self.straight_through)

    @property
    def needs_momentum(self) -> bool:
        """Whether one of the rules needs the running mean of the gradients."""
        return "momentum" in self.rules.needs

    @property
    def needs_movement(self) -> bool:
        """Whether one of the rules needs the movement of the weights."""
        return "movement" in self.rules.needs

    @property
    def times(self) -> TopologySchedule:
        """The schedule of the changes, whichever arguments defined it."""
        every = Periodic(self.every, 0, self.end_step)
        if self.schedule is None:
            return every
        if isinstance(self.schedule, TopologySchedule):
            return self.schedule
        return Timed(self.schedule, every)

    def counts(
        self, shapes: Sequence[Sequence[int]], names: Sequence[str] | None = None
    ) -> list[int]:
        """Final number of active connections of each layer.

        Args:
          shapes: shapes of the masked layers.
          names: their paths; needed only for densities by path.

        Raises:
          ConfigError: if a pattern matches no path, if the paths are needed and missing, or if
            the structure does not fit a shape.
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
        """Final number of active units in each group of each layer; arguments as :meth:`counts`."""
        return self._units(shapes, self._counts(shapes, names))

    def _units(self, shapes: Sequence[Sequence[int]], counts: Sequence[int]) -> list[int]:
        if self.structure is None:
            return list(counts)
        return [
            self.structure.count(shape, count / math.prod(shape))
            for shape, count in zip(shapes, counts, strict=True)
        ]

    def _counts(self, shapes: Sequence[Sequence[int]], names: Sequence[str] | None) -> list[int]:
        """Number of connections before a structure rounds it to whole units."""
        if self.structure is not None and self.structure.fixed_density is not None:
            return uniform_counts(shapes, self.structure.fixed_density)
        if self.epsilon is not None:
            return erdos_renyi_counts(shapes, self.epsilon)
        if isinstance(self.density, Mapping):
            return density_counts(shapes, by_pattern(self.density, _required(names)))
        assert self.density is not None  # as _check_density says
        if callable(self.density):
            return density_counts(shapes, _densities(self.density, shapes, _required(names)))
        return _DISTRIBUTIONS[self.distribution](shapes, self.density)

    def fraction_at(self, step: Array | int) -> Array | float:
        """The share of the connections that is replaced at a step."""
        return self.fraction(step) if callable(self.fraction) else self.fraction

    def initial_masks(self, key: Array, params: PyTree, where: Where = is_kernel) -> PyTree:
        """The masks before the first step, bool in the structure of ``params``.

        They are random; or all true, if the network is to be pruned; or they mark the largest
        weights (``straight_through``).

        Args:
          key: PRNG key.
          params: parameters.
          where: which parameters are masked, as for :func:`fsjax.sparsity.init_masks`.

        Raises:
          ConfigError: if no parameter is chosen, if a pattern matches none, or if the structure
            does not fit a layer.
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

    def check_masks(
        self, masks: PyTree, where: Where = is_kernel, *, finished: bool = False
    ) -> None:
        """Checks that masks, for example restored ones, agree with this recipe.

        Args:
          masks: bool arrays.
          where: which of them are masks of this recipe.
          finished: whether pruning has come to its end; before, there may be more connections.

        Raises:
          ConfigError: if a mask does not have the structure or the number of connections of the
            recipe; the message names its path.
        """
        leaves = named_leaves(masks, where)
        shapes, names = [leaf.shape for leaf in leaves.values()], list(leaves)
        self._check_fits(dict(zip(names, shapes, strict=True)))
        structure = self.structure or unstructured()
        counts: dict[str, int] = {}
        finals: dict[str, int] = {}
        for (name, mask), units in zip(leaves.items(), self.units(shapes, names), strict=True):
            layout = structure.layout(mask.shape)
            active = layout.active(mask)
            per_group = jnp.sum(active, axis=1)
            whole_units = (layout.mask(active, mask.shape) == mask).all()
            if not whole_units or (per_group != per_group[0]).any():
                raise ConfigError(
                    f"{name}: the mask does not have the structure {structure}; give masks of the "
                    "same recipe"
                )
            counts[name], finals[name] = int(mask.sum()), structure.connections(mask.shape, units)
        if not (self.prunes or self.rules.keep_counts):
            return
        if self.scope == "global":
            counts, finals = ({"all layers": sum(of.values())} for of in (counts, finals))
        exact = finished or not self.prunes or self.schedule is None
        for name, count in counts.items():
            if count < finals[name] or (exact and count > finals[name]):
                remedy = "give masks of the same recipe"
                if finished and count > finals[name]:
                    remedy = "nothing is pruned at steps whose gradients are not finite"
                raise ConfigError(
                    f"{name}: the mask has {count} active connections, but the recipe requires "
                    f"{'' if exact else 'at least '}{finals[name]}; {remedy}"
                )

    def is_due(self, step: Array) -> Array:
        """Whether connections change at a step, counted from 1."""
        return jnp.asarray(self.times.is_due(step))

    def change(
        self,
        params: PyTree,
        masks: PyTree,
        layers: Mapping[str, Layer],
        key: Array,
        step: Array | int = 0,
    ) -> Changed:
        """Changes the connections of some layers; all methods change connections with this.

        Args:
          params, masks: trees of the same structure that contain the layers.
          layers: layers by path; kept connections have the weights of these.
          key: PRNG key; the number of each layer is folded in.
          step: current step, for a schedule of ``fraction`` or of pruning.
        """
        if self.prunes:
            return self._pruned(params, masks, layers, key, step)

        def change_leaf(path: tuple, weight: Array, mask: Array) -> tuple[Array, Array, Array]:
            layer = layers.get(path_name(path))
            if layer is None:
                return weight, mask, jnp.ones(weight.shape, bool)
            return self.change_layer(layer, key, step)

        triples = jax.tree_util.tree_map_with_path(change_leaf, params, masks)
        outer = jax.tree.structure(params)
        return Changed(*jax.tree.transpose(outer, jax.tree.structure((0, 0, 0)), triples))

    def change_layer(
        self, layer: Layer, key: Array, step: Array | int = 0
    ) -> tuple[Array, Array, Array]:
        """Changes one layer; returns its weights, its mask, and which connections were kept."""
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
        progress = self.times(step)
        structure = self.structure or unstructured()
        counts = {}
        for name, shape, units in zip(
            layers, shapes, self.units(shapes, list(layers)), strict=True
        ):
            all_units = structure.layout(shape).sizes[1]
            # Rounded down, so that nothing is pruned too early; the final count is exact.
            share = jnp.asarray(progress, jnp.float32)
            removed = jnp.floor(share * (all_units - units) + 1e-3).astype(jnp.int32)
            # Above 2^24 connections a float32 no longer holds each whole number.
            counts[name] = jnp.where(share >= 1, units, jnp.maximum(all_units - removed, units))
        if self.straight_through:
            layers = {
                name: layer._replace(mask=jnp.ones_like(layer.mask))
                for name, layer in layers.items()
            }
        drop = self.rules.drop
        assert drop is not None  # as _check_pruning says
        remaining = pruned(layers, drop, counts, key, self.structure, self.scope)
        new_masks = with_leaves(masks, remaining)
        if self.straight_through:
            return Changed(params, new_masks, jax.tree.map(jnp.ones_like, new_masks))
        return Changed(apply_masks(params, new_masks), new_masks, new_masks)


def _required(names: Sequence[str] | None) -> Sequence[str]:
    if names is None:
        raise ConfigError(
            "density= refers to paths, and the paths of the layers are unknown; pass names="
        )
    return names


def _densities(
    density: Callable[[Mapping[str, tuple[int, ...]]], Mapping[str, float]],
    shapes: Sequence[Sequence[int]],
    names: Sequence[str],
) -> list[float]:
    """The density of each of these layers according to a function."""
    densities = density({name: tuple(shape) for name, shape in zip(names, shapes, strict=True)})
    missing = [name for name in names if name not in densities]
    if missing:
        raise ConfigError(
            f"density= returns nothing for {', '.join(missing)}; return a density for each path"
        )
    return [densities[name] for name in names]
