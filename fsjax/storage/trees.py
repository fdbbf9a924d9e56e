"""Trees as named arrays, for checkpoints and saved results."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from fsjax.errors import DataError

PyTree = Any


def by_path(tree: PyTree, prefix: str = "") -> dict[str, np.ndarray]:
    """The leaves as NumPy arrays, by their paths; PRNG keys become arrays of their words."""
    return {
        name: np.asarray(jax.random.key_data(leaf) if _is_key(leaf) else leaf)
        for name, leaf in _named(tree, prefix).items()
    }


def from_paths(like: PyTree, arrays: Mapping[str, np.ndarray], prefix: str = "") -> PyTree:
    """The inverse of :func:`by_path`.

    Args:
      like: a tree of arrays, or of their shapes and types.
      arrays: by name; further arrays are ignored unless their names start with ``prefix``.

    Raises:
      DataError: for arrays that are unknown, missing (unless they are empty), or of another shape
        or type.
    """
    wanted = _named(like, prefix)
    unknown = [name for name in arrays if name.startswith(prefix) and name not in wanted]
    if prefix and unknown:
        raise DataError(f"the method has no {unknown[0]!r}")
    leaves = [_filled(name, leaf, arrays) for name, leaf in wanted.items()]
    return jax.tree.unflatten(jax.tree.structure(like), leaves)


def _named(tree: PyTree, prefix: str) -> dict[str, Any]:
    return {
        prefix + jax.tree_util.keystr(path, simple=True, separator="/"): leaf
        for path, leaf in jax.tree.leaves_with_path(tree)
    }


def _is_key(leaf: Any) -> bool:
    return jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def _filled(name: str, like: Any, arrays: Mapping[str, np.ndarray]) -> Any:
    if name not in arrays and 0 in like.shape:
        return np.zeros(like.shape, like.dtype)
    if name not in arrays:
        raise DataError(f"the array {name!r} is missing")
    words = jax.eval_shape(jax.random.key_data, like) if _is_key(like) else like
    values = arrays[name]
    if values.shape != tuple(words.shape):
        raise DataError(
            f"the array {name!r} has the shape {values.shape}; expected {tuple(words.shape)}"
        )
    if values.dtype.kind == "V" == words.dtype.kind and values.itemsize == words.dtype.itemsize:
        values = values.view(words.dtype)  # types such as bfloat16, which files do not name
    if values.dtype != words.dtype:
        raise DataError(f"the array {name!r} has the type {values.dtype}; expected {words.dtype}")
    if _is_key(like):
        impl = jax.random.key_impl(like) if isinstance(like, jax.Array) else None
        return jax.random.wrap_key_data(jnp.asarray(values), impl=impl)
    return values
