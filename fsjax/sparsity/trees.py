"""Access to the leaves of parameter trees by the names of their paths."""

from __future__ import annotations

from collections.abc import Mapping

import jax
import jax.numpy as jnp
from jax import Array

from fsjax.typing import PyTree


def path_name(path: tuple) -> str:
    """The name of the path of a leaf, for example ``Dense_0/kernel``."""
    return jax.tree_util.keystr(path, simple=True, separator="/")


def leaves_by_name(tree: PyTree, none: bool = False) -> dict[str, Array]:
    """All leaves by the names of their paths; with ``none=True`` including ``None`` leaves."""
    is_leaf = (lambda node: node is None) if none else None
    return {path_name(path): leaf for path, leaf in jax.tree.leaves_with_path(tree, is_leaf)}


def with_leaves(tree: PyTree, leaves: Mapping[str, Array | None]) -> PyTree:
    """The tree with the leaves at some paths replaced."""
    return jax.tree_util.tree_map_with_path(
        lambda path, leaf: leaves.get(path_name(path), leaf), tree
    )


def is_output_first(tree: PyTree) -> bool:
    """Whether kernels are ``(outputs, inputs, ...)``, as in the modules of Equinox."""
    modules: list[bool] = []

    def note(node: object) -> bool:
        modules.append(any(base.__module__.startswith("equinox.") for base in type(node).__mro__))
        return False

    jax.tree.leaves(tree, is_leaf=note)
    return any(modules)


def outputs_last(tree: PyTree) -> PyTree:
    """Turns leaves ``(outputs, inputs, ...)``, of two axes or more, to ``(..., inputs, outputs)``."""
    return jax.tree.map(lambda leaf: jnp.transpose(leaf, _reversed(jnp.ndim(leaf))), tree)


def outputs_first(tree: PyTree) -> PyTree:
    """The inverse of :func:`outputs_last`."""
    return jax.tree.map(
        lambda leaf: jnp.transpose(leaf, list(map(_reversed(leaf.ndim).index, range(leaf.ndim)))),
        tree,
    )


def _reversed(ndim: int) -> tuple[int, ...]:
    return tuple(range(ndim)) if ndim < 2 else (*range(2, ndim), 1, 0)
