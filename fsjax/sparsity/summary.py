"""What is left of a sparse network: tables, degrees of neurons, overlap of two runs, pictures."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import jax.numpy as jnp
import numpy as np

from fsjax.errors import ConfigError
from fsjax.extras import require
from fsjax.sparsity.linear_maps import LinearMap, linear_maps
from fsjax.sparsity.masks import Where, is_kernel, named_leaves
from fsjax.sparsity.tiles import tile_of
from fsjax.sparsity.trees import is_output_first, leaves_by_name, outputs_last
from fsjax.typing import PyTree

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

#: Sizes of groups that are looked for.
_GROUPS = (2, 4, 8, 16, 32)


def summarize(
    params: PyTree, masks: PyTree, function: Callable | None = None, *inputs: PyTree
) -> pd.DataFrame:
    """A row for each array with connections and one for all, as a table.

    Args:
      params: arrays.
      masks: bool in their structure, such as of :func:`fsjax.sparsity.masks_of`.
      function: ``(params, *inputs) -> outputs``, for the operations of one call.
      *inputs: an example, arrays or their shapes.

    Returns:
      Columns ``shape``, ``structure`` (what holds of the mask: ``"dense"``, ``"channels"``,
      ``"tiles 4x4"``, ``"2:4"``, ``"fan-in 12"`` or ``"unstructured"``), ``connections``,
      ``active``, ``density``, and with a function ``flops`` and ``dense_flops``: two for each
      connection and vector that is multiplied. The index has the paths, and ``"all"``.

    Raises:
      ConfigError: if the masks have other paths or shapes than the parameters.
    """
    import pandas as pd

    by_path, leaves = _of_params(params, masks), leaves_by_name(params)
    turned = leaves_by_name(outputs_last(masks)) if is_output_first(params) else by_path
    maps: dict[str, list[LinearMap]] = {}
    for linear in linear_maps(function, params, *inputs) if function is not None else ():
        maps.setdefault(linear.path, []).append(linear)
    rows = {}
    for path, mask in by_path.items():
        if mask.ndim < 2 and mask.all():
            continue
        active, vectors = int(mask.sum()), sum(linear.rows for linear in maps.get(path, ()))
        rows[path] = {
            "shape": " x ".join(map(str, leaves[path].shape)),
            "structure": structure_of(np.asarray(turned[path])),
            "connections": mask.size,
            "active": active,
            "density": active / mask.size,
            "flops": 2 * vectors * active,
            "dense_flops": 2 * vectors * mask.size,
        }
    table = pd.DataFrame.from_dict(rows, orient="index")
    total = table.drop(columns=["shape", "structure", "density"]).sum()
    table.loc["all"] = {
        **total,
        "shape": "",
        "structure": "",
        "density": total["active"] / total["connections"],
    }
    table.index.name = "path"
    table = table.astype(dict.fromkeys(total.index, int))
    return table if function is not None else table.drop(columns=["flops", "dense_flops"])


def structure_of(mask: np.ndarray) -> str:
    """The narrowest structure that a mask ``(..., I, O)`` has; see :func:`summarize`."""
    if mask.all():
        return "dense"
    if mask.ndim < 2:
        return "unstructured"
    alive_in, alive_out = (np.asarray(mask.any(tuple(_other(mask, a)))) for a in (-2, -1))
    full_in, full_out = (np.asarray(mask.all(tuple(_other(mask, a)))) for a in (-2, -1))
    if full_in[alive_in].all() or full_out[alive_out].all():
        return "channels"
    matrix = mask.reshape(-1, mask.shape[-1])
    tile = tile_of(matrix) if mask.ndim == 2 else None
    if tile is not None:
        return f"tiles {tile[0]}x{tile[1]}"
    for group in (size for size in _GROUPS if mask.shape[-2] % size == 0):
        counts = mask.reshape(*mask.shape[:-2], -1, group, mask.shape[-1]).sum(-2)
        if counts.min() == counts.max():
            return f"{counts.min()}:{group}"
    fan_in = matrix.sum(0)
    return f"fan-in {fan_in[0]}" if fan_in.min() == fan_in.max() else "unstructured"


def degrees(mask: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Connections of every input and of every output of a mask ``(..., I, O)``: a connection map.

    Of the first layer of an image classifier, ``degrees(mask)[0].reshape(28, 28)`` shows the
    pixels that the network looks at.
    """
    mask = np.asarray(mask)
    return mask.sum(tuple(_other(mask, -2))), mask.sum(tuple(_other(mask, -1)))


def overlap(masks: PyTree, others: PyTree, where: Where = is_kernel) -> dict[str, float]:
    """By path, the connections that two networks share over those that either has (Jaccard).

    Raises:
      ConfigError: if the two have other paths or shapes.
    """
    first, second = named_leaves(masks, where), named_leaves(others, where)
    _check_same(
        {path: leaf.shape for path, leaf in first.items()},
        {path: leaf.shape for path, leaf in second.items()},
    )
    return {
        path: float(jnp.sum(mask & second[path]) / jnp.maximum(jnp.sum(mask | second[path]), 1))
        for path, mask in first.items()
    }


def mask_figure(masks: PyTree, where: Where = is_kernel) -> Figure:
    """A picture of the masks, one panel each: inputs down, outputs across, connections dark.

    Positions of a convolution lie below one another, one block of inputs each.
    """
    require("matplotlib", "mask_figure")
    from matplotlib.figure import Figure

    leaves = {path: np.asarray(mask) for path, mask in named_leaves(masks, where).items()}
    figure = Figure(figsize=(2.6 * len(leaves), 3.0), layout="constrained")
    panels = figure.subplots(1, len(leaves), squeeze=False)[0]
    for axes, (path, mask) in zip(panels, leaves.items(), strict=True):
        matrix = mask.reshape(-1, mask.shape[-1])
        axes.imshow(
            matrix, cmap="binary", aspect="auto", interpolation="antialiased", vmin=0, vmax=1
        )
        axes.set_title(f"{path}\n{matrix.mean():.1%} active", fontsize=8)
        axes.set_xlabel("output", fontsize=8)
        axes.set_ylabel("input", fontsize=8)
        axes.tick_params(labelsize=7)
    return figure


def _other(mask: np.ndarray, axis: int) -> list[int]:
    return [other for other in range(mask.ndim) if other != axis % mask.ndim]


def _of_params(params: PyTree, masks: PyTree) -> dict[str, np.ndarray]:
    by_path = {path: np.asarray(mask) for path, mask in leaves_by_name(masks).items()}
    _check_same(
        {path: np.shape(leaf) for path, leaf in leaves_by_name(params).items()},
        {path: mask.shape for path, mask in by_path.items()},
    )
    return by_path


def _check_same(shapes: dict[str, tuple], others: dict[str, tuple]) -> None:
    for path in shapes.keys() | others.keys():
        if shapes.get(path) != others.get(path):
            raise ConfigError(
                f"{path} has shape {shapes.get(path)} in one and {others.get(path)} in the other; "
                "give trees of the same network"
            )
