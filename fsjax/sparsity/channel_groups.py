"""Numbers of the entries of axes, and the groups of channels that they make up.

Entries that operations unite can only be removed together (a union-find structure). An axis that is
merged of several, or split to several, is a grid: its cells go with their coordinates.
"""

from __future__ import annotations

import dataclasses
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

#: For an axis of a value, the number of each entry, negative for one that cannot be removed; or
#: ``None`` if all its entries are equal, as after broadcasting.
Labels = np.ndarray | None

#: The path of a parameter, and the number of one of its axes.
Axis = tuple[str, int]

_WHOLE_ENTRIES = "whole entries of an earlier axis of outputs are removed"


@dataclasses.dataclass(frozen=True)
class ChannelGroup:
    """Channels each of which can be removed: the same axes of the same parameters hold them.

    Attributes:
      name: path of the first parameter whose outputs they are; with a number, ``path[0]``, if its
        outputs are of several groups.
      size: number of channels.
      entries: for each axis, the entries ``(size, ...)`` that go with each channel.
      output_axes: axes of the weights whose outputs the channels are.
      input_axes: axes of the weights whose inputs the channels are.
    """

    name: str
    size: int
    entries: Mapping[Axis, np.ndarray]
    output_axes: tuple[Axis, ...]
    input_axes: tuple[Axis, ...]


class Channels(NamedTuple):
    """What can be removed from a network.

    Attributes:
      groups: of channels, in the order of the parameters.
      reasons: by path, why no output of these weights can be removed.
    """

    groups: tuple[ChannelGroup, ...]
    reasons: dict[str, str]


@dataclasses.dataclass(frozen=True, eq=False)
class Grid:
    """An axis that is a grid of several, as ``(heads, head_dim)`` is.

    Attributes:
      cells: labels of the entries of the one axis.
      coordinates: for each of the several axes, the label of each cell's coordinate. A cell goes
        if one of its coordinates does.
    """

    cells: np.ndarray
    coordinates: list[np.ndarray]


class EntryNumbers:
    """Numbers of entries, and what a program says of them.

    Attributes:
      outputs: numbers of entries that are outputs of weights.
      inputs: numbers of entries that are inputs of weights.
    """

    def __init__(self) -> None:
        self.outputs: set[int] = set()
        self.inputs: set[int] = set()
        self._grids: list[Grid] = []
        self._parents: list[int] = []
        self._reason_of_root: dict[int, str] = {}
        self._reasons: list[str] = []

    def new(self, count: int) -> np.ndarray:
        """Numbers of entries that nothing was said of yet."""
        start = len(self._parents)
        self._parents.extend(range(start, start + count))
        return np.arange(start, start + count)

    def fixed(self, count: int, reason: str) -> np.ndarray:
        """Labels of entries that cannot be removed."""
        if reason not in self._reasons:
            self._reasons.append(reason)
        return np.full(count, -1 - self._reasons.index(reason))

    def fixed_axis(self, size: int, reason: str) -> Labels:
        """Labels of an axis that cannot shrink."""
        return None if size == 1 else self.fixed(size, reason)

    def roots(self, labels: np.ndarray) -> np.ndarray:
        """The same number for united entries; negative labels stay."""
        return np.array([label if label < 0 else self._root(int(label)) for label in labels], int)

    def reason(self, label: int) -> str:
        """Why an entry cannot be removed; empty if it can."""
        if label < 0:
            return self._reasons[-1 - label]
        return self._reason_of_root.get(self._root(label), "")

    def fix(self, labels: Labels, reason: str) -> None:
        """Notes that entries cannot be removed."""
        for label in [] if labels is None else np.unique(labels):
            if label >= 0:
                self._reason_of_root.setdefault(self._root(int(label)), reason)

    def unite(self, labels: np.ndarray, partners: np.ndarray) -> None:
        """Notes that entries can only be removed together, one by one."""
        if labels is partners:
            return
        for label, partner in zip(labels.tolist(), partners.tolist(), strict=True):
            low, high = sorted((label, partner))
            if high < 0:
                continue
            if low < 0:
                self._reason_of_root.setdefault(self._root(high), self.reason(low))
                continue
            root, merged = sorted((self._root(low), self._root(high)))
            if root != merged:
                self._parents[merged] = root
                if merged in self._reason_of_root:
                    self._reason_of_root.setdefault(root, self._reason_of_root.pop(merged))

    def reshaped(
        self, axes: Sequence[Labels], old: Sequence[int], new: Sequence[int]
    ) -> list[Labels]:
        """Labels of the axes of lengths ``new`` to which those of lengths ``old`` are reshaped."""
        longer = [(labels, size) for labels, size in zip(axes, old, strict=True) if size > 1]
        cells = self._merged([labels for labels, _ in longer], [size for _, size in longer])
        sizes = [size for size in new if size > 1]
        if cells is None:
            return [None] * len(new)
        parts = iter([cells] if len(sizes) == 1 else self._split(cells, sizes))
        return [next(parts) if size > 1 else None for size in new]

    def _merged(self, axes: Sequence[Labels], sizes: Sequence[int]) -> Labels:
        """Labels of the axis that several axes are merged to."""
        if len(axes) < 2:
            return axes[0] if axes else None
        places = np.indices(sizes).reshape(len(sizes), -1)
        by_axis = {k: labels[places[k]] for k, labels in enumerate(axes) if labels is not None}
        removable = [k for k in by_axis if is_removable(axes[k])]
        if len(removable) > 1:
            cells = self.new(math.prod(sizes))
            self._grids.append(Grid(cells, [by_axis[k] for k in removable]))
            return cells
        chosen = removable or list(by_axis)
        return by_axis[chosen[0]] if chosen else None

    def _split(self, cells: np.ndarray, sizes: Sequence[int]) -> list[Labels]:
        """Labels of the axes that one axis is split to: those of an earlier grid, or new ones."""
        candidates, roots = [[cells]], self.roots(cells)
        for grid in self._grids:
            if np.array_equal(self.roots(grid.cells), roots):
                candidates.insert(0, grid.coordinates)
        for coordinates in candidates:
            axes = [self._constant_along(coordinates, sizes, k) for k in range(len(sizes))]
            if any(labels is not None for labels in axes):
                return [
                    self.fixed_axis(size, "it is split into parts") if labels is None else labels
                    for labels, size in zip(axes, sizes, strict=True)
                ]
        new = [self.new(size) for size in sizes]
        places = np.indices(sizes).reshape(len(sizes), -1)
        grid = Grid(cells, [labels[place] for labels, place in zip(new, places, strict=True)])
        is_fixed = cells < 0
        if is_fixed.any():
            for labels in grid.coordinates:
                self.fix(labels[is_fixed], self.reason(int(cells[is_fixed][0])))
        self._grids.append(grid)
        return list(new)

    def _constant_along(
        self, candidates: Sequence[np.ndarray], sizes: Sequence[int], axis: int
    ) -> Labels:
        """Of labels of cells, those that only change along one axis of the grid."""
        for labels in candidates:
            roots = np.moveaxis(self.roots(labels).reshape(sizes), axis, 0)
            roots = roots.reshape(sizes[axis], -1)
            if (roots == roots[:, :1]).all() and (roots < 0).all() | (len(np.unique(roots)) > 1):
                cells = np.moveaxis(labels.reshape(sizes), axis, 0)
                return cells.reshape(sizes[axis], -1)[:, 0]
        return None

    def _root(self, label: int) -> int:
        parents = self._parents
        while parents[label] != label:
            parents[label] = parents[parents[label]]
            label = parents[label]
        return label

    def groups(self, axes: Mapping[Axis, np.ndarray]) -> Channels:
        """The channels of parameters, when all of a program has been followed.

        Args:
          axes: the labels of each axis of each parameter.
        """
        outputs, inputs = (self._with_grids(notes) for notes in (self.outputs, self.inputs))
        channels = self._channels(axes)
        later = list(_later_outputs(axes, channels, outputs))
        for labels in later:
            self.fix(labels, _WHOLE_ENTRIES)
        if later:
            channels = self._channels(axes)
        groups = _grouped(axes, channels, outputs, inputs)
        shrinking = {path for group in groups for path, _ in group.output_axes}
        reasons = {
            path: self._reason_of_axis(labels)
            for (path, _), labels in axes.items()
            if path not in shrinking and outputs.intersection(labels.tolist())
        }
        return Channels(groups, reasons)

    def _with_grids(self, notes: set[int]) -> set[int]:
        """What was noted of cells holds for their coordinates, and the other way round."""
        notes = set(notes)
        for grid in (*self._grids, *reversed(self._grids)):
            for coordinates in grid.coordinates:
                for cell, coordinate in zip(grid.cells.tolist(), coordinates.tolist(), strict=True):
                    if cell in notes or coordinate in notes:
                        notes |= {cell, coordinate}
        return notes

    def _channels(self, axes: Mapping[Axis, np.ndarray]) -> dict[Axis, np.ndarray]:
        """For each entry of an axis, the number of the channel that it goes with, or -1."""
        coordinate_of = self._coordinate_of_cells()

        def channel(label: int) -> int:
            passed = set()
            while label in coordinate_of and label not in passed:
                passed.add(label)
                label = coordinate_of[label]
            return -1 if label < 0 or label in passed or self.reason(label) else label

        return {
            axis: np.array([channel(root) for root in self.roots(labels).tolist()])
            for axis, labels in axes.items()
        }

    def _coordinate_of_cells(self) -> dict[int, int]:
        """For each cell of a grid, the coordinate with which it is removed, or -1.

        Fixes coordinates until all agree: those of a cell that cannot be removed or that lies in
        two different grids, and all but the first of a cell's that can be.
        """
        chosen: dict[int, int] = {}
        num_conflicts = 1
        while num_conflicts:
            places: dict[int, set[tuple[int, ...]]] = defaultdict(set)
            num_conflicts = 0
            for grid in self._grids:
                coordinates = [self.roots(labels).tolist() for labels in grid.coordinates]
                for cell, *place in zip(self.roots(grid.cells).tolist(), *coordinates, strict=True):
                    if cell not in place:
                        places[cell].add(tuple(place))
                        continue
                    # One with a coordinate, as the channels in a group of a norm are.
                    conflicts = [label for label in self._removable(place) if label != cell]
                    self.fix(np.array(conflicts, int), "it is an axis within groups")
                    num_conflicts += len(conflicts)
            # One cell after the other: what is fixed for one leaves fewer choices to the next.
            for cell, several in places.items():
                removable = [self._removable(place) for place in several]
                reason = self.reason(cell) or "it is split in two ways" * (len(several) > 1)
                conflicts = [
                    label for place in removable for label in (place if reason else place[1:])
                ]
                self.fix(np.array(conflicts, int), reason or _WHOLE_ENTRIES)
                num_conflicts += len(conflicts)
                chosen[cell] = removable[0][0] if removable[0] else -1
        return chosen

    def _removable(self, labels: Iterable[int]) -> list[int]:
        return [label for label in labels if not self.reason(label)]

    def _reason_of_axis(self, labels: np.ndarray) -> str:
        """Why an axis cannot shrink, from its entries or from the axes that it is split to."""
        related = [labels]
        for grid in self._grids:
            if np.isin(self.roots(grid.cells), self.roots(labels)).any():
                related += grid.coordinates
        reasons = (self.reason(label) for part in related for label in part.tolist())
        default = "its outputs can only go all at once, or nothing reads them"
        return next(filter(None, reasons), default)


def is_removable(labels: Labels) -> bool:
    """Whether entries of an axis may be removed, as far as its labels tell."""
    return labels is not None and bool((labels >= 0).any())


def _later_outputs(
    axes: Mapping[Axis, np.ndarray], channels: Mapping[Axis, np.ndarray], outputs: set[int]
) -> Iterator[np.ndarray]:
    """Later axes of outputs of a parameter: heads are removed, not positions in all heads."""
    first: dict[str, int] = {}
    for (path, axis), labels in axes.items():
        if (channels[path, axis] >= 0).any() and outputs.intersection(labels.tolist()):
            if first.setdefault(path, axis) != axis:
                yield labels


def _grouped(
    axes: Mapping[Axis, np.ndarray],
    channels: Mapping[Axis, np.ndarray],
    outputs: set[int],
    inputs: set[int],
) -> tuple[ChannelGroup, ...]:
    """Groups of channels that weights make and read, and that the same axes hold."""
    places: dict[int, dict[Axis, list[int]]] = defaultdict(lambda: defaultdict(list))
    for axis, numbers in channels.items():
        for entry, channel in enumerate(numbers.tolist()):
            if channel >= 0:
                places[channel][axis].append(entry)

    def is_noted(axis: Axis, entries: Sequence[int] | np.ndarray, notes: set[int]) -> bool:
        return bool(notes.intersection(axes[axis][np.ravel(entries)].tolist()))

    members: dict[tuple, list[int]] = defaultdict(list)
    for channel, by_axis in places.items():
        if all(
            any(is_noted(axis, of_axis, notes) for axis, of_axis in by_axis.items())
            for notes in (outputs, inputs)
        ):
            members[tuple((axis, len(entries)) for axis, entries in by_axis.items())].append(
                channel
            )
    groups = []
    for key, channel_numbers in members.items():
        if len(channel_numbers) < 2:
            continue
        arrays = {
            axis: np.array([places[number][axis] for number in channel_numbers]) for axis, _ in key
        }
        output_axes, input_axes = (
            tuple(axis for axis, array in arrays.items() if is_noted(axis, array, notes))
            for notes in (outputs, inputs)
        )
        name = (output_axes or tuple(arrays))[0][0]
        groups.append(ChannelGroup(name, len(channel_numbers), arrays, output_axes, input_axes))
    return _distinct(groups)


def _distinct(groups: Sequence[ChannelGroup]) -> tuple[ChannelGroup, ...]:
    """The groups with numbers in names that several have."""
    names = [group.name for group in groups]
    return tuple(
        dataclasses.replace(group, name=f"{group.name}[{names[:place].count(group.name)}]")
        if names.count(group.name) > 1
        else group
        for place, group in enumerate(groups)
    )
