"""Prunes a trained network in one shot, layer by layer, on calibration rows.

SparseGPT, Wanda and RIA differ only in how they prune one matrix, given the vectors that it
multiplies. What they have in common is here: the layers in their order, each with the outputs of
the pruned layers before it; densities and N:M structures; and the error that pruning causes.

Wanda and RIA are here, too: they rank weights by their sizes and those of their inputs, and leave
the remaining ones as they are. Per layer they need one pass of the calibration rows and a sort, no
inverse of a Hessian as SparseGPT does (``optimal_brain_surgeon.py``).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from fsjax.arguments import Fraction, check
from fsjax.errors import ConfigError
from fsjax.sparsity.kernel_axes import AxesByPath, kernel_axes
from fsjax.sparsity.linear_maps import LinearMap, evaluator, linear_maps
from fsjax.sparsity.masks import Where, by_pattern, is_kernel, named_leaves
from fsjax.sparsity.structures import Structure, fan_in, highest, unstructured
from fsjax.sparsity.trees import leaves_by_name, with_leaves
from fsjax.typing import PyTree

#: ``(matrix, rows, density) -> (matrix, mask)``: prunes one matrix ``(I, O)`` float32, given the
#: vectors ``(R, I)`` float32 that it multiplies and the share of connections to keep.
PruneMatrix = Callable[[Array, Array, float], tuple[Array, Array]]

#: One density, or densities by path pattern.
Densities = float | Mapping[str, float]

# One value each, so that calls share compiled programs.
_BY_OUTPUT = fan_in()
_WHOLE_LAYER = unstructured()


class PrunedNetwork(NamedTuple):
    """Outcome of :func:`fsjax.sparsity.brain_surgeon`, ``wanda`` and ``ria``.

    Attributes:
      params: the new parameters, 0 at pruned connections.
      masks: bool arrays in their structure, all true where nothing was pruned.
      errors: relative squared error of the outputs of each pruned layer on the calibration rows,
        by path; 0 where the outputs are always 0.
    """

    params: PyTree
    masks: PyTree
    errors: dict[str, float]


def prune_layers(
    function: Callable,
    params: PyTree,
    *inputs: PyTree,
    prune: PruneMatrix,
    density: Densities | None,
    structure: Structure | None,
    where: Where,
    axes: AxesByPath | None,
) -> PrunedNetwork:
    """Prunes each layer on the outputs of the layers before it, which are already pruned.

    Args:
      prune: how one matrix is pruned; it knows the structure.
      function, params, *inputs, density, structure, where, axes: as for
        :func:`fsjax.sparsity.brain_surgeon`, with the same errors.
    """
    shared = _density(density, structure)
    paths = named_leaves(params, where) if axes is None else kernel_axes(params, where, axes)
    maps = _used_once(*linear_maps(function, params, *inputs), paths)
    shares = by_pattern(shared if isinstance(shared, Mapping) else {"*": shared}, list(maps))
    masks = jax.tree.map(lambda leaf: jnp.ones(jnp.shape(leaf), bool), params)
    errors = {}
    for (path, linear), share in zip(maps.items(), shares, strict=True):
        group = None if structure is None else structure.group
        numbers = linear.options.get("dimension_numbers")  # Of a convolution.
        side = linear.options["rhs_shape"][numbers.rhs_spec[1]] if numbers else linear.inputs
        if group is not None and side % group:
            raise ConfigError(
                f"{path}: {structure} does not fit {side} inputs, as {group} does not divide them; "
                "leave the layer out with the path filter `where`"
            )
        rows = _inputs_of(function, linear, params, *inputs)
        if not jnp.isfinite(jnp.sum(rows**2)):
            raise ConfigError(
                f"the inputs of {path} hold numbers that are not finite, or too large to square; "
                "give calibration rows and parameters without NaN"
            )
        weight = leaves_by_name(params)[path]
        matrix = linear.matrix(weight).astype(jnp.float32)
        new, mask = prune(matrix, rows, share)
        errors[path] = _relative_error(rows, matrix, new)
        new_weight = linear.weight(new.astype(weight.dtype), weight.shape)
        params = with_leaves(params, {path: new_weight})
        masks = with_leaves(masks, {path: linear.weight(mask, weight.shape)})
    return PrunedNetwork(params, masks, errors)


def _density(density: Densities | None, structure: Structure | None) -> Densities:
    """The share of connections to keep; checks that exactly one of the two arguments is given."""
    if (density is None) == (structure is None):
        raise ConfigError(
            f"density={density} and structure={structure}; give exactly one of the two"
        )
    if structure is not None:
        if structure.group is None or structure.fixed_density is None:
            raise ConfigError(
                f"structure={structure} cannot be pruned input by input; give n_of_m(n, m), or "
                "density="
            )
        return structure.fixed_density
    assert density is not None  # as checked above
    for value in density.values() if isinstance(density, Mapping) else [density]:
        check(Fraction, density=value)
    return density


def _used_once(
    maps: list[LinearMap], others: set[str], chosen: Collection[str]
) -> dict[str, LinearMap]:
    """The linear maps of the parameters, by path, in the order of their use."""
    paths = [linear.path for linear in maps]
    left_out = [path for path in chosen if path in others or paths.count(path) != 1]
    if left_out:
        raise ConfigError(
            f"{', '.join(left_out[:4])}: not used exactly once, outside of loops, as the weights "
            "of a linear map (transpose_kernel=True flips them first); leave such parameters out "
            "with the path filter `where`"
        )
    return {linear.path: linear for linear in maps if linear.path in chosen}


def _inputs_of(function: Callable, linear: LinearMap, params: PyTree, *inputs: PyTree) -> Array:
    """The vectors ``(R, I)`` float32 that one linear map multiplies."""

    @jax.jit
    def compute(params: PyTree, inputs: PyTree) -> Array:
        vectors = []

        def note(current: LinearMap, rows: Array, weight: Array | None) -> None:
            if current.path == linear.path:
                vectors.append(current.patches(rows).astype(jnp.float32))

        evaluator(function, params, *inputs)(note, params, *inputs)
        return vectors[0]

    return compute(params, inputs)


@jax.jit
def _errors(rows: Array, matrix: Array, new: Array) -> tuple[Array, Array]:
    return jnp.sum((rows @ (new - matrix)) ** 2), jnp.sum((rows @ matrix) ** 2)


def _relative_error(rows: Array, matrix: Array, new: Array) -> float:
    """Squared error of the outputs over their squared size; 0 where all outputs are 0."""
    error, size = map(float, _errors(rows, matrix, new))
    return error / size if size else 0.0


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
