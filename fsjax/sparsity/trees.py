"""The leaves of parameter trees by the names of their paths."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array

from fsjax.errors import ConfigError
from fsjax.typing import PyTree


def has_collections(tree: PyTree) -> bool:
    """Whether a tree holds the collections of a module of Linen."""
    return isinstance(tree, Mapping) and "params" in tree


def identity(tree: PyTree) -> PyTree:
    """Returns the tree unchanged."""
    return tree


def path_name(path: tuple) -> str:
    """The name of the path of a leaf, for example ``Dense_0/kernel``."""
    return jax.tree_util.keystr(path, simple=True, separator="/")


def leaves_by_name(tree: PyTree, none: bool = False) -> dict[str, Array]:
    """All leaves by the names of their paths; with ``none=True`` including ``None`` leaves."""
    is_leaf = (lambda node: node is None) if none else None
    pairs = jax.tree.leaves_with_path(tree, is_leaf)
    leaves = {path_name(path): leaf for path, leaf in pairs}
    check_distinct([path_name(path) for path, _ in pairs])
    return leaves


def check_distinct(names: Sequence[str]) -> None:
    """Checks that no two leaves have the same name, as ``{"a/b": x, "a": {"b": y}}`` has them.

    Raises:
      ConfigError: naming one that occurs twice.
    """
    twice = next((name for name, count in Counter(names).items() if count > 1), None)
    if twice is not None:
        raise ConfigError(
            f"two parameters have the path {twice}; give their modules names without slashes"
        )


def with_leaves(tree: PyTree, leaves: Mapping[str, Array | None]) -> PyTree:
    """The tree with the leaves at some paths replaced."""
    return jax.tree_util.tree_map_with_path(
        lambda path, leaf: leaves.get(path_name(path), leaf), tree
    )


def split(flat: Array, like: Mapping[str, Array]) -> dict[str, Array]:
    """Splits concatenated, flattened leaves into arrays with the shapes of ``like``."""
    ends = np.cumsum([leaf.size for leaf in like.values()])[:-1]
    parts = zip(like.items(), jnp.split(flat, ends), strict=True)
    return {name: part.reshape(leaf.shape) for (name, leaf), part in parts}


def check_same_shapes(
    leaves: Mapping[str, Any], others: Mapping[str, Any], where: str, elsewhere: str
) -> None:
    """Checks that two trees have leaves of the same shapes at the same paths.

    Args:
      leaves, others: arrays by path.
      where, elsewhere: what the message calls the two.

    Raises:
      ConfigError: if they differ; the message names a path.
    """
    for path in leaves.keys() | others.keys():
        shape, other = (np.shape(t[path]) if path in t else None for t in (leaves, others))
        if shape != other:
            raise ConfigError(
                f"{path} has shape {shape} in {where} and {other} in {elsewhere} (None means "
                "missing); pass arrays of the same network"
            )


def is_masked_out(node: object) -> bool:
    """Whether a parameter belongs to another optimiser (``optax.masked``, ``multi_transform``)."""
    return isinstance(node, optax.MaskedNode)


def is_output_first(tree: PyTree) -> bool:
    """Whether kernels are ``(outputs, inputs, ...)``, as in the modules of Equinox."""
    modules: list[bool] = []

    def note(node: object) -> bool:
        modules.append(any(base.__module__.startswith("equinox.") for base in type(node).__mro__))
        return False

    jax.tree.leaves(tree, is_leaf=note)
    return any(modules)
