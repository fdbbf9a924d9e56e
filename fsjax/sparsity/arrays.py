"""Converts parameters to named NumPy arrays and back, for SafeTensors, ONNX and other formats."""

from __future__ import annotations

from collections.abc import Mapping

import jax
import jax.numpy as jnp
import numpy as np

from fsjax.errors import ConfigError
from fsjax.sparsity.masks import apply_masks
from fsjax.sparsity.trees import check_same_shapes, leaves_by_name, path_name
from fsjax.typing import PyTree


def to_numpy(params: PyTree, masks: PyTree | None = None) -> dict[str, np.ndarray]:
    """Contiguous NumPy arrays of the parameters, by path, for example ``"params.Dense_0.kernel"``.

        safetensors.numpy.save_file(sparsity.to_numpy(params, masks), "network.safetensors")

    Args:
      params: arrays.
      masks: bool arrays in the structure of ``params``; weights are set to 0 where these are false.

    Raises:
      ConfigError: if a leaf is not an array of numbers, as in a compressed network.

    Examples:
      >>> params = {"kernel": jnp.ones((6, 4))}
      >>> masks = {"kernel": sparsity.random_mask(jax.random.key(1), (6, 4), 4)}
      >>> arrays = sparsity.to_numpy(params, masks)  # zeros where the mask is closed
      >>> params = sparsity.from_numpy(arrays, params)
    """
    for leaf in jax.tree.leaves(params):
        _check_numbers(leaf)
    leaves = leaves_by_name(params if masks is None else apply_masks(params, masks))
    return {
        path.replace("/", "."): np.ascontiguousarray(np.asarray(leaf))
        for path, leaf in leaves.items()
    }


def from_numpy(arrays: Mapping[str, np.ndarray], like: PyTree) -> PyTree:
    """The inverse of :func:`to_numpy`.

    Args:
      arrays: arrays by path.
      like: parameters of the same network, or their shapes; they give structure and types.

    Raises:
      ConfigError: if a path is missing or unknown, or an array has another shape.
    """
    expected = {path.replace("/", "."): leaf for path, leaf in leaves_by_name(like).items()}
    check_same_shapes(arrays, expected, "the arrays", "the network")
    return jax.tree_util.tree_map_with_path(
        lambda path, leaf: jnp.asarray(arrays[path_name(path).replace("/", ".")], leaf.dtype), like
    )


def _check_numbers(leaf: object) -> None:
    dtype = np.asarray(leaf).dtype
    if not any(jnp.issubdtype(dtype, kind) for kind in (np.number, np.bool_)):
        raise ConfigError(
            f"to_numpy takes the parameters of a network, not {type(leaf).__name__}; pass "
            "to_numpy(params, masks), and call compress again after loading"
        )
