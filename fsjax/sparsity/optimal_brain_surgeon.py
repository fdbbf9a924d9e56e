"""SparseGPT: prunes a trained network layer by layer, and adjusts the remaining weights.

Frantar and Alistarh (ICML 2023) prune each layer so that its outputs on calibration rows change as
little as possible. When weights of an input are removed, those of the following inputs compensate
for them, according to the inverse Hessian of the squared error (optimal brain surgeon, Hassibi and
Stork, 1993).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from fsjax.arguments import Fraction, Positive, check
from fsjax.errors import ConfigError
from fsjax.sparsity.kernel_axes import AxesByPath, kernel_axes
from fsjax.sparsity.linear_maps import LinearMap, evaluate_maps, linear_maps
from fsjax.sparsity.masks import Where, by_pattern, is_kernel, named_leaves
from fsjax.sparsity.structures import Structure, highest
from fsjax.sparsity.trees import with_leaves
from fsjax.typing import PyTree

#: Number of inputs whose connections are ranked together, as in the authors' code.
BLOCK = 128


class Operated(NamedTuple):
    """Outcome of :func:`brain_surgeon`.

    Attributes:
      params: the new parameters, 0 at pruned connections.
      masks: bool arrays in their structure, all true where nothing was pruned.
      errors: relative squared error of the outputs of each pruned layer on the calibration rows,
        by path.
    """

    params: PyTree
    masks: PyTree
    errors: dict[str, float]


def brain_surgeon(
    function: Callable,
    params: PyTree,
    *inputs: PyTree,
    density: float | Mapping[str, float] | None = None,
    structure: Structure | None = None,
    where: Where = is_kernel,
    axes: AxesByPath | None = None,
    damping: float = 0.01,
) -> Operated:
    """Prunes the matrices and convolutions of a trained network in one shot (SparseGPT).

    Layers are pruned in the order in which the function uses them, each on the outputs of the
    layers before it, which are already pruned.

        pruned = sparsity.brain_surgeon(model.apply, params, rows, density=0.5)

    Args:
      function: ``(params, *inputs) -> outputs``, for example ``model.apply`` of Flax.
      params: trained parameters of the dense network.
      *inputs: calibration rows, at least some hundreds.
      density: share of connections to keep in each layer, in (0, 1], or shares by path pattern.
      structure: :func:`fsjax.sparsity.n_of_m` along the inputs, instead of ``density``.
      where: which parameters are pruned; each must be used exactly once, as the weights of a
        matrix product or convolution outside of loops.
      axes: of :func:`fsjax.sparsity.axes`, which leaves out what the network does not use as a
        kernel; inputs and outputs are read from the function in any case.
      damping: value added to the diagonal of the Hessian, relative to its mean, above 0.

    Raises:
      ConfigError: if one of the parameters is not used exactly once in a linear map, unless
        exactly one of ``density`` and ``structure`` is given, if the structure is not N:M along the
        inputs, if it does not fit a layer, or if the inputs of a layer are not finite.

    Examples:
      >>> params = {"kernel": jax.random.normal(jax.random.key(0), (6, 4))}
      >>> def apply(params, x):
      ...     return x @ params["kernel"]
      >>> pruned = sparsity.brain_surgeon(apply, params, jnp.asarray(data.X), density=0.5)
      >>> print(sparsity.overlap(pruned.masks, jax.tree.map(jnp.ones_like, pruned.masks)))
    """
    check(Positive, damping=damping)
    group = _group_size(density, structure)
    leaves = named_leaves(params, where)
    if axes is not None:
        leaves = {path: leaves[path] for path in kernel_axes(params, where, axes)}
    maps = _used_once(linear_maps(function, params, *inputs), leaves)
    left_out = [path for path in leaves if path not in maps]
    if left_out:
        raise ConfigError(
            f"{', '.join(left_out[:4])}: not used exactly once, outside of loops, as the weights "
            "of a linear map; leave such parameters out with the path filter `where`"
        )
    if structure is not None:
        density = structure.fixed_density
    assert density is not None  # as _group_size says
    densities: Mapping[str, float] = density if isinstance(density, Mapping) else {"*": density}
    shares = by_pattern(densities, list(maps))
    masks = jax.tree.map(lambda leaf: jnp.ones(jnp.shape(leaf), bool), params)
    errors = {}
    for (path, linear), share in zip(maps.items(), shares, strict=True):
        if structure is not None and linear.inputs % group:
            raise ConfigError(
                f"{path}: {structure} does not fit {linear.inputs} inputs, as {group} does not "
                "divide them; leave the layer out with the path filter `where`"
            )
        hessian = _hessian(function, linear, params, *inputs)
        if not jnp.isfinite(hessian).all():
            raise ConfigError(
                f"the inputs of {path} hold numbers that are not finite; give calibration rows and "
                "parameters without NaN"
            )
        weight = named_leaves(params, where)[path]
        matrix = linear.matrix(weight).astype(jnp.float32)
        new, mask = prune_matrix(matrix, hessian, share, group or None, damping=damping)
        change = new - matrix
        errors[path] = float(
            jnp.sum(change * (hessian @ change)) / jnp.sum(matrix * (hessian @ matrix))
        )
        new_weight = linear.weight(new.astype(weight.dtype), weight.shape)
        params = with_leaves(params, {path: new_weight})
        masks = with_leaves(masks, {path: linear.weight(mask, weight.shape)})
    return Operated(params, masks, errors)


def prune_matrix(
    matrix: Array,
    hessian: Array,
    density: float,
    group: int | None = None,
    *,
    damping: float = 0.01,
    block: int = BLOCK,
) -> tuple[Array, Array]:
    """Prunes one matrix and adjusts the remaining weights (SparseGPT, algorithm 1).

    Args:
      matrix: ``(I, O)`` float32, inputs first.
      hessian: ``(I, I)``, the sum of ``x x^T`` over the rows x that are multiplied by the matrix.
      density: share of connections to keep, in (0, 1]; else ConfigError.
      group: M for N:M: the share is kept exactly in each group of M inputs of an output. ``None``
        ranks all connections of ``block`` inputs together.
      damping: value added to the diagonal, relative to its mean.
      block: number of inputs that are ranked together if there is no ``group``.

    Returns:
      The new matrix and its mask, both ``(I, O)``.
    """
    check(Fraction, density=density)
    size = group or block
    number, outputs = matrix.shape
    dead = jnp.diag(hessian) == 0
    factor = _inverse_factor(hessian, dead, damping)
    matrix = jnp.where(dead[:, None], 0.0, matrix)
    masks = []
    for start in range(0, number, size):
        end = min(start + size, number)
        if group is None:
            # Rounded so that the counts of the blocks add up to that of the matrix.
            kept = round(density * end * outputs) - round(density * start * outputs)
        else:
            kept = round(density * group)
        matrix, mask = _prune_block(
            matrix, factor, start, kept, size=end - start, by_output=group is not None
        )
        masks.append(mask)
    return matrix, jnp.concatenate(masks)


def _group_size(density: float | Mapping[str, float] | None, structure: Structure | None) -> int:
    """M of an N:M structure, or 0; checks that exactly one of the two arguments is given."""
    if (density is None) == (structure is None):
        raise ConfigError(
            f"density={density} and structure={structure}; give exactly one of the two"
        )
    if structure is None:
        for value in density.values() if isinstance(density, Mapping) else [density]:
            check(Fraction, density=value)
        return 0
    if structure.group is None:
        raise ConfigError(
            f"structure={structure} cannot be pruned input by input, as SparseGPT does; give "
            "n_of_m(n, m), or density="
        )
    return structure.group


def _used_once(maps: list[LinearMap], leaves: Mapping[str, Array]) -> dict[str, LinearMap]:
    """The linear maps of parameters that are used exactly once, by path, in order."""
    paths = [linear.path for linear in maps]
    return {
        linear.path: linear
        for linear in maps
        if linear.path in leaves and paths.count(linear.path) == 1
    }


def _hessian(function: Callable, linear: LinearMap, params: PyTree, *inputs: PyTree) -> Array:
    """Sum of ``x x^T`` over the inputs of one linear map."""

    @jax.jit
    def compute(params: PyTree, inputs: PyTree) -> Array:
        sums = []

        def note(used: LinearMap, rows: Array, weight: Array | None) -> None:
            if used.path == linear.path:
                patches = used.patches(rows).astype(jnp.float32)
                sums.append(patches.T @ patches)

        evaluate_maps(function, note, params, *inputs)
        return sums[0]

    return compute(params, inputs)


def _inverse_factor(hessian: Array, dead: Array, damping: float) -> Array:
    """The upper Cholesky factor of the inverse of the damped Hessian."""
    diagonal = jnp.diag(hessian)
    # An input that is always 0 has no influence; 1 keeps the matrix invertible.
    added = jnp.where(dead, 1.0, damping * jnp.mean(diagonal))
    inverse = jnp.linalg.inv(hessian + jnp.diag(added))
    return jnp.linalg.cholesky((inverse + inverse.T) / 2).T


@functools.partial(jax.jit, static_argnames=("size", "by_output"))
def _prune_block(
    matrix: Array, factor: Array, start: int, kept: int, *, size: int, by_output: bool
) -> tuple[Array, Array]:
    """Prunes inputs ``start`` to ``start + size``, and adjusts these and all following inputs."""
    inputs, outputs = matrix.shape
    rows = jax.lax.dynamic_slice(matrix, (start, 0), (size, outputs))
    diagonal = jax.lax.dynamic_slice(jnp.diag(factor), (start,), (size,))
    # Increase of the error if a connection is removed (eq. 5).
    cost = (rows / diagonal[:, None]) ** 2
    groups = cost.T if by_output else cost.reshape(1, -1)
    mask = highest(groups, kept, jnp.ones(groups.shape, bool))
    mask = mask.T if by_output else mask.reshape(size, outputs)

    def prune(number: int, matrix: Array) -> Array:
        position = start + number
        row = matrix[position]
        error = jnp.where(mask[number], 0.0, row) / factor[position, position]
        following = jnp.where(jnp.arange(inputs) >= position, factor[position], 0.0)
        matrix = matrix - following[:, None] * error[None, :]
        return matrix.at[position].set(jnp.where(mask[number], row, 0.0))

    return jax.lax.fori_loop(0, size, prune, matrix), mask
