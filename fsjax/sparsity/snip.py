"""Connections chosen once, before training, by how much the loss depends on them (SNIP)."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp

from fsjax.method import PyTree
from fsjax.sparsity.kth import largest
from fsjax.sparsity.masks import Where, is_kernel, masked_leaves


def snip_masks(
    params: PyTree,
    gradients: PyTree,
    counts: Callable[[list[tuple[int, ...]]], list[int]],
    where: Where = is_kernel,
) -> PyTree:
    """Keeps the largest ``|gradient x weight|`` of every layer (SNIP, Lee et al. 2019).

    The layers are ranked one by one, as in the code of CTRE; the paper of SNIP ranks all
    together. With the parameters themselves as ``gradients`` this is magnitude pruning. The masks
    are as those of :func:`fsjax.sparsity.init_masks`, for :func:`fsjax.sparsity.with_masks`.

    Args:
      params: dense parameters.
      gradients: of the loss on one batch or more, in their structure.
      counts, where: as in :func:`fsjax.sparsity.init_masks`; ``recipe.counts``, for example.
    """
    chosen = masked_leaves(params, where)
    weights, structure = jax.tree.flatten(params)
    slopes = structure.flatten_up_to(gradients)
    masks = [jnp.ones(jnp.shape(weight), bool) for weight in weights]
    numbers = counts([tuple(weights[i].shape) for i in chosen])
    for i, count in zip(chosen, numbers, strict=True):
        masks[i] = largest(jnp.abs(slopes[i] * weights[i]), count)
    return jax.tree.unflatten(structure, masks)
