"""Scores of missing connections by the short paths around them (Cannistraci-Hebb).

Zhang et al., "Brain network science modelling of sparse neural networks enables Transformers and
LLMs to perform as fully connected" (CHTs), NeurIPS 2025: the model CH2-L3 in its node-based form,
which is a few products of matrices. It looks at the topology alone: no gradients, no data.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

Array = jax.Array


def path_scores(mask: Array) -> Array:
    """How well paths of three connections join the two neurons of every connection.

    A path from input i to output o runs through a neighbour z of o on the side of i, or of i on
    the side of o. With ``n`` neurons that i and z both are connected to, it counts
    ``(1 + n) / (1 + e)``, where ``e`` are the other connections of z, but for that to o: paths
    inside a community count more than paths through a neuron that leads everywhere.

    Args:
      mask: bool ``(..., O)``, the active connections; axes before the last count as inputs.

    Returns:
      float32 in the shape of the mask, at least 0; 0 where no such path exists.
    """
    links = mask.reshape(-1, mask.shape[-1]).astype(jnp.float32)
    return (_from(links) + _from(links.T).T).reshape(mask.shape)


def _from(links: Array) -> Array:
    """``(I, O)`` sums over the neurons z of the first axis that lead to an output."""
    shared = links @ links.T
    other = jnp.maximum(jnp.sum(links, axis=1) - shared - 1.0, 0.0)
    # (1 + i) / (1 + e) for neurons with a common neighbour.
    weight = jnp.where(shared > 0, (1.0 + shared) / (1.0 + other), 0.0)
    return weight @ links
