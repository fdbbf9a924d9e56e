"""SparseGPT: prunes a trained network layer by layer, and adjusts the remaining weights.

Frantar and Alistarh (ICML 2023) prune each layer so that its outputs on calibration rows change as
little as possible. When weights of an input are removed, those of the following inputs compensate
for them, according to the inverse Hessian of the squared error (optimal brain surgeon, Hassibi and
Stork, 1993).
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import Array

from fsjax.arguments import Fraction, Positive, check
from fsjax.sparsity.calibration import Densities, PrunedNetwork, prune_layers
from fsjax.sparsity.kernel_axes import AxesByPath
from fsjax.sparsity.masks import Where, is_kernel
from fsjax.sparsity.structures import Structure, highest
from fsjax.typing import PyTree

#: Number of inputs whose connections are ranked together, as in the authors' code.
BLOCK = 128


def brain_surgeon(
    function: Callable,
    params: PyTree,
    *inputs: PyTree,
    density: Densities | None = None,
    structure: Structure | None = None,
    where: Where = is_kernel,
    axes: AxesByPath | None = None,
    damping: float = 0.01,
) -> PrunedNetwork:
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
    group = None if structure is None else structure.group

    def prune(matrix: Array, rows: Array, share: float) -> tuple[Array, Array]:
        return prune_matrix(matrix, rows.T @ rows, share, group, damping=damping)

    return prune_layers(
        function,
        params,
        *inputs,
        prune=prune,
        density=density,
        structure=structure,
        where=where,
        axes=axes,
    )


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
            least = 1 if end == number else 0  # One in all.
            kept = max(least, round(density * end * outputs)) - round(density * start * outputs)
        else:
            kept = round(density * group)
        matrix, mask = _prune_block(
            matrix, factor, start, kept, size=end - start, by_output=group is not None
        )
        masks.append(mask)
    return matrix, jnp.concatenate(masks)


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
