"""Wanda and RIA: prune a trained network by its weights and the sizes of their inputs.

Both leave the remaining weights as they are. Per layer they need one pass of the calibration rows
and a sort, no inverse of a Hessian as SparseGPT does.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import Array

from fsjax.sparsity.calibration import Densities, PrunedNetwork, prune_layers
from fsjax.sparsity.kernel_axes import AxesByPath
from fsjax.sparsity.masks import Where, is_kernel
from fsjax.sparsity.structures import Structure, fan_in, highest, unstructured
from fsjax.typing import PyTree

# One value each, so that calls share compiled programs.
_BY_OUTPUT = fan_in()
_WHOLE_LAYER = unstructured()


def wanda(
    function: Callable,
    params: PyTree,
    *inputs: PyTree,
    density: Densities | None = None,
    structure: Structure | None = None,
    where: Where = is_kernel,
    axes: AxesByPath | None = None,
) -> PrunedNetwork:
    """Prunes by ``|W_ij| ||x_i||_2``, among the inputs of each output (Wanda).

    Sun, Liu, Bair and Kolter, "A simple and effective pruning approach for large language models",
    2023, eq. 1: ``||x_i||_2`` is the norm of input i over all calibration rows. Weights are
    compared with those of the same output, so each output keeps ``round(density I)`` of its I
    inputs, at least 1. Among equal scores, the inputs of the lowest positions stay.

        pruned = sparsity.wanda(model.apply, params, rows, density=0.5)

    Args:
      function: ``(params, *inputs) -> outputs``, for example ``model.apply`` of Flax.
      params: trained parameters of the dense network.
      *inputs: calibration rows; each layer sees the outputs of the pruned layers before it.
      density: share of connections to keep in each layer, in (0, 1], or shares by path pattern.
      structure: :func:`fsjax.sparsity.n_of_m` along the inputs, instead of ``density``: N of each
        M inputs of an output.
      where: which parameters are pruned; each must be used exactly once, as the weights of a
        matrix product or convolution outside of loops. The inputs of a convolution are the
        entries of a patch.
      axes: of :func:`fsjax.sparsity.axes`, which leaves out what the network does not use as a
        kernel; inputs and outputs are read from the function in any case.

    Raises:
      ConfigError: as :func:`fsjax.sparsity.brain_surgeon`.

    Examples:
      >>> params = {"kernel": jax.random.normal(jax.random.key(0), (6, 4))}
      >>> def apply(params, x):
      ...     return x @ params["kernel"]
      >>> x = jnp.asarray(data.X)
      >>> pruned = sparsity.wanda(apply, params, x, density=0.5)  # a sparsity.PrunedNetwork
      >>> relative = sparsity.ria(apply, params, x, structure=sparsity.n_of_m(1, 2))
      >>> print(pruned.errors, relative.errors)
    """
    return prune_layers(
        function,
        params,
        *inputs,
        prune=functools.partial(_prune, _wanda_scores, structure or _BY_OUTPUT),
        density=density,
        structure=structure,
        where=where,
        axes=axes,
    )


def ria(
    function: Callable,
    params: PyTree,
    *inputs: PyTree,
    density: Densities | None = None,
    structure: Structure | None = None,
    where: Where = is_kernel,
    axes: AxesByPath | None = None,
) -> PrunedNetwork:
    """Prunes by relative importance and activations (RIA).

    Zhang et al., "Plug-and-play: an efficient post-training pruning method for large language
    models", ICLR 2024, eq. 2-4: the score is
    ``(|W_ij| / sum_i |W_ij| + |W_ij| / sum_j |W_ij|) ||x_i||_2^0.5``, so that no input and no
    output loses all of its weights because these are small. The scores of the whole layer are
    compared, as in the authors' code; it keeps ``round(density I O)`` connections. The paper's
    permutation of channels for N:M is left out.

    Arguments and errors as :func:`fsjax.sparsity.wanda`.
    """
    return prune_layers(
        function,
        params,
        *inputs,
        prune=functools.partial(_prune, _ria_scores, structure or _WHOLE_LAYER),
        density=density,
        structure=structure,
        where=where,
        axes=axes,
    )


@functools.partial(jax.jit, static_argnums=(0, 1, 4))
def _prune(
    scores: Callable[[Array, Array], Array],
    structure: Structure,
    matrix: Array,
    rows: Array,
    density: float,
) -> tuple[Array, Array]:
    """Keeps the highest scores of each group of a structure; a ``PruneMatrix`` otherwise."""
    layout, shape = structure.layout(matrix.shape), matrix.shape
    values = layout.scores(scores(jnp.abs(matrix), jnp.linalg.norm(rows, axis=0)))
    chosen = highest(values, structure.count(shape, density), jnp.ones(values.shape, bool))
    mask = layout.mask(chosen, shape)
    return jnp.where(mask, matrix, 0.0), mask


def _wanda_scores(sizes: Array, norms: Array) -> Array:
    return sizes * norms[:, None]


def _ria_scores(sizes: Array, norms: Array) -> Array:
    relative = sum(sizes / jnp.sum(sizes, axis, keepdims=True) for axis in (0, 1))
    # Where all weights of an input or an output are 0, none of them matters.
    return jnp.nan_to_num(relative) * jnp.sqrt(norms)[:, None]
