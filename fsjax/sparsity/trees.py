"""The leaves of parameter trees by the names of their paths, as NumPy arrays too."""

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


def to_numpy(params: PyTree, masks: PyTree | None = None) -> dict[str, np.ndarray]:
    """Contiguous NumPy arrays of the parameters, by path, for example ``"params.Dense_0.kernel"``.

        safetensors.numpy.save_file(sparsity.to_numpy(params, masks), "network.safetensors")

    Args:
      params: arrays.
      masks: bool arrays in the structure of ``params``; weights are set to 0 where these are false.

    Raises:
      ConfigError: if a leaf is not an array of numbers, as in a compressed network, or if two
        have the same name.

    Examples:
      >>> params = {"kernel": jnp.ones((6, 4))}
      >>> masks = {"kernel": sparsity.random_mask(jax.random.key(1), (6, 4), 4)}
      >>> arrays = sparsity.to_numpy(params, masks)  # zeros where the mask is closed
      >>> params = sparsity.from_numpy(arrays, params)
    """
    for leaf in jax.tree.leaves(params):
        _check_numbers(leaf)
    if masks is not None:
        params = jax.tree.map(lambda leaf, mask: jnp.where(mask, leaf, 0), params, masks)
    leaves = leaves_by_name(params)
    check_distinct([_dotted(path) for path in leaves])
    return {_dotted(path): np.asarray(leaf, order="C") for path, leaf in leaves.items()}


def from_numpy(arrays: Mapping[str, np.ndarray], like: PyTree) -> PyTree:
    """The inverse of :func:`to_numpy`.

    Args:
      arrays: arrays by path.
      like: parameters of the same network, or their shapes; they give structure and types.

    Raises:
      ConfigError: if a path is missing or unknown, or an array has another shape, or numbers that
        the type of the parameter cannot hold.
    """
    expected = {_dotted(path): leaf for path, leaf in leaves_by_name(like).items()}
    check_same_shapes(arrays, expected, "the arrays", "the network")
    return jax.tree_util.tree_map_with_path(
        lambda path, leaf: _as_type(_dotted(path_name(path)), arrays, leaf.dtype), like
    )


def _dotted(path: str) -> str:
    return path.replace("/", ".")


def _as_type(name: str, arrays: Mapping[str, np.ndarray], dtype: Any) -> Array:
    """The array in the type of its parameter; floating point numbers may be rounded."""
    saved = np.asarray(arrays[name])
    cast = jnp.asarray(saved, dtype)
    is_exact = not jnp.issubdtype(dtype, jnp.inexact)
    if is_exact and not np.array_equal(np.asarray(cast).astype(saved.dtype), saved):
        raise ConfigError(
            f"{name} is {saved.dtype} with numbers that {dtype} of the network cannot hold; pass "
            "the array that was saved"
        )
    return cast


def _check_numbers(leaf: object) -> None:
    dtype = np.asarray(leaf).dtype
    if not any(jnp.issubdtype(dtype, kind) for kind in (np.number, np.bool_)):
        raise ConfigError(
            f"to_numpy takes the parameters of a network, not {type(leaf).__name__}; pass "
            "to_numpy(params, masks), and call compress again after loading"
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
