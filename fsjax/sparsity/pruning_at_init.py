"""Pruning at initialisation: masks by SNIP and GraSP, before any training."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping

import jax
import jax.numpy as jnp
from jax import Array

from fsjax.sparsity.kernel_axes import AxesByPath, KernelAxes, from_layers, kernel_axes, to_layers
from fsjax.sparsity.kth import largest
from fsjax.sparsity.masks import Counts, Scope, Where, is_kernel
from fsjax.sparsity.trees import split
from fsjax.typing import PyTree


def snip_masks(
    params: PyTree,
    gradients: PyTree,
    counts: Counts,
    where: Where = is_kernel,
    scope: Scope = "layer",
    *,
    axes: AxesByPath | None = None,
    output_first: bool | None = None,
) -> PyTree:
    """Keeps the connections with the largest ``|gradient x weight|`` (SNIP, Lee et al., 2019).

    With the parameters themselves as ``gradients``, this is magnitude pruning. Put the masks into
    :func:`fsjax.sparsity.sparse` as ``masks``.

    Args:
      params: dense parameters.
      gradients: gradients of the loss on one or more batches, in the structure of ``params``.
      counts: as in :func:`fsjax.sparsity.init_masks`, of the layers that ``axes`` tell.
      where, axes, output_first: as for :func:`fsjax.sparsity.sparse`.
      scope: ``"layer"`` ranks the weights of each layer separately, as in the code of CTRE;
        ``"global"`` ranks all weights together, as in the SNIP paper, and uses only the sum of
        ``counts``.

    A layer whose products are all 0, as those of a head that starts at 0 and of the layers before
    it, cannot be ranked by them. It keeps its own count, of the largest gradients or weights.

    Returns:
      Bool masks in the structure of ``params``, all true where nothing is masked.

    Examples:
      >>> shapes = [(64, 100), (100, 10)]
      >>> print(sparsity.uniform_counts(shapes, 0.1), sparsity.erdos_renyi_counts(shapes, 2.0))
      >>> print(sparsity.erdos_renyi_density_counts(shapes, 0.1))
      >>> def counts(shapes):
      ...     return sparsity.uniform_counts(shapes, 0.1)
      >>> params = {"kernel": jax.random.normal(jax.random.key(0), (64, 10))}
      >>> masks = sparsity.init_masks(jax.random.key(1), params, counts)  # at random
      >>> masks = sparsity.snip_masks(params, jax.tree.map(jnp.sin, params), counts)  # by gradients
    """
    kernels = kernel_axes(params, where, axes, output_first)
    slopes, weights = to_layers(gradients, kernels), to_layers(params, kernels)
    scores = {name: jnp.abs(slopes[name] * weight) for name, weight in weights.items()}
    unranked = {name: ~jnp.any(score > 0) for name, score in scores.items()}
    # Where all weights are 0 the gradients differ, and where all gradients are 0 the weights.
    fallback = {
        name: jnp.where(unranked[name], jnp.abs(slopes[name]) + jnp.abs(weights[name]), score)
        for name, score in scores.items()
    }
    return _of_largest(params, kernels, fallback, counts, scope, unranked)


def grasp_masks(
    loss: Callable[[PyTree], Array],
    params: PyTree,
    counts: Counts,
    where: Where = is_kernel,
    scope: Scope = "global",
    *,
    axes: AxesByPath | None = None,
    output_first: bool | None = None,
) -> PyTree:
    """Keeps the weights whose removal would reduce the gradient norm most (GraSP, eq. 8).

    Wang, Zhang and Grosse, ICLR 2020: those with the highest ``-weight x (Hessian x gradient)`` are
    removed.

    Args:
      loss: function from the parameters to the scalar loss on one or more batches.
      params: dense parameters.
      counts, where, scope, axes, output_first: as :func:`snip_masks`; in the paper, global.

    Returns:
      Bool masks, as :func:`snip_masks`.
    """
    kernels = kernel_axes(params, where, axes, output_first)
    products = to_layers(hessian_gradient(loss, params), kernels)
    scores = {name: products[name] * w for name, w in to_layers(params, kernels).items()}
    return _of_largest(params, kernels, scores, counts, scope)


def hessian_gradient(loss: Callable[[PyTree], Array], params: PyTree) -> PyTree:
    """The Hessian of a scalar loss times its gradient, in the structure of the parameters."""
    gradient = jax.grad(loss)
    return jax.jvp(gradient, (params,), (gradient(params),))[1]


def _of_largest(
    params: PyTree,
    kernels: Mapping[str, KernelAxes],
    scores: dict[str, Array],
    counts: Counts,
    scope: Scope,
    apart: Mapping[str, Array] | None = None,
) -> PyTree:
    """Masks of the largest scores; layers that are ``apart`` do not compete with the others."""
    by_name = "names" in inspect.signature(counts).parameters  # As those of a recipe.
    shapes = [tuple(score.shape) for score in scores.values()]
    numbers = counts(shapes, **{"names": list(scores)} if by_name else {})
    dense = jax.tree.map(lambda leaf: jnp.ones(jnp.shape(leaf), bool), params)
    if scope == "layer":
        pairs = zip(scores.items(), numbers, strict=True)
        by_layer = {name: largest(score, n) for (name, score), n in pairs}
        return from_layers(by_layer, kernels, dense)
    is_apart = {name: jnp.asarray((apart or {}).get(name, False)) for name in scores}
    together = jnp.concatenate([score.reshape(-1) for score in scores.values()])
    compete = jnp.concatenate([jnp.full(score.size, ~is_apart[n]) for n, score in scores.items()])
    of_layer = dict(zip(scores, numbers, strict=True))
    total = sum(jnp.where(is_apart[name], 0, number) for name, number in of_layer.items())
    masks = split(largest(together, total, compete), scores)
    by_layer = {name: largest(score, of_layer[name]) for name, score in scores.items()}
    chosen = {name: jnp.where(is_apart[name], by_layer[name], masks[name]) for name in scores}
    return from_layers(chosen, kernels, dense)
