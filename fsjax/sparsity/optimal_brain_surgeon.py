"""Pruning after training, layer by layer, with the other weights adjusted: SparseGPT.

Frantar and Alistarh (ICML 2023) prune each layer so that its outputs for some calibration rows
change least: the weights of an input that go are made up for by those of the inputs behind it, by
the inverse Hessian of the squared error (optimal brain surgeon, Hassibi and Stork, 1993).
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
from fsjax.sparsity.linear_maps import LinearMap, evaluate, linear_maps
from fsjax.sparsity.masks import Where, by_pattern, is_kernel, named_leaves
from fsjax.sparsity.structures import Structure, highest
from fsjax.sparsity.trees import with_leaves
from fsjax.typing import PyTree

#: Inputs among which connections are chosen together, as in the authors' code.
BLOCK = 128


class Operated(NamedTuple):
    """Outcome of :func:`brain_surgeon`.

    Attributes:
      params: the new parameters, 0 at connections that went.
      masks: bool in their structure, all true where nothing was pruned.
      errors: by path, the squared error of the layer's outputs over their squared size, both of
        the calibration rows.
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
    damping: float = 0.01,
) -> Operated:
    """Prunes the matrices and convolutions of a trained network in one shot (SparseGPT).

    Layers are pruned in the order in which the function uses them, each for the inputs that the
    pruned layers before it give.

        pruned = sparsity.brain_surgeon(model.apply, params, rows, density=0.5)

    Args:
      function: ``(params, *inputs) -> outputs``, such as ``model.apply`` of Flax.
      params: trained, dense.
      *inputs: calibration rows, some hundreds or more.
      density: share of connections that stay in each layer, in (0, 1], or by path pattern.
      structure: :func:`fsjax.sparsity.n_of_m` along the inputs, in place of ``density``.
      where: which parameters may be pruned; of these, those that are used once, as the weights of
        a linear map.
      damping: added to the diagonal of the Hessian, as a share of its mean, above 0.

    Raises:
      ConfigError: if no such parameter is used in a linear map, for another structure, and for a
        layer that the structure does not fit.
    """
    check(Positive, damping=damping)
    size = _group_size(density, structure)
    leaves = named_leaves(params, where)
    maps = _used_once(linear_maps(function, params, *inputs), leaves)
    if not maps:
        raise ConfigError(
            f"none of {', '.join(leaves)} is used once as the weights of a linear map; write the "
            "path filter `where` so that it chooses some that are"
        )
    if structure is not None:
        density = structure.fixed_density
    assert density is not None  # as _group_size says
    densities: Mapping[str, float] = density if isinstance(density, Mapping) else {"*": density}
    shares = by_pattern(densities, list(maps))
    masks = jax.tree.map(lambda leaf: jnp.ones(jnp.shape(leaf), bool), params)
    errors = {}
    for (path, linear), share in zip(maps.items(), shares, strict=True):
        if structure is not None and linear.inputs % size:
            raise ConfigError(
                f"{path}: {structure} does not fit {linear.inputs} inputs, as {size} does not "
                "divide them; leave the layer out with the path filter `where`"
            )
        hessian = _hessian(function, linear, params, *inputs)
        weight = named_leaves(params, where)[path]
        matrix = linear.matrix(weight).astype(jnp.float32)
        new, mask = prune_matrix(matrix, hessian, share, size or None, damping=damping)
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
    """Prunes one matrix and adjusts the weights that stay (SparseGPT, algorithm 1).

    Args:
      matrix: ``(I, O)`` float32, inputs first.
      hessian: ``(I, I)``, the sum of ``x x^T`` over the rows x that are multiplied by the matrix.
      density: share of the connections that stay, in (0, 1].
      group: inputs of an output among which exactly ``density`` of the connections stay (M of
        N:M); ``None`` chooses among all connections of ``block`` inputs.
      damping: added to the diagonal, as a share of its mean.
      block: inputs that are chosen from together, without ``group``.

    Returns:
      The new matrix, and its mask.
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
            # Rounded so that the blocks sum to the count of the whole.
            kept = round(density * end * outputs) - round(density * start * outputs)
        else:
            kept = round(density * group)
        matrix, mask = _prune_block(
            matrix, factor, start, kept, size=end - start, by_output=group is not None
        )
        masks.append(mask)
    return matrix, jnp.concatenate(masks)


def _group_size(density: float | Mapping[str, float] | None, structure: Structure | None) -> int:
    """M of an N:M structure, or 0; checks that exactly one of the two is there."""
    if (density is None) == (structure is None):
        raise ConfigError("give one of density= and structure=")
    if structure is None:
        for value in density.values() if isinstance(density, Mapping) else [density]:
            check(Fraction, density=value)
        return 0
    if structure.group is None:
        raise ConfigError(
            f"structure={structure} cannot be kept while weights are adjusted input by input; give "
            "n_of_m(n, m), or density="
        )
    return structure.group


def _used_once(maps: list[LinearMap], leaves: Mapping[str, Array]) -> dict[str, LinearMap]:
    """The linear maps of these parameters, in order, but of those that several share."""
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

        evaluate(function, note, params, *inputs)
        return sums[0]

    return compute(params, inputs)


def _inverse_factor(hessian: Array, dead: Array, damping: float) -> Array:
    """The upper Cholesky factor of the inverse of the damped Hessian."""
    diagonal = jnp.diag(hessian)
    # A dead input has no influence; 1 keeps the matrix invertible.
    added = jnp.where(dead, 1.0, damping * jnp.mean(diagonal))
    inverse = jnp.linalg.inv(hessian + jnp.diag(added))
    return jnp.linalg.cholesky((inverse + inverse.T) / 2).T


@functools.partial(jax.jit, static_argnames=("size", "by_output"))
def _prune_block(
    matrix: Array, factor: Array, start: int, kept: int, *, size: int, by_output: bool
) -> tuple[Array, Array]:
    """Prunes inputs ``start`` to ``start + size``, and adjusts these and all behind them."""
    inputs, outputs = matrix.shape
    rows = jax.lax.dynamic_slice(matrix, (start, 0), (size, outputs))
    diagonal = jax.lax.dynamic_slice(jnp.diag(factor), (start,), (size,))
    # What the error grows by if a connection goes (eq. 5).
    cost = (rows / diagonal[:, None]) ** 2
    groups = cost.T if by_output else cost.reshape(1, -1)
    mask = highest(groups, kept, jnp.ones(groups.shape, bool))
    mask = mask.T if by_output else mask.reshape(size, outputs)

    def prune(number: int, matrix: Array) -> Array:
        place = start + number
        row = matrix[place]
        error = jnp.where(mask[number], 0.0, row) / factor[place, place]
        behind = jnp.where(jnp.arange(inputs) >= place, factor[place], 0.0)
        matrix = matrix - behind[:, None] * error[None, :]
        return matrix.at[place].set(jnp.where(mask[number], row, 0.0))

    return jax.lax.fori_loop(0, size, prune, matrix), mask
