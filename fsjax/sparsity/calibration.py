"""Prunes a trained network in one shot, layer by layer, on calibration rows.

SparseGPT, Wanda and RIA differ only in how they prune one matrix, given the vectors that it
multiplies. What they have in common is here: the layers in their order, each with the outputs of
the pruned layers before it; densities and N:M structures; and the error that pruning causes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from fsjax.arguments import Fraction, check
from fsjax.errors import ConfigError
from fsjax.sparsity.kernel_axes import AxesByPath, kernel_axes
from fsjax.sparsity.linear_maps import LinearMap, evaluator, linear_maps
from fsjax.sparsity.masks import Where, by_pattern, named_leaves
from fsjax.sparsity.structures import Structure
from fsjax.sparsity.trees import leaves_by_name, with_leaves
from fsjax.typing import PyTree

#: ``(matrix, rows, density) -> (matrix, mask)``: prunes one matrix ``(I, O)`` float32, given the
#: vectors ``(R, I)`` float32 that it multiplies and the share of connections to keep.
PruneMatrix = Callable[[Array, Array, float], tuple[Array, Array]]

#: One density, or densities by path pattern.
Densities = float | Mapping[str, float]


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
