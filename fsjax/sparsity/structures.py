"""Which connections of a layer come and go together, and in which parts of it the count is exact.

A structure cuts the connections of a layer into **units**, each active or inactive as a whole, and
the units into **groups** of one size. Every group has the same number of active units, always:

=================  ====================  ===========================
structure          unit                  group
=================  ====================  ===========================
`unstructured`     a connection          the whole layer
`block`            a tile of the matrix  the whole layer
`channel`          a channel             the whole layer
`fan_in`           a connection          all inputs of an output
`n_of_m`           a connection          M consecutive inputs
=================  ====================  ===========================
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from fsjax.arguments import Count, check
from fsjax.errors import ConfigError
from fsjax.sparsity.kth import ordered_bits, smallest

#: Units in a group up to which each is compared with each, which is cheaper than a bisection.
COMPARED = 32


class Layout(NamedTuple):
    """Where the units and groups of one layer are.

    Attributes:
      split: shape of the layer with the axes of units and groups apart.
      order: permutation of these axes: of the groups, of the units, of the entries of a unit.
      sizes: groups G, units of a group U, entries of a unit E.
    """

    split: tuple[int, ...]
    order: tuple[int, ...]
    sizes: tuple[int, int, int]

    def scores(self, values: Array) -> Array:
        """What units score, float32 ``(G, U)``: the mean of their entries; integers stay."""
        groups, units, entries = self.sizes
        cut = values.reshape(self.split).transpose(self.order).reshape(groups, units, entries)
        return cut[..., 0] if entries == 1 else jnp.mean(cut.astype(jnp.float32), axis=-1)

    def active(self, mask: Array) -> Array:
        """Which units are active, bool ``(G, U)``; their entries all are, or none."""
        groups, units, entries = self.sizes
        cut = mask.reshape(self.split).transpose(self.order).reshape(groups, units, entries)
        return cut[..., 0]

    def mask(self, active: Array, shape: Sequence[int]) -> Array:
        """The mask of a layer of some shape whose units ``(G, U)`` are active."""
        entries = jnp.broadcast_to(active[..., None], self.sizes)
        cut = entries.reshape([self.split[axis] for axis in self.order])
        inverse = sorted(range(len(self.order)), key=self.order.__getitem__)
        return cut.transpose(inverse).reshape(tuple(shape))


@dataclasses.dataclass(frozen=True)
class Structure:
    """A structure, from one of the functions of this module.

    Attributes:
      name: as it is written.
      layout: from the shape of a layer to its units and groups; raises ConfigError for a shape
        that the structure does not fit.
      fixed_density: share of active units, where the structure has one of its own (N:M).
      group: M of N:M along the inputs, else ``None``.
    """

    name: str
    layout: Callable[[tuple[int, ...]], Layout]
    fixed_density: float | None = None
    group: int | None = None

    def count(self, shape: Sequence[int], density: float) -> int:
        """Active units of each group of a layer, at least 1, for a share of active connections."""
        units = self.layout(tuple(shape)).sizes[1]
        return min(max(round(density * units), 1), units)

    def connections(self, shape: Sequence[int], units: int) -> int:
        """Active connections of a layer with so many active units in each group."""
        groups, _, entries = self.layout(tuple(shape)).sizes
        return groups * units * entries

    def __repr__(self) -> str:
        return self.name


def unstructured() -> Structure:
    """Each connection by itself."""

    def layout(shape: tuple[int, ...]) -> Layout:
        return Layout(shape, tuple(range(len(shape))), (1, math.prod(shape), 1))

    return Structure("unstructured()", layout)


def block(height: int, width: int) -> Structure:
    """Tiles of the last two axes, ``height`` inputs by ``width`` outputs.

    Args:
      height, width: at least 1; each must divide its axis of every masked layer.
    """
    check(Count, height=height)
    check(Count, width=width)
    name = f"block({height}, {width})"

    def layout(shape: tuple[int, ...]) -> Layout:
        _check_axes(name, shape, 2)
        rows, columns = shape[-2:]
        _check_divides(name, height, rows, shape)
        _check_divides(name, width, columns, shape)
        split = (*shape[:-2], rows // height, height, columns // width, width)
        outer = len(shape) - 2
        order = (*range(outer), outer, outer + 2, outer + 1, outer + 3)
        entries = height * width
        return Layout(split, order, (1, math.prod(shape) // entries, entries))

    return Structure(name, layout)


def channel(axis: int = -1) -> Structure:
    """Whole channels: all connections at one position of an axis.

    Args:
      axis: of the channels; the last one are the outputs of a layer of Flax, the first one (0)
        those of Equinox, the second last (-2) the inputs of a layer of Flax.
    """
    name = f"channel(axis={axis})"

    def layout(shape: tuple[int, ...]) -> Layout:
        place = _axis(name, axis, shape)
        order = (place, *(other for other in range(len(shape)) if other != place))
        units = shape[place]
        return Layout(shape, order, (1, units, math.prod(shape) // units))

    return Structure(name, layout)


def fan_in(output_axis: int = -1) -> Structure:
    """As many inputs for each output (SRigL, Lasby et al., ICLR 2024).

    Args:
      output_axis: of the outputs; the last one in Flax, the first one (0) in Equinox.
    """
    name = f"fan_in(output_axis={output_axis})"

    def layout(shape: tuple[int, ...]) -> Layout:
        place = _axis(name, output_axis, shape)
        order = (place, *(other for other in range(len(shape)) if other != place))
        outputs = shape[place]
        return Layout(shape, order, (outputs, math.prod(shape) // outputs, 1))

    return Structure(name, layout)


def n_of_m(n: int, m: int, axis: int = -2) -> Structure:
    """N of M consecutive connections along an axis (N:M; Mishra et al., 2021).

    Args:
      n: active connections of each group, from 1 to ``m``.
      m: size of the groups; it must divide the axis of every masked layer.
      axis: by default the inputs of a layer of Flax.
    """
    check(Count, n=n)
    check(Count, m=m)
    if n > m:
        raise ConfigError(f"n_of_m({n}, {m}): n must be at most m")
    name = f"n_of_m({n}, {m})" if axis == -2 else f"n_of_m({n}, {m}, axis={axis})"

    def layout(shape: tuple[int, ...]) -> Layout:
        place = _axis(name, axis, shape)
        _check_divides(name, m, shape[place], shape)
        split = (*shape[:place], shape[place] // m, m, *shape[place + 1 :])
        order = (*(other for other in range(len(split)) if other != place + 1), place + 1)
        return Layout(split, order, (math.prod(shape) // m, m, 1))

    return Structure(name, layout, n / m, m if axis == -2 else None)


def lowest(scores: Array, count: Array | int, among: Array) -> Array:
    """Marks the ``count`` lowest of each group, exactly ``min(count, candidates)``.

    Ties go by position, the lowest first.

    Args:
      scores: ``(G, U)``, as in :func:`fsjax.sparsity.smallest`.
      count: for all groups, or ``(G,)``; may be traced.
      among: bool ``(G, U)``, the candidates.
    """
    groups, units = scores.shape
    counts = jnp.broadcast_to(jnp.asarray(count, jnp.int32), (groups,))
    if groups == 1:
        return smallest(scores[0], counts[0], among[0])[None]
    if units > COMPARED:
        return jax.vmap(smallest)(scores, counts, among)
    bits = ordered_bits(scores)
    position = jnp.arange(units)
    before = (bits[:, :, None] < bits[:, None, :]) | (
        (bits[:, :, None] == bits[:, None, :]) & (position[:, None] < position)
    )
    rank = jnp.sum(before & among[:, :, None], axis=1)
    return among & (rank < counts[:, None])


def highest(scores: Array, count: Array | int, among: Array) -> Array:
    """Marks the ``count`` highest of each group; otherwise as :func:`lowest`."""
    return lowest(~ordered_bits(scores), count, among)


def _axis(name: str, axis: int, shape: tuple[int, ...]) -> int:
    if not -len(shape) <= axis < len(shape):
        raise ConfigError(f"{name} does not fit a layer of shape {shape}, which has no such axis")
    return axis % len(shape)


def _check_axes(name: str, shape: tuple[int, ...], least: int) -> None:
    if len(shape) < least:
        raise ConfigError(f"{name} does not fit a layer of shape {shape}; it needs {least} axes")


def _check_divides(name: str, size: int, whole: int, shape: tuple[int, ...]) -> None:
    if whole % size:
        raise ConfigError(
            f"{name} does not fit a layer of shape {shape}, as {size} does not divide {whole}; "
            "choose another size, or leave the layer out with the path filter `where`"
        )
