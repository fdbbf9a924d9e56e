"""SNIP and GraSP: masks chosen once, before training, from a loss and its gradients."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import Array

from fsjax.sparsity.kth import largest
from fsjax.sparsity.masks import Counts, Where, is_kernel, named_leaves
from fsjax.sparsity.pruning import Scope
from fsjax.sparsity.trees import leaves_by_name, split, with_leaves
from fsjax.typing import PyTree


def snip_masks(
    params: PyTree,
    gradients: PyTree,
    counts: Counts,
    where: Where = is_kernel,
    scope: Scope = "layer",
) -> PyTree:
    """Keeps the connections with the largest ``|gradient x weight|`` (SNIP, Lee et al., 2019).

    With the parameters themselves as ``gradients``, this is magnitude pruning. Put the masks into
    an optimiser with :func:`fsjax.sparsity.with_masks`.

    Args:
      params: dense parameters.
      gradients: gradients of the loss on one or more batches, in the structure of ``params``.
      counts, where: as in :func:`fsjax.sparsity.init_masks`.
      scope: ``"layer"`` ranks the weights of each layer separately, as in the code of CTRE;
        ``"global"`` ranks all weights together, as in the SNIP paper, and uses only the sum of
        ``counts``.

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
    slopes = leaves_by_name(gradients)
    scores = {
        name: jnp.abs(slopes[name] * weight) for name, weight in named_leaves(params, where).items()
    }
    return _of_largest(params, scores, counts, scope)


def grasp_masks(
    loss: Callable[[PyTree], Array],
    params: PyTree,
    counts: Counts,
    where: Where = is_kernel,
    scope: Scope = "global",
) -> PyTree:
    """Keeps the weights whose removal would reduce the gradient norm most (GraSP, eq. 8).

    Wang, Zhang and Grosse, ICLR 2020: those with the highest ``-weight x (Hessian x gradient)`` are
    removed.

    Args:
      loss: function from the parameters to the scalar loss on one or more batches.
      params: dense parameters.
      counts, where, scope: as in :func:`snip_masks`; the paper ranks all weights together.

    Returns:
      Bool masks, as :func:`snip_masks`.
    """
    products = leaves_by_name(hessian_gradient(loss, params))
    scores = {name: products[name] * weight for name, weight in named_leaves(params, where).items()}
    return _of_largest(params, scores, counts, scope)


def hessian_gradient(loss: Callable[[PyTree], Array], params: PyTree) -> PyTree:
    """The Hessian of a scalar loss times its gradient, in the structure of the parameters."""
    gradient = jax.grad(loss)
    return jax.jvp(gradient, (params,), (gradient(params),))[1]


def _of_largest(params: PyTree, scores: dict[str, Array], counts: Counts, scope: Scope) -> PyTree:
    numbers = counts([tuple(score.shape) for score in scores.values()])
    dense = jax.tree.map(lambda leaf: jnp.ones(jnp.shape(leaf), bool), params)
    if scope == "layer":
        pairs = zip(scores.items(), numbers, strict=True)
        return with_leaves(dense, {name: largest(score, n) for (name, score), n in pairs})
    together = jnp.concatenate([score.reshape(-1) for score in scores.values()])
    return with_leaves(dense, split(largest(together, sum(numbers)), scores))
