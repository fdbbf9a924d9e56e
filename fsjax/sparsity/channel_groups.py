"""Groups of channels that can be removed from a network, one channel at a time."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

import numpy as np

from fsjax.sparsity.channels import ChannelReader, ChannelValue
from fsjax.sparsity.program import Traced, trace
from fsjax.typing import PyTree

#: The path of a parameter, and the number of one of its axes.
Axis = tuple[str, int]


@dataclasses.dataclass(frozen=True)
class ChannelGroup:
    """Channels each of which can be removed: the same axes of the same parameters hold them.

    Attributes:
      name: path of the first parameter whose outputs they are; with a number, ``path[0]``, if its
        outputs are of several groups.
      size: number of channels.
      entries: for each axis, the entries ``(size, ...)`` that go with each channel.
      made: axes of the weights whose outputs the channels are.
      used: axes of the weights whose inputs the channels are.
    """

    name: str
    size: int
    entries: Mapping[Axis, np.ndarray]
    made: tuple[Axis, ...]
    used: tuple[Axis, ...]


class Channels(NamedTuple):
    """What can be removed from a network.

    Attributes:
      groups: of channels, in the order of the parameters.
      kept: by path, why no output of these weights can be removed.
    """

    groups: tuple[ChannelGroup, ...]
    kept: dict[str, str]


def channel_groups(function: Callable, params: PyTree, *inputs: PyTree) -> Channels:
    """Reads from the program of a network which channels can be removed from it.

    Args:
      function, params, *inputs: as for :func:`fsjax.sparsity.axes`.
    """
    traced = trace(function, params, *inputs)
    reader = ChannelReader()
    axes = _numbered(reader, traced)
    outputs = reader.run(
        traced.program,
        [
            *_parameters(traced, axes),
            *(
                reader.fixed_value(leaf.shape, "it is an axis of the inputs")
                for leaf in traced.inputs
            ),
        ],
    )
    for output in outputs:
        reader.fix(output, "it is an axis of the outputs")
    made, used = (_spread(reader, notes) for notes in (reader.made, reader.used))
    units = _units(reader, axes)
    second = list(_second_outputs(axes, units, made))
    for labels in second:
        reader.numbers.fix(labels, "whole entries of an earlier axis of outputs are removed")
    if second:
        units = _units(reader, axes)
    return _grouped(reader, axes, units, made, used)


def _numbered(reader: ChannelReader, traced: Traced) -> dict[Axis, np.ndarray]:
    return {
        (path, axis): reader.numbers.new(size)
        for path, leaf in traced.params.items()
        for axis, size in enumerate(leaf.shape)
        if size > 1
    }


def _parameters(traced: Traced, axes: Mapping[Axis, np.ndarray]) -> list[ChannelValue]:
    return [
        ChannelValue(tuple(axes.get((path, axis)) for axis in range(len(leaf.shape))), "weights")
        for path, leaf in traced.params.items()
    ]


def _spread(reader: ChannelReader, notes: set[int]) -> set[int]:
    """What was noted of cells of a grid holds for their coordinates, and the other way round."""
    spread = set(notes)
    for grid in (*reader.grids, *reversed(reader.grids)):
        for coordinates in grid.coordinates:
            for cell, coordinate in zip(grid.cells.tolist(), coordinates.tolist(), strict=True):
                if cell in spread or coordinate in spread:
                    spread |= {cell, coordinate}
    return spread


def _units(reader: ChannelReader, axes: Mapping[Axis, np.ndarray]) -> dict[Axis, np.ndarray]:
    """For each entry of an axis, the number of the channel that it goes with, or -1."""
    cells = _cells(reader)

    def unit(label: int) -> int:
        while label >= 0 and label in cells:
            label = cells[label]
        return -1 if label < 0 or reader.numbers.reason(label) else label

    return {
        axis: np.array([unit(root) for root in reader.numbers.roots(labels)])
        for axis, labels in axes.items()
    }


def _cells(reader: ChannelReader) -> dict[int, int]:
    """For each cell of a grid, the coordinate with which it is removed, or -1.

    Fixes coordinates until all agree: those of a cell that cannot be removed or that lies in two
    different grids, and all but the first of a cell's that are left.
    """
    numbers = reader.numbers
    while True:
        places: dict[int, set[tuple[int, ...]]] = defaultdict(set)
        changed, chosen = False, {}
        for grid in reader.grids:
            coordinates = [numbers.roots(labels).tolist() for labels in grid.coordinates]
            for cell, *at in zip(numbers.roots(grid.cells).tolist(), *coordinates, strict=True):
                if cell not in at:
                    places[cell].add(tuple(at))
                    continue
                # One with a coordinate, as the channels in a group of a norm are.
                lost = [c for c in at if c != cell and not numbers.reason(c)]
                numbers.fix(np.array(lost, int), "it is an axis within groups")
                changed |= bool(lost)
        for cell, several in places.items():
            alive = [[c for c in at if not numbers.reason(c)] for at in several]
            reason = numbers.reason(cell) or ("it is split in two ways" if len(several) > 1 else "")
            lost = [c for at in alive for c in (at if reason else at[1:])]
            reason = reason or "whole entries of an earlier axis of outputs are removed"
            numbers.fix(np.array(lost, int), reason)
            changed |= bool(lost)
            chosen[cell] = alive[0][0] if alive[0] else -1
        if not changed:
            return chosen


def _second_outputs(
    axes: Mapping[Axis, np.ndarray], units: Mapping[Axis, np.ndarray], made: set[int]
) -> Iterator[np.ndarray]:
    """Later axes of outputs of a parameter: heads are removed, not positions in all heads."""
    first: dict[str, int] = {}
    for (path, axis), labels in axes.items():
        if (units[path, axis] >= 0).any() and made.intersection(labels.tolist()):
            if first.setdefault(path, axis) != axis:
                yield labels


def _grouped(
    reader: ChannelReader,
    axes: Mapping[Axis, np.ndarray],
    units: Mapping[Axis, np.ndarray],
    made: set[int],
    used: set[int],
) -> Channels:
    entries: dict[int, dict[Axis, list[int]]] = defaultdict(lambda: defaultdict(list))
    for axis, of_axis in units.items():
        for entry, unit in enumerate(of_axis.tolist()):
            if unit >= 0:
                entries[unit][axis].append(entry)
    groups: dict[tuple, list[int]] = defaultdict(list)
    for unit, by_axis in entries.items():
        roles = [
            any(notes.intersection(axes[axis][at].tolist()) for axis, at in by_axis.items())
            for notes in (made, used)
        ]
        if all(roles):
            groups[tuple((axis, len(at)) for axis, at in by_axis.items())].append(unit)
    found = []
    for key, members in groups.items():
        if len(members) < 2:
            continue
        held = {axis: np.array([entries[unit][axis] for unit in members]) for axis, _ in key}
        outputs, inputs = (
            tuple(a for a, at in held.items() if notes.intersection(axes[a][at.ravel()].tolist()))
            for notes in (made, used)
        )
        name = outputs[0][0] if outputs else key[0][0][0]
        found.append(ChannelGroup(name, len(members), held, outputs, inputs))
    shrinking = {path for group in found for path, _ in group.made}
    kept = {
        axis[0]: _reason(reader, labels)
        for axis, labels in axes.items()
        if axis[0] not in shrinking and made.intersection(labels.tolist())
    }
    return Channels(_distinct(found), kept)


def _distinct(groups: list[ChannelGroup]) -> tuple[ChannelGroup, ...]:
    """The groups with numbers in names that several have."""
    names = [group.name for group in groups]
    return tuple(
        dataclasses.replace(group, name=f"{group.name}[{names[:place].count(group.name)}]")
        if names.count(group.name) > 1
        else group
        for place, group in enumerate(groups)
    )


def _reason(reader: ChannelReader, labels: np.ndarray) -> str:
    """Why an axis cannot shrink, from its entries or from the axes that it is split to."""
    related = [labels]
    for grid in reader.grids:
        if np.isin(reader.numbers.roots(grid.cells), reader.numbers.roots(labels)).any():
            related += grid.coordinates
    reasons = (reader.numbers.reason(label) for part in related for label in part.tolist())
    return next(filter(None, reasons), "its outputs can only go all at once, or nothing reads them")
