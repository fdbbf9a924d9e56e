"""Structures: which connections are added and removed together, and where their number is fixed.

A structure divides the connections of a layer into **units**, each active or inactive as a whole,
and the units into **groups** of equal size. All groups always have the same number of active units:

=================  ====================  ===========================
structure          unit                  group
=================  ====================  ===========================
`unstructured`     a connection          the whole layer
`block`            a tile of the matrix  the whole layer
`channel`          a channel             the whole layer
`fan_in`           a connection          the connections of an output
`n_of_m`           a connection          M consecutive inputs of an output
=================  ====================  ===========================

:func:`tile_of` finds the tiles of a given mask.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from fsjax.arguments import Count, check
from fsjax.errors import ConfigError
from fsjax.sparsity.kth import ordered_bits, smallest

#: Largest group whose units are compared pairwise; for larger ones bisection is faster.
MAX_COMPARED = 32

#: Lengths of the sides of tiles.
_SIDES = (64, 32, 16, 8, 4, 2)

#: Largest share of stored inputs per output, including padding, at which fan-in or tiles can be
#: faster than a dense matrix.
MAX_PADDED = 0.5


class Layout(NamedTuple):
    """The units and groups of one layer.

    Attributes:
      split: shape of the layer after the axes are split into groups, units and entries.
      order: permutation of these axes that puts groups first, then units, then entries.
      sizes: number of groups G, of units per group U, and of entries per unit E.
    """

    split: tuple[int, ...]
    order: tuple[int, ...]
    sizes: tuple[int, int, int]

    def scores(self, values: Array) -> Array:
        """Scores of the units, ``(G, U)``: the float32 means of their entries.

        Units of a single entry keep its score and type.
        """
        groups, units, entries = self.sizes
        cut = values.reshape(self.split).transpose(self.order).reshape(groups, units, entries)
        return cut[..., 0] if entries == 1 else jnp.mean(cut.astype(jnp.float32), axis=-1)

    def active(self, mask: Array) -> Array:
        """Active units, bool ``(G, U)``; the first entry of each unit stands for all."""
        groups, units, entries = self.sizes
        cut = mask.reshape(self.split).transpose(self.order).reshape(groups, units, entries)
        return cut[..., 0]

    def mask(self, active: Array, shape: Sequence[int]) -> Array:
        """The mask, in the given shape of the layer, from its active units ``(G, U)``."""
        entries = jnp.broadcast_to(active[..., None], self.sizes)
        cut = entries.reshape([self.split[axis] for axis in self.order])
        inverse = sorted(range(len(self.order)), key=self.order.__getitem__)
        return cut.transpose(inverse).reshape(tuple(shape))


@dataclasses.dataclass(frozen=True)
class Structure:
    """A structure, from one of the functions of this module.

    Attributes:
      name: the call that creates it, as in ``"block(4, 4)"``.
      layout: function from the shape of a layer to its units and groups; raises ConfigError if
        the structure does not fit the shape.
      fixed_density: share of active units, if the structure determines it (N:M); else ``None``.
      group: M for N:M along the inputs, else ``None``.
      needs_axes: whether it matters which axes of a layer are inputs and outputs.
    """

    name: str
    layout: Callable[[tuple[int, ...]], Layout]
    fixed_density: float | None = None
    group: int | None = None
    needs_axes: bool = True

    def count(self, shape: Sequence[int], density: float) -> int:
        """Number of active units per group, at least 1, for a density in (0, 1]."""
        units = self.layout(tuple(shape)).sizes[1]
        return min(max(round(density * units), 1), units)

    def connections(self, shape: Sequence[int], units: int) -> int:
        """Number of active connections of a layer with ``units`` active units per group."""
        groups, _, entries = self.layout(tuple(shape)).sizes
        return groups * units * entries

    def __repr__(self) -> str:
        return self.name


def unstructured() -> Structure:
    """Single connections; their number is fixed for each layer."""

    def layout(shape: tuple[int, ...]) -> Layout:
        return Layout(shape, tuple(range(len(shape))), (1, math.prod(shape), 1))

    return Structure("unstructured()", layout, needs_axes=False)


def block(height: int, width: int) -> Structure:
    """Tiles of ``height`` inputs by ``width`` outputs, in the last two axes.

    Args:
      height, width: sides of a tile, at least 1 (else ConfigError). Each must divide its axis in
        every masked layer; otherwise ``init`` of the optimiser raises ConfigError.
    """
    check(Count, height=height)
    check(Count, width=width)
    name = f"block({height}, {width})"

    def layout(shape: tuple[int, ...]) -> Layout:
        if len(shape) < 2:
            raise ConfigError(f"{name} does not fit a layer of shape {shape}; it needs two axes")
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
    """Whole channels: all connections at one position along an axis.

    Args:
      axis: the axis of the channels: -1 for output channels, -2 for input channels, also for
        Equinox, because :func:`fsjax.sparsity.sparse` turns its kernels. If a masked layer does not
        have the axis, ``init`` of the optimiser raises ConfigError.

    Examples:
      >>> schedule = sparsity.polynomial(20, 150, every=10)
      >>> neurons = sparsity.magnitude(0.2, schedule=schedule, structure=sparsity.channel())
      >>> equal_inputs = sparsity.magnitude(0.2, schedule=schedule, structure=sparsity.fan_in())
    """
    name = f"channel(axis={axis})"

    def layout(shape: tuple[int, ...]) -> Layout:
        order = _axis_first(name, axis, shape)
        units = shape[order[0]]
        return Layout(shape, order, (1, units, math.prod(shape) // units))

    return Structure(name, layout)


def fan_in(output_axis: int = -1) -> Structure:
    """Constant fan-in: the same number of inputs for each output (SRigL, Lasby et al., ICLR 2024).

    Args:
      output_axis: the axis of the outputs; the last one also for Equinox, because
        :func:`fsjax.sparsity.sparse` turns its kernels.
    """
    name = f"fan_in(output_axis={output_axis})"

    def layout(shape: tuple[int, ...]) -> Layout:
        order = _axis_first(name, output_axis, shape)
        outputs = shape[order[0]]
        return Layout(shape, order, (outputs, math.prod(shape) // outputs, 1))

    return Structure(name, layout)


def n_of_m(n: int, m: int, axis: int = -2) -> Structure:
    """N:M sparsity: N of every M consecutive connections along an axis (Mishra et al., 2021).

    Args:
      n: active connections per group, from 1 to ``m`` (else ConfigError).
      m: size of the groups. It must divide the axis in every masked layer; otherwise ``init`` of
        the optimiser raises ConfigError.
      axis: the axis of the groups; by default the inputs.

    Examples:
      >>> schedule = sparsity.polynomial(20, 150, every=10)
      >>> halves = sparsity.magnitude(schedule=schedule, structure=sparsity.n_of_m(2, 4))
      >>> blocks = sparsity.magnitude(0.2, schedule=schedule, structure=sparsity.block(8, 8))
      >>> single = sparsity.magnitude(0.2, schedule=schedule, structure=sparsity.unstructured())
    """
    check(Count, n=n)
    check(Count, m=m)
    if n > m:
        raise ConfigError(f"n_of_m({n}, {m}): n={n} is larger than m={m}; choose n from 1 to {m}")
    name = f"n_of_m({n}, {m})" if axis == -2 else f"n_of_m({n}, {m}, axis={axis})"

    def layout(shape: tuple[int, ...]) -> Layout:
        position = _axis_first(name, axis, shape)[0]
        _check_divides(name, m, shape[position], shape)
        split = (*shape[:position], shape[position] // m, m, *shape[position + 1 :])
        order = (*(other for other in range(len(split)) if other != position + 1), position + 1)
        return Layout(split, order, (math.prod(shape) // m, m, 1))

    return Structure(name, layout, n / m, m if axis == -2 else None)


def lowest(scores: Array, count: Array | int, among: Array) -> Array:
    """Marks the ``count`` lowest scores of each group, exactly ``min(count, candidates)``.

    Among equal scores, the lowest positions are marked.

    Args:
      scores: ``(G, U)``, as in :func:`fsjax.sparsity.smallest`.
      count: one number for all groups, or ``(G,)``; may be traced.
      among: bool ``(G, U)``, the candidates.

    Returns:
      Bool ``(G, U)``.
    """
    groups, units = scores.shape
    counts = jnp.broadcast_to(jnp.asarray(count, jnp.int32), (groups,))
    if groups == 1:
        return smallest(scores[0], counts[0], among[0])[None]
    if units > MAX_COMPARED:
        return jax.vmap(smallest)(scores, counts, among)
    bits = ordered_bits(scores)
    position = jnp.arange(units)
    before = (bits[:, :, None] < bits[:, None, :]) | (
        (bits[:, :, None] == bits[:, None, :]) & (position[:, None] < position)
    )
    rank = jnp.sum(before & among[:, :, None], axis=1)
    return among & (rank < counts[:, None])


def highest(scores: Array, count: Array | int, among: Array) -> Array:
    """Marks the ``count`` highest scores of each group; otherwise as :func:`lowest`."""
    return lowest(~ordered_bits(scores), count, among)


def tile_of(mask: np.ndarray) -> tuple[int, int] | None:
    """The largest tile ``(height, width)`` that fits a mask ``(I, O)``.

    Returns:
      ``None`` if there is no tile larger than 1 x 1, or if more than half of the tiles are active.
    """
    sizes = [(h, w) for h in (*_SIDES, 1) for w in (*_SIDES, 1) if h * w > 1]
    for height, width in sorted(sizes, key=math.prod, reverse=True):
        if mask.shape[0] % height or mask.shape[1] % width:
            continue
        tiles = cut_into_tiles(mask, height, width)
        active = tiles.all((2, 3))
        if (active == tiles.any((2, 3))).all() and 0 < active.mean() <= MAX_PADDED:
            return height, width
    return None


def cut_into_tiles(values: np.ndarray, height: int, width: int) -> np.ndarray:
    """Splits a matrix ``(I, O)`` into tiles, ``(O / w, I / h, h, w)``."""
    rows, columns = values.shape
    cut = values.reshape(rows // height, height, columns // width, width)
    return cut.transpose(2, 0, 1, 3)


def _axis_first(name: str, axis: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The axes of a layer, with one of them moved to the front."""
    if not -len(shape) <= axis < len(shape):
        raise ConfigError(
            f"{name} does not fit a layer of shape {shape}; choose an axis from {-len(shape)} to "
            f"{len(shape) - 1}"
        )
    first = axis % len(shape)
    return (first, *(other for other in range(len(shape)) if other != first))


def _check_divides(name: str, size: int, length: int, shape: tuple[int, ...]) -> None:
    if length % size:
        raise ConfigError(
            f"{name} does not fit a layer of shape {shape}, as {size} does not divide {length}; "
            "choose another size, or leave the layer out with the path filter `where`"
        )
