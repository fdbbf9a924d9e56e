"""Describes sparse networks: cost, tables, degrees of neurons, overlap, pictures."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from fsjax.errors import ConfigError
from fsjax.extras import require
from fsjax.sparsity.connections import Connections, layer_masks
from fsjax.sparsity.kernel_axes import AxesByPath, KernelAxes, entry_of, kernel_axes
from fsjax.sparsity.linear_maps import multiplications
from fsjax.sparsity.masks import Where, bool_masks, is_kernel, named_leaves
from fsjax.sparsity.structures import tile_of
from fsjax.sparsity.trees import check_same_shapes, is_masked_out, leaves_by_name, path_name
from fsjax.typing import PyTree

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

#: The columns of :func:`summarize`.
_COLUMNS = ("shape", "structure", "connections", "active", "density", "flops", "dense_flops")

#: Values of M for which N:M structures are detected.
_GROUPS = (2, 4, 8, 16, 32)


def count_connections(params: PyTree, masks: PyTree = ()) -> int:
    """Number of active weights, the papers' #params (WAST, eq. 5).

    The sum over layers of the L0 norm of the weight matrix. A connection is active if its mask is
    true, whatever its weight. Biases and other vectors do not count.

    Args:
      params: arrays of one network (one seed); those with two or more dimensions are weights.
      masks: boolean arrays with the structure and shapes of ``params``, or ``()`` if nothing is
        masked. Instead of a mask, a layer may have :class:`fsjax.sparsity.connections.Connections`.

    Raises:
      ConfigError: if ``masks`` has another structure or other shapes.

    Examples:
      >>> params = {"kernel": jnp.ones((64, 10)), "bias": jnp.zeros(10)}
      >>> connections = fsjax.evaluation.count_connections(params)  # 640
      >>> print(fsjax.evaluation.training_flops(connections, num_samples=1000, num_epochs=10))
    """
    leaves = layer_masks(masks)
    number = sum(leaf.rows.size for leaf in leaves if isinstance(leaf, Connections))
    if number:
        others = [leaf for leaf in leaves if not isinstance(leaf, Connections)]
        return number + count_connections(others, others)
    weights, structure = jax.tree.flatten(params)
    shapes = [np.shape(leaf) for leaf in weights]
    if isinstance(masks, tuple) and not masks:
        return sum(int(np.prod(shape)) for shape in shapes if len(shape) >= 2)
    active, other = jax.tree.flatten(masks)
    active_shapes = [np.shape(leaf) for leaf in active]
    # The annotations of JAX refer to a PyTreeDef that its stubs do not define.
    if other != structure or active_shapes != shapes:  # type: ignore[operator]
        raise ConfigError(
            f"masks {other} with shapes {active_shapes} do not match params {structure} with "
            f"shapes {shapes}; give one mask per array, or () for no masks"
        )
    return sum(int(np.count_nonzero(leaf)) for leaf in active if np.ndim(leaf) >= 2)


def training_flops(connections: int, num_samples: int, num_epochs: int, each: float = 6.0) -> float:
    """Number of floating-point operations of training, as in WAST's Table 3 (appendix A.2).

    Args:
      connections: number of connections, from :func:`count_connections`.
      num_samples: rows per epoch.
      num_epochs: number of epochs.
      each: operations per connection and row: by default 2 in the forward pass (a multiplication
        and an addition) and 4 in the backward pass.
    """
    return each * connections * num_samples * num_epochs


def summarize(
    params: PyTree,
    masks: PyTree | None = None,
    function: Callable | None = None,
    *inputs: PyTree,
    axes: AxesByPath | None = None,
    output_first: bool | None = None,
) -> pd.DataFrame:
    """Tabulates the layers of a sparse network: a row per weight array, and one for all.

    Vectors, and what ``axes`` knows to be used entry by entry, have a row if they are masked.

    Args:
      params: arrays.
      masks: bool arrays in the structure of ``params``, as from :func:`fsjax.sparsity.masks_of`;
        ``None`` for a dense network.
      function: ``(params, *inputs) -> outputs``; if given, the FLOPs of a call are counted.
      *inputs: an example, arrays or their shapes.
      axes, output_first: as for :func:`fsjax.sparsity.sparse`; structures are told of matrices
        ``(..., inputs, outputs)``.

    Returns:
      A table with the columns ``shape``, ``structure`` (``"dense"``, ``"channels"``,
      ``"tiles 4x4"``, ``"2:4"``, ``"fan-in 12"`` or ``"unstructured"``), ``connections``,
      ``active``, ``density``, and with a function ``flops`` and ``dense_flops``: two per connection
      and multiplied vector. They are NaN, also for all, where they are not known: of kernels that
      the function changes first, or uses in branches. The index holds the paths, and ``"all"``.

    Raises:
      ConfigError: if masks are not bool, or have other paths or shapes than the parameters.
    """
    import pandas as pd

    leaves = leaves_by_name(params)
    by_path = _masks_by_name(leaves, masks)
    check_same_shapes(leaves, by_path, "the parameters", "the masks")
    uses = {path: getattr(entry_of(path, axes), "use", "kernel") for path in leaves}
    of_kernels = [leaf for path, leaf in leaves.items() if uses[path] == "kernel"]
    has_matrices = any(np.ndim(leaf) >= 2 and np.size(leaf) for leaf in of_kernels)
    where = is_kernel if axes is not None else lambda path, leaf: jnp.ndim(leaf) >= 2
    kernels = kernel_axes(params, where, axes, output_first) if has_matrices else {}
    counted = None if function is None else multiplications(function, params, *inputs)
    products, unknown = counted or ({}, set())
    rows = {}
    for path, mask in by_path.items():
        if mask.all() and (mask.ndim < 2 or uses[path] == "elementwise"):
            continue
        is_named = path in kernels and (
            axes is not None or is_kernel(tuple(path.split("/")), leaves[path])
        )
        count = float("nan") if is_named and path in unknown else products.get(path, 0)
        active, vectors = int(mask.sum()), count / max(mask.size, 1)
        rows[path] = {
            "shape": " x ".join(map(str, leaves[path].shape)),
            "structure": _structure(kernels[path], mask) if path in kernels else "",
            "connections": mask.size,
            "active": active,
            "density": float(mask.mean()) if mask.size else 1.0,
            "flops": 2 * vectors * active,
            "dense_flops": 2 * vectors * mask.size,
        }
    table = pd.DataFrame.from_dict(rows, orient="index", columns=list(_COLUMNS))
    total = table.drop(columns=["shape", "structure", "density"]).sum(skipna=False)
    table.loc["all"] = {
        **total,
        "shape": "",
        "structure": "",
        "density": total["active"] / total["connections"] if total["connections"] else 1.0,
    }
    table.index.name = "path"
    table = table.astype(dict.fromkeys(total.dropna().index, int))
    return table if function is not None else table.drop(columns=["flops", "dense_flops"])


def _masks_by_name(leaves: Mapping[str, Any], masks: PyTree | None) -> dict[str, np.ndarray]:
    """The masks by path, all true where the parameters belong to another optimiser or to none."""
    if masks is None:
        return {path: np.ones(np.shape(leaf), bool) for path, leaf in leaves.items()}
    pairs = jax.tree.leaves_with_path(bool_masks(masks), is_leaf=is_masked_out)
    by_path = {path_name(path): mask for path, mask in pairs}
    return {
        path: np.ones(np.shape(leaves[path]), bool)
        if is_masked_out(mask) and path in leaves
        else np.asarray(mask)
        for path, mask in by_path.items()
    }


def _structure(kernel: KernelAxes, mask: np.ndarray) -> str:
    """The structure of all layers of a kernel, or ``"unstructured"`` where they differ."""
    structures = {structure_of_mask(np.asarray(layer)) for layer in kernel.layers(mask)}
    return structures.pop() if len(structures) == 1 else "unstructured"


def structure_of_mask(mask: np.ndarray) -> str:
    """The most specific structure of a mask ``(..., I, O)``, named as in :func:`summarize`."""
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
    """Numbers of connections of each input ``(I,)`` and of each output ``(O,)`` of a mask.

    For the first layer of an image classifier, ``degrees(mask)[0].reshape(28, 28)`` shows which
    pixels the network uses.

    Args:
      mask: bool ``(..., I, O)``; else ConfigError.

    Examples:
      >>> mask = sparsity.random_mask(jax.random.key(0), (20, 10), 40)
      >>> inputs, outputs = sparsity.degrees(mask)  # connections of each neuron
      >>> print(sparsity.path_scores(mask).shape)  # (20, 10)
      >>> sparsity.mask_figure({"kernel": mask}).savefig("masks.png")
      >>> packed = sparsity.pack({"kernel": mask})  # one bit per connection
      >>> assert (sparsity.unpack(packed)["kernel"] == mask).all()
    """
    mask = np.asarray(bool_masks(mask))
    return mask.sum(tuple(_other(mask, -2))), mask.sum(tuple(_other(mask, -1)))


def overlap(masks: PyTree, others: PyTree, where: Where = is_kernel) -> dict[str, float]:
    """Jaccard index of the connections of two networks: shared over all, in [0, 1], by path.

    Args:
      masks, others: trees of bool arrays.
      where: which leaves are compared.

    Raises:
      ConfigError: if the paths or shapes of the two differ, or if one is not bool.
    """
    first, second = (named_leaves(bool_masks(tree), where) for tree in (masks, others))
    check_same_shapes(first, second, "the first tree", "the second")
    return {
        path: float(jnp.sum(mask & second[path]) / jnp.maximum(jnp.sum(mask | second[path]), 1))
        for path, mask in first.items()
    }


def mask_figure(masks: PyTree, where: Where = is_kernel) -> Figure:
    """Draws the masks, one panel each: rows are inputs, columns outputs, connections are dark.

    Kernels of convolutions are drawn as matrices; the inputs of each kernel position form a block.
    """
    require("matplotlib", "mask_figure")
    from matplotlib.figure import Figure

    chosen = named_leaves(bool_masks(masks), where)
    leaves = {path: np.asarray(mask) for path, mask in chosen.items()}
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
