"""Boolean masks over parameters: counts of connections, random masks, masks as bits.

A mask tree has the structure of the parameters; leaves that are never masked are all true.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct
from jax import Array, export

from fsjax.arguments import Fraction, Positive, check
from fsjax.errors import ConfigError
from fsjax.sparsity.kth import random_subset
from fsjax.sparsity.trees import check_distinct, leaves_by_name, path_name
from fsjax.typing import PyTree

#: Which leaves are masked: ``(path, leaf) -> bool`` with a path such as ``("Dense_0", "kernel")``,
#: or one or more patterns of paths, such as ``"Dense_*/kernel"``, for arrays of two or more axes.
Where = Callable[[tuple[str, ...], Array], bool] | str | Sequence[str]

#: From the shapes of the chosen leaves to their active connections.
Counts = Callable[[list[tuple[int, ...]]], list[int]]

#: Whether connections compete within their layer, or with those of all layers.
Scope = Literal["layer", "global"]

#: Patterns of names of parameters that are not kernels, however many axes they have.
NOT_KERNELS = (
    "bias*", "scale", "embedding*", "pos", "positions", "pos_emb*", "posemb*", "position*_emb*"
)  # fmt: skip

#: Modules of Equinox without kernels: all their parameters are called ``weight`` and ``bias``.
_NO_KERNELS = ("BatchNorm", "Embedding", "GroupNorm", "LayerNorm", "PReLU", "RMSNorm")


def is_kernel(path: tuple[str, ...], leaf: Array) -> bool:
    """Chooses kernels by their name and shape; the default of ``where``.

    These are arrays of two axes, or of more if at least two of them are longer than 1 (a class
    token has one), except integers and those named ``bias``, ``scale``, ``embedding``, ``pos``,
    ``pos_embedding`` and the like, as norms, tables and positions are. What a network really
    multiplies by is read by :func:`fsjax.sparsity.axes`.
    """
    name = path[-2] if path[-1:] == ("value",) and len(path) > 1 else path[-1] if path else ""
    is_matrix = jnp.ndim(leaf) == 2 or sum(size > 1 for size in jnp.shape(leaf)) > 1
    return (
        is_matrix
        and not jnp.issubdtype(jnp.result_type(leaf), jnp.integer)
        and "bias" not in path[-2:]
        and not any(fnmatchcase(name, pattern) for pattern in NOT_KERNELS)
    )


def uniform_counts(shapes: Sequence[Sequence[int]], density: float) -> list[int]:
    """Numbers of active connections if all layers have the same density, at least 1 each.

    Args:
      shapes: shapes of the weight arrays.
      density: share of active connections, in (0, 1]; else ConfigError.
    """
    check(Fraction, density=density)
    return [_whole(density * math.prod(shape), shape) for shape in shapes]


def erdos_renyi_counts(shapes: Sequence[Sequence[int]], epsilon: float) -> list[int]:
    """Numbers of connections of Erdos-Renyi random graphs (CTRE, section 3.1).

    A layer gets ``epsilon (n_in + n_out)`` connections. If its array is smaller, it is dense, and
    other layers do not get the surplus.

    Args:
      shapes: shapes of the weight arrays; kernels of convolutions count as
        ``(positions x input channels, output channels)``.
      epsilon: above 0, else ConfigError.
    """
    check(Positive, epsilon=epsilon)
    return [_whole(epsilon * (math.prod(shape[:-1]) + shape[-1]), shape) for shape in shapes]


def erdos_renyi_density_counts(
    shapes: Sequence[Sequence[int]], density: float, kernel: bool = True
) -> list[int]:
    """Numbers of connections by Erdos-Renyi(-Kernel), for one density (RigL, appendix).

    The density of a layer is proportional to the sum of its dimensions divided by their product.
    Layers whose density would exceed 1 become dense, and the others share the remaining
    connections. Up to rounding, the counts add up to the given density.

    Args:
      shapes: shapes of the weight arrays.
      density: share of active connections in the whole network, in (0, 1]; else ConfigError.
      kernel: whether the spatial dimensions of convolutions count (ERK) or not (ER).
    """
    check(Fraction, density=density)
    sizes = [math.prod(shape) for shape in shapes]
    counted = [shape if kernel else shape[-2:] for shape in shapes]
    raw = [sum(shape) / math.prod(shape) for shape in counted]
    dense: set[int] = set()
    while free := [i for i in range(len(shapes)) if i not in dense]:
        budget = density * sum(sizes) - sum(sizes[i] for i in dense)
        scale = budget / sum(raw[i] * sizes[i] for i in free)
        over = {i for i in free if scale * raw[i] > 1}
        if not over:
            break
        dense |= over
    return [
        size if i in dense else _whole(scale * raw[i] * size, shapes[i])
        for i, size in enumerate(sizes)
    ]


def density_counts(shapes: Sequence[Sequence[int]], densities: Sequence[float]) -> list[int]:
    """Numbers of active connections, at least 1 each, from a density in (0, 1] for each layer."""
    for density in densities:
        check(Fraction, density=density)
    return [
        _whole(density * math.prod(shape), shape)
        for shape, density in zip(shapes, densities, strict=True)
    ]


def by_pattern(values: Mapping[str, float], names: Sequence[str]) -> list[float]:
    """The value of the first pattern that matches each path; 1 for paths without a match.

    Paths to variables of flax.nnx end in ``/value``, and stacked layers in ``[number]``, which a
    pattern may leave out.

    Raises:
      ConfigError: if a pattern matches no path, or only paths that an earlier one matches too.
    """
    first = [next((at for at in values if matches(name, at)), None) for name in names]
    for pattern in values:
        if pattern in first:
            continue
        pairs = zip(names, first, strict=True)
        earlier = next((at for name, at in pairs if matches(name, pattern)), None)
        if earlier is None:
            raise ConfigError(f"the pattern {pattern!r} matches none of {', '.join(names[:8])}")
        raise ConfigError(
            f"the pattern {pattern!r} has no effect, as {earlier!r} before it matches the same "
            "paths; put the more specific pattern first"
        )
    return [1.0 if pattern is None else values[pattern] for pattern in first]


def matches(name: str, pattern: str) -> bool:
    """Whether a path matches a pattern, with or without the ends of nnx and stacked layers.

    Raises:
      ConfigError: for a pattern that is not a string, such as a key of a dict that is a number.
    """
    if not isinstance(pattern, str):
        raise ConfigError(
            f"the pattern {pattern!r} is not a string; write {str(pattern)!r}, as in the path "
            f"{name!r}"
        )
    kernel = re.sub(r"\[\d+\]$", "", name)
    candidates = (name, kernel, kernel.removesuffix("/value"))
    return name == pattern or any(fnmatchcase(path, pattern) for path in candidates)


def random_mask(key: Array, shape: Sequence[int], count: int) -> Array:
    """A bool mask with exactly ``count`` (0 to its size) true entries at random positions."""
    return random_subset(key, count, jnp.ones(shape, bool))


def init_masks(
    key: Array,
    params: PyTree,
    counts: Counts,
    where: Where = is_kernel,
) -> PyTree:
    """Random masks, bool in the structure of ``params``: all true for leaves that are not chosen.

    Args:
      key: PRNG key.
      params: parameters.
      counts: from the shapes of the chosen leaves to their active connections, for example
        ``lambda shapes: uniform_counts(shapes, 0.2)`` or ``recipe.counts``.
      where: which leaves are masked; ConfigError if none is.
    """
    chosen = masked_leaves(params, where)
    leaves, structure = jax.tree.flatten(params)
    masks = [jnp.ones(leaf.shape, bool) for leaf in leaves]
    numbers = counts([tuple(leaves[i].shape) for i in chosen])
    for key_leaf, i, count in zip(jax.random.split(key, len(chosen)), chosen, numbers, strict=True):
        masks[i] = random_mask(key_leaf, leaves[i].shape, count)
    return jax.tree.unflatten(structure, masks)


def masked_leaves(
    params: PyTree, where: Where = is_kernel, kernels: Collection[str] = ()
) -> list[int]:
    """Indices in ``jax.tree.leaves`` of the masked leaves; ConfigError if there are none.

    Arrays without entries are never masked, and by default norms and tables of Equinox are not.
    By default, ``kernels`` are masked whatever their names, if they have the shapes of kernels.
    """
    flat = jax.tree_util.tree_flatten_with_path(params)[0]
    if callable(where):
        chosen = [i for i, (path, leaf) in enumerate(flat) if where(_names(path), leaf)]
        if where is is_kernel:
            has_no_kernels = _without_kernels(params)
            used = {i for i, (path, _) in enumerate(flat) if path_name(path) in kernels}
            named = {i for i in chosen if not has_no_kernels[i]}
            chosen = sorted(named | {i for i in used if is_kernel((), flat[i][1])})
    else:
        names = ["/".join(_names(path)) for path, _ in flat]
        patterns = [where] if isinstance(where, str) else list(where)
        matched = by_pattern(dict.fromkeys(patterns, 0.0), names)
        chosen = [
            i for i, (_, leaf) in enumerate(flat) if matched[i] == 0.0 and jnp.ndim(leaf) >= 2
        ]
    chosen = [i for i in chosen if np.size(flat[i][1])]
    if not chosen:
        paths = ", ".join("/".join(_names(path)) for path, _ in flat[:8])
        raise ConfigError(f"the path filter chooses no parameter; there are {paths}")
    return chosen


def apply_masks(params: PyTree, masks: PyTree) -> PyTree:
    """Sets parameters to 0 where the mask is false; ConfigError unless masks are bool."""
    return jax.tree.map(masked, params, bool_masks(masks))


def masked(leaf: Array, mask: Array) -> Array:
    """The array with 0 where the mask is false, in its own type."""
    return jnp.where(mask, leaf, False)  # False is 0 in every type, and 0 in bool is int32.


def bool_masks(masks: PyTree) -> PyTree:
    """The masks, unpacked; scores, and masks saved as numbers, say something else and are refused.

    Raises:
      ConfigError: naming a leaf that is not bool, and its type.
    """
    masks = unpack(masks)
    for path, mask in jax.tree.leaves_with_path(masks):
        if not jnp.issubdtype(jnp.result_type(mask), jnp.bool_):
            raise ConfigError(
                f"the mask {f'of {path_name(path)} ' if path else ''}is {jnp.result_type(mask)}; "
                "masks are bool, for example scores > 0"
            )
    return masks


def count_active(masks: PyTree) -> list[Array]:
    """Number of true entries of each leaf, int32, in the order of ``jax.tree.leaves``.

    Raises:
      ConfigError: if masks are not bool.
    """
    return [jnp.sum(mask, dtype=jnp.int32) for mask in jax.tree.leaves(bool_masks(masks))]


def _without_kernels(tree: PyTree) -> list[bool]:
    """For each leaf, whether it is in a module of Equinox without kernels."""

    def is_one(node: object) -> bool:
        return any(
            base.__module__.startswith("equinox.nn") and base.__name__ in _NO_KERNELS
            for base in type(node).__mro__
        )

    nodes = jax.tree.leaves(tree, is_leaf=is_one)
    return [is_one(node) for node in nodes for _ in jax.tree.leaves(node)]


def sparsity(masks: PyTree, where: Where = is_kernel) -> Array:
    """Share of the connections of the masked leaves that are inactive, in [0, 1].

    Args:
      masks: bool arrays, or packed ones.
      where: the leaves that count, those of :func:`fsjax.sparsity.sparse`; all connections of
        others must be active.

    Raises:
      ConfigError: if no leaf is chosen, if masks are not bool, or if a leaf that is not chosen has
        inactive connections.
    """
    masks = bool_masks(masks)
    chosen = named_leaves(masks, where)
    for path, mask in leaves_by_name(masks).items():
        is_known = not isinstance(mask, jax.core.Tracer)
        if path not in chosen and is_known and not np.asarray(mask).all():
            raise ConfigError(
                f"{path} has inactive connections, and where= leaves it out; pass the where= that "
                "sparse had"
            )
    active = sum(jnp.sum(mask, dtype=jnp.float32) for mask in chosen.values())
    return jnp.asarray(1.0 - active / sum(mask.size for mask in chosen.values()))


def named_leaves(
    tree: PyTree, where: Where = is_kernel, kernels: Collection[str] = ()
) -> dict[str, Array]:
    """The :func:`masked_leaves` by the name of their path; ConfigError if none is chosen."""
    flat = jax.tree.leaves_with_path(tree)
    chosen = [(path_name(flat[i][0]), flat[i][1]) for i in masked_leaves(tree, where, kernels)]
    check_distinct([name for name, _ in chosen])
    return dict(chosen)


def filled_leaves(tree: PyTree, where: Where, value: float) -> dict[str, Array]:
    """Constant float32 arrays in the shapes of the :func:`named_leaves`.

    They are sorted like a dict in JAX, so that samples are the same inside jit.
    """
    leaves = sorted(named_leaves(tree, where).items())
    return {name: jnp.full(leaf.shape, value, jnp.float32) for name, leaf in leaves}


def _names(path: tuple) -> tuple[str, ...]:
    return tuple(path_name((part,)) for part in path)


def _whole(count: float, shape: Sequence[int]) -> int:
    return min(max(round(count), 1), math.prod(shape))


class PackedMask(struct.PyTreeNode):
    """A mask stored with one bit per connection, instead of one byte as in JAX.

    Attributes:
      bits: ``(ceil(n / 8),)`` uint8 with eight connections each, the first in the highest bit.
      shape: shape of the mask, with n entries.
    """

    bits: Array
    shape: tuple[int, ...] = struct.field(pytree_node=False)


# So that programs of jax.export may take and return packed masks.
export.register_pytree_node_serialization(
    PackedMask,
    serialized_name="fsjax.sparsity.PackedMask",
    serialize_auxdata=lambda fields: json.dumps(fields).encode(),
    deserialize_auxdata=lambda data: tuple(map(tuple, json.loads(data))),
)


def pack(masks: PyTree) -> PyTree:
    """Replaces each bool array of a tree by a :class:`PackedMask`; packed masks stay as they are.

    Raises:
      ConfigError: if a leaf is neither.
    """
    bool_masks(masks)
    return jax.tree.map(
        lambda mask: (
            mask
            if is_packed(mask)
            else PackedMask(jnp.packbits(jnp.reshape(mask, -1)), jnp.shape(mask))
        ),
        masks,
        is_leaf=is_packed,
    )


def unpack(masks: PyTree) -> PyTree:
    """The inverse of :func:`pack`; bool arrays are returned unchanged."""
    return jax.tree.map(
        lambda mask: _unpacked(mask) if is_packed(mask) else mask, masks, is_leaf=is_packed
    )


def is_packed(node: object) -> bool:
    """Whether a node of a tree is a packed mask."""
    return isinstance(node, PackedMask)


def _unpacked(mask: PackedMask) -> Array:
    bits = jnp.unpackbits(mask.bits, count=math.prod(mask.shape))
    return bits.astype(bool).reshape(mask.shape)
