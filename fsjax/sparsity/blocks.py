"""Finds residual blocks: parts of a network that return what they are given if they are 0."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import jax

from fsjax.sparsity.program import Traced, trace
from fsjax.sparsity.trees import has_collections, path_name
from fsjax.sparsity.zeroed import OF_PASSES, STREAM, ZeroedReader, source
from fsjax.typing import PyTree

#: The path of a subtree of the parameters.
Node = tuple[str, ...]

#: What the subtrees of a list, or with the same name but for a number, have in common: the path
#: that they are in, and the name.
_Family = tuple[Node, str]


class Block(NamedTuple):
    """A part of a network that can be left out.

    Attributes:
      name: the path of its first subtree, or that of its stack and its number.
      family: what the names of its siblings have in common.
      paths: its parameters.
      nodes: the subtrees of the parameters that it is; none for an entry of stacked parameters.
      entry: its place in stacked parameters.
    """

    name: str
    family: str
    paths: tuple[str, ...]
    nodes: tuple[Node, ...] = ()
    entry: int = 0


class Blocks(NamedTuple):
    """What can be left out of a network.

    Attributes:
      removable: layers of loops, then subtrees in the order of the parameters.
      sizes: by family, the number of parts, also of those that cannot be left out.
      reasons: by name, why other parts cannot.
    """

    removable: tuple[Block, ...]
    sizes: dict[str, int]
    reasons: dict[str, str]


class _Part(NamedTuple):
    """Subtrees that are together one part of a network, in its parameters and its statistics.

    Its ``structure``, paths and numbers of axes, is that of the parts made by the same module.
    """

    nodes: list[Node]
    paths: list[str]
    structure: list[tuple[str, int]]

    @property
    def name(self) -> str:
        return "/".join(self.nodes[0])


def residual_blocks(function: Callable, params: PyTree, *inputs: PyTree) -> Blocks:
    """Reads from the program of a network which parts of it are residual blocks.

    Args:
      function, params, *inputs: as for :func:`fsjax.sparsity.axes`.
    """
    traced = trace(function, params, *inputs)
    network = _Network(traced)
    blocks, reasons = network.layers_of_loops()
    sizes = dict(Counter(block.family for block in blocks))
    for family, parts in _families(params, traced.params):
        found = {path for block in blocks for path in block.paths}
        new = {n: part for n, part in parts.items() if not found.intersection(part.paths)}
        removable = network.members(family, new, reasons) if len(new) > 1 else []
        sizes |= {block.family: len(parts) for block in removable}
        blocks += removable
    outermost = {
        name: reason
        for name, reason in reasons.items()
        if not any(name.startswith(f"{outer}/") for outer in reasons)
    }
    return Blocks(tuple(blocks), sizes, outermost)


class _Network:
    """The program of a network, with and without what is 0."""

    def __init__(self, traced: Traced) -> None:
        self._traced = traced
        self._places = {path: place for place, path in enumerate(traced.params)}
        self._unchanged = ZeroedReader(traced)

    def layers_of_loops(self) -> tuple[list[Block], dict[str, str]]:
        """The layers of loops over stacked parameters, and why others are none."""
        paths = list(self._traced.params)
        blocks, reasons = list[Block](), dict[str, str]()
        for operation, loop in self._unchanged.loops.items():
            stack = tuple(paths[place] for place in loop.params)
            common = _common_path(stack)
            taken = {"", *reasons, *(block.family for block in blocks)}
            family = stack[0] if common in taken else common
            reader = self._zeroed(stack)
            if loop.has_outputs:
                reasons[family] = "the loop collects what its passes return"
            elif self._unchanged.sources & OF_PASSES:
                reasons[family] = "its layers read more than their parameters, such as their number"
            elif any(self._unchanged.uses[place] != {operation} for place in loop.params):
                reasons[family] = "its parameters are also read outside of the loop"
            elif not (reader.loops[operation].is_identity and self._is_without(reader, stack)):
                reasons[family] = _CHANGES
            else:
                blocks += [
                    Block(f"{family}[{entry}]", family, stack, entry=entry)
                    for entry in range(loop.length)
                ]
        return blocks, reasons

    def members(
        self, family: _Family, parts: Mapping[int, _Part], reasons: dict[str, str]
    ) -> list[Block]:
        """The parts of a family that can be left out; notes reasons of the others."""
        readers = {number: self._zeroed(part.paths) for number, part in parts.items()}
        candidates = [
            number for number in parts if self._is_without(readers[number], parts[number].paths)
        ]
        passed = {n for n in candidates if self._is_passed_by(readers[n], parts[n])}
        # What remains of a block is seen where the next one begins.
        confirmed = [
            parts[number].structure
            for number in candidates
            if self._begins_as_the_next(readers[number], parts[number], parts.get(number + 1))
        ]
        blocks = []
        for number, part in parts.items():
            if number not in candidates:
                reasons[part.name] = _CHANGES
            elif {number, number + 1} & passed:
                reasons[part.name] = "what it is given, or returns, is also read elsewhere"
            elif part.structure not in confirmed:
                reasons[part.name] = "no part like it is seen to go on with what it was given"
            else:
                siblings = "/".join([*part.nodes[0][:-1], family[1].rstrip("_")]).strip("/")
                blocks.append(Block(part.name, siblings, tuple(part.paths), tuple(part.nodes)))
        return blocks

    def _zeroed(self, paths: Any) -> ZeroedReader:
        return ZeroedReader(self._traced, [self._places[path] for path in paths])

    def _sources(self, paths: Any) -> int:
        return sum(source(self._places[path]) for path in paths)

    def _is_without(self, reader: ZeroedReader, paths: Any) -> bool:
        """Whether the outputs depend on these parameters no longer, and on all others still."""
        before, own = self._unchanged.sources, self._sources(paths)
        return bool(before & own) and reader.sources == before & ~own

    def _is_passed_by(self, reader: ZeroedReader, part: _Part) -> bool:
        """Whether outputs depend on what a part is given in other ways than through the part."""
        zeroed = [self._places[path] for path in part.paths]
        return bool(ZeroedReader(self._traced, zeroed, reader.unchanged).sources & STREAM)

    def _begins_as_the_next(self, reader: ZeroedReader, part: _Part, next_: _Part | None) -> bool:
        first = self._first(reader, part)
        return next_ is not None and bool(first) and first == self._first(reader, next_)

    def _first(self, reader: ZeroedReader, part: _Part) -> set[int]:
        """Numbers of the values from elsewhere that meet parameters of a part."""
        own = self._sources(part.paths)
        return {
            number
            for path in part.paths
            for number, sources in reader.meetings[self._places[path]].items()
            if not sources & own
        }


_CHANGES = "with its parameters at 0, the network is not the one without it"


def _families(params: PyTree, shapes: Mapping[str, Any]) -> list[tuple[_Family, dict[int, _Part]]]:
    """The families of subtrees, the outer ones first, each with its parts by their numbers."""
    families: dict[_Family, dict[int, _Part]] = defaultdict(dict)
    collections = has_collections(params)
    for node in sorted(_numbered(params), key=lambda node: node[0] != "params"):
        prefix = "/".join(node) + "/"
        inside = {path for path in shapes if (path + "/").startswith(prefix)}
        # A block of Linen has its statistics in a collection of their own.
        family, number = family_of(node[1:] if collections and len(node) > 1 else node)
        if inside:
            part = families[family].setdefault(number, _Part([], [], []))
            part.nodes.append(node)
            part.paths.extend(path for path in shapes if path in inside)
            part.structure.extend(
                ((path + "/").removeprefix(prefix), len(shapes[path].shape))
                for path in shapes
                if path in inside
            )
    return sorted(
        ((family, dict(sorted(parts.items()))) for family, parts in families.items()),
        key=lambda pair: len(pair[0][0]),
    )


def family_of(node: Node) -> tuple[_Family, int]:
    """The family of a subtree, and its number in it."""
    stem, number = _split_number(node[-1])
    return (node[:-1], stem), number


def _split_number(name: str) -> tuple[str, int]:
    match = re.fullmatch(r"(.*?)(\d+)", name)
    return (match[1], int(match[2])) if match else (name, -1)


def children(tree: PyTree) -> dict[str, PyTree]:
    """The children of a node of a tree by name; none of a leaf."""
    pairs = jax.tree.leaves_with_path(tree, is_leaf=lambda node: node is not tree)
    return {path_name(path): child for path, child in pairs if path}


def is_numbered(tree: PyTree) -> bool:
    """Whether children of a node can be taken out: of lists, tuples and dicts."""
    return isinstance(tree, Mapping | list) or type(tree) is tuple


def _numbered(tree: PyTree, path: Node = ()) -> Iterator[Node]:
    """The subtrees whose names have a number."""
    for name, child in children(tree).items():
        node = (*path, name)
        if is_numbered(tree) and _split_number(name)[1] >= 0:
            yield node
        yield from _numbered(child, node)


def _common_path(paths: tuple[str, ...]) -> str:
    """The path of the smallest subtree with these parameters."""
    common = []
    for names in zip(*(path.split("/") for path in paths), strict=False):
        if len(set(names)) > 1:
            break
        common.append(names[0])
    return "/".join(common)
