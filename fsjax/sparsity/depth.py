"""Makes a network shallower: removes whole residual blocks and layers of loops."""

from __future__ import annotations

import dataclasses
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from fsjax.arguments import Rate, check
from fsjax.errors import ConfigError, FixedLengthWarning
from fsjax.sparsity.blocks import Block, Node, children, family_of, is_numbered, residual_blocks
from fsjax.sparsity.shrinking import gives_other_outputs, leaves_like, report
from fsjax.sparsity.trees import check_same_shapes, has_collections, leaves_by_name, with_leaves
from fsjax.typing import PyTree


@dataclasses.dataclass(frozen=True)
class Shallower:
    """A network with fewer blocks.

    Attributes:
      params: the parameters of the blocks that are left, numbered from the first number on.
      masked: the parameters as they were, with 0 in place of what was removed: the network of the
        old depth has with these the outputs of the shallower one.
      importances: by name, how much each block matters to the network that has all of them.
      removed: the names of the blocks that were removed.
      depths: the number of parts that are left, by what their names have in common; parts that
        cannot be removed count.
      reasons: by name, why other parts of the network cannot be removed.
    """

    params: PyTree
    masked: PyTree
    importances: Mapping[str, float]
    removed: tuple[str, ...]
    depths: Mapping[str, int]
    reasons: Mapping[str, str]
    _blocks: Sequence[Block] = dataclasses.field(repr=False)

    def shrink(self, tree: PyTree) -> PyTree:
        """A tree in the structure of the parameters, such as moments of Adam, without the blocks.

        Args:
          tree: arrays in the old shapes.

        Raises:
          ConfigError: if paths or shapes differ.
        """
        leaves_like(tree, self.masked)
        return _without(tree, self._blocks)

    def __str__(self) -> str:
        lines = [
            f"{name}: {'removed' if name in self.removed else 'kept'}, importance {value:.3g}"
            for name, value in self.importances.items()
        ]
        return report(lines, self.reasons, self.masked, self.params)


def remove_blocks(
    function: Callable,
    params: PyTree,
    *inputs: PyTree,
    ratio: float,
    importance: str | PyTree = "outputs",
) -> Shallower:
    """Removes residual blocks from a network and returns the parameters of a shallower one.

    A block is a part of the parameters without which the network remains as it is, because the
    part adds to what it is given: subtrees that are numbered (``Block_0``, ``Block_1``, entries of
    lists) and layers of a ``scan`` over stacked parameters. Names only say which subtrees are
    tried; the program tells whether a subtree is a block. A module that treats its blocks
    differently by their numbers has to be told which are left.

        shallower = sparsity.remove_blocks(model.apply, variables, x, ratio=0.5)
        Network(depth=shallower.depths["params/Block"]).apply(shallower.params, x)

    Args:
      function: ``(params, *inputs) -> outputs``, in evaluation mode, as for
        :func:`fsjax.sparsity.axes`.
      params: arrays, with the statistics of norms among them.
      *inputs: arrays; with ``importance="outputs"``, rows on which the network is used.
      ratio: share of the blocks to remove, in [0, 1); of each kind at least one is left.
      importance: what is lowest for the blocks that are removed. ``"outputs"``: how much the
        outputs change without the block, the sum of squares of the difference relative to that of
        the outputs. Or the gradients of a loss in the structure of ``params``: the size of the sum
        of weight times gradient, the first-order change of the loss (Molchanov et al. 2017,
        equation 8).

    Raises:
      ConfigError: if there are no blocks (with reasons), if trees differ, if ``importance`` is
        unknown, or if it is ``"outputs"`` and the inputs are shapes or all outputs integers.

    Warns:
      FixedLengthWarning: if the function can be called with the shallower parameters, and gives
        other outputs for ``inputs`` than with ``masked``: it holds the number of blocks itself.

    Examples:
      >>> keys = jax.random.split(jax.random.key(0), 4)
      >>> params = {"layers": [jax.random.normal(key, (6, 6)) for key in keys]}
      >>> def apply(params, x):
      ...     for kernel in params["layers"]:
      ...         x = x + jax.nn.relu(x) @ kernel
      ...     return x
      >>> x = jnp.ones((1, 6))
      >>> shallower = sparsity.remove_blocks(apply, params, x, ratio=0.5)
      >>> print(shallower.depths)
      {'layers': 2}
    """
    check(Rate, ratio=ratio)
    found = residual_blocks(function, params, *inputs)
    if not found.removable:
        pairs = [f"{name}: {reason}" for name, reason in found.reasons.items()]
        raise ConfigError(
            "no block of this network can be removed: "
            f"{'; '.join(pairs[:4]) or 'it has no numbered subtrees and no loops over layers'}"
        )
    if not isinstance(importance, str):
        scores = _taylor(found.removable, params, importance)
    elif importance == "outputs":
        scores = _changes(function, found.removable, params, inputs)
    else:
        raise ConfigError(
            f"importance={importance!r}; give 'outputs', or gradients in the structure of params"
        )
    removed = _least(found.removable, scores, ratio)
    counts = Counter(block.family for block in removed)
    shallower = Shallower(
        _without(params, removed),
        _zeroed(params, removed),
        {block.name: score for block, score in zip(found.removable, scores, strict=True)},
        tuple(block.name for block in removed),
        {family: size - counts[family] for family, size in found.sizes.items()},
        found.reasons,
        removed,
    )
    if gives_other_outputs(function, shallower.params, shallower.masked, *inputs):
        depths = ", ".join(f"{depth} of {name}" for name, depth in shallower.depths.items())
        warnings.warn(
            "the function gives other outputs with fewer blocks than with the masked parameters: "
            f"it holds their number itself; call it with {depths}",
            FixedLengthWarning,
            stacklevel=2,
        )
    return shallower


def _least(blocks: Sequence[Block], scores: Sequence[float], ratio: float) -> list[Block]:
    """The blocks of lowest importance; of each family, one is left."""
    left = Counter(block.family for block in blocks)
    removed: list[Block] = []
    for place in np.argsort(scores, kind="stable"):
        block = blocks[place]
        if len(removed) < round(ratio * len(blocks)) and left[block.family] > 1:
            left[block.family] -= 1
            removed.append(block)
    return [block for block in blocks if block in removed]


def _changes(
    function: Callable, blocks: Sequence[Block], params: PyTree, inputs: tuple[PyTree, ...]
) -> list[float]:
    """How much the outputs change without each of the blocks."""
    if any(isinstance(leaf, jax.ShapeDtypeStruct) for leaf in jax.tree.leaves(inputs)):
        raise ConfigError(
            "importance='outputs' needs rows of data, not their shapes; pass arrays, or gradients "
            "as importance="
        )
    program = jax.jit(function)

    def outputs(params: PyTree) -> list[np.ndarray]:
        leaves = jax.tree.leaves(program(params, *inputs))
        return [np.asarray(x, complex) for x in leaves if jnp.issubdtype(x.dtype, jnp.inexact)]

    before = outputs(params)
    if not before:
        raise ConfigError("all outputs are integers; return logits, or give importance=gradients")
    size = sum(float(np.square(np.abs(x)).sum()) for x in before) or 1.0
    return [
        sum(
            float(np.square(np.abs(x - y)).sum())
            for x, y in zip(before, outputs(_zeroed(params, [block])), strict=True)
        )
        / size
        for block in blocks
    ]


def _taylor(blocks: Sequence[Block], params: PyTree, gradients: PyTree) -> list[float]:
    leaves, slopes = leaves_by_name(params), leaves_by_name(gradients)
    check_same_shapes(slopes, leaves, "the gradients", "the network")

    def term(block: Block, path: str) -> float:
        part = slice(None) if block.nodes else block.entry
        weights, slope = (np.asarray(tree[path], complex)[part] for tree in (leaves, slopes))
        return float(np.real(weights * slope).sum())

    return [abs(sum(term(block, path) for path in block.paths)) for block in blocks]


def _zeroed(params: PyTree, blocks: Sequence[Block]) -> PyTree:
    leaves = leaves_by_name(params)
    zeroed: dict[str, Array] = {}
    for block in blocks:
        for path in block.paths:
            leaf = zeroed.get(path, leaves[path])
            part = ... if block.nodes else block.entry
            zeroed[path] = jnp.asarray(leaf).at[part].set(0)
    return with_leaves(params, zeroed)


def _without(tree: PyTree, blocks: Sequence[Block]) -> PyTree:
    """The tree without the subtrees of blocks, and without their entries of stacks."""
    entries: dict[str, list[int]] = {}
    for block in blocks:
        for path in () if block.nodes else block.paths:
            entries.setdefault(path, []).append(block.entry)
    leaves = leaves_by_name(tree)
    smaller = {
        path: jnp.asarray(np.delete(np.asarray(leaves[path]), numbers, 0))
        for path, numbers in entries.items()
    }
    nodes = {node for block in blocks for node in block.nodes}
    if has_collections(tree):  # Those without a part of a block number its siblings anew too.
        nodes |= {(name, *node[1:]) for name in tree for node in nodes if len(node) > 1}
    return _without_nodes(with_leaves(tree, smaller), nodes, (), tree)


def _without_nodes(tree: PyTree, nodes: Collection[Node], path: Node, whole: PyTree) -> PyTree:
    """The tree without subtrees, whose siblings are numbered anew, alike in all collections."""
    if not any(node[: len(path)] == path for node in nodes):
        return tree
    parts = {
        name: _without_nodes(child, nodes, (*path, name), whole)
        for name, child in children(tree).items()
        if (*path, name) not in nodes
    }
    if not is_numbered(tree):
        structure = jax.tree.structure(tree, is_leaf=lambda node: node is not tree)
        return jax.tree.unflatten(structure, list(parts.values()))
    if not isinstance(tree, Mapping):
        return type(tree)(parts.values())
    gone = [node[-1] for node in nodes if node[:-1] == path]
    renamed = _numbered_anew(_names_below(whole, path), gone)
    left = {type(key)(renamed[str(key)]): parts[str(key)] for key in tree if str(key) in parts}
    if isinstance(tree, defaultdict):
        return defaultdict(tree.default_factory, left)
    make: Callable[[dict], PyTree] = type(tree)
    return make(left)


def _names_below(whole: PyTree, path: Node) -> list[str]:
    """The names of the children of a subtree in any of the collections."""
    subtrees = [whole]
    for place, step in enumerate(path):
        is_any = place == 0 and has_collections(whole)
        pairs = (pair for subtree in subtrees for pair in children(subtree).items())
        subtrees = [child for name, child in pairs if is_any or name == step]
    return list({name: None for subtree in subtrees for name in children(subtree)})


def _numbered_anew(names: Sequence[str], removed: Collection[str]) -> dict[str, str]:
    """New names of siblings: those that are left of a family take its first names, in order."""
    families: dict[str, list[tuple[int, str]]] = {}
    for name in names:
        (_, stem), number = family_of((name,))
        families.setdefault(stem, []).append((number, name))
    renamed: dict[str, str] = {}
    for members in families.values():
        names_in_order = [name for _, name in sorted(members)]
        left = [name for name in names_in_order if name not in removed]
        renamed |= dict(zip(left, names_in_order, strict=False))
    return renamed
