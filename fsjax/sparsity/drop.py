"""Drop rules: which active connections to remove. Most return scores; the lowest are removed.

See :mod:`fsjax.sparsity.rules` for what a rule may return.

Examples:
  >>> from fsjax.sparsity import drop
  >>> rules = [drop.magnitude, drop.saliency, drop.random, drop.per_sign, drop.gradient_flow]
  >>> rules += [drop.lowest_similarity, drop.magnitude_times_importance, drop.movement]
  >>> for rule in rules:
  ...     sparsity.Recipe(density=0.1, drop=rule, grow=sparsity.grow.random, every=20, fraction=0.3)
"""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array

from fsjax.sparsity.kth import random_order, smallest
from fsjax.sparsity.rules import Layer, active_only, needs
from fsjax.sparsity.topology import number_to_drop


@active_only
def magnitude(layer: Layer, fraction: Array, key: Array) -> Array:
    """The smallest absolute weights (CTRE, algorithm 1, line 6)."""
    return jnp.abs(layer.weight)


@needs("importance")
def magnitude_times_importance(layer: Layer, fraction: Array, key: Array) -> Array:
    """The smallest absolute weight times importance of its neuron (WAST, eq. 4)."""
    return jnp.abs(layer.weight) * layer.needed("importance")


@active_only
def per_sign(layer: Layer, fraction: Array | float, key: Array) -> Array:
    """The same fraction of the positive and of the negative weights, those closest to 0 (SET).

    Active weights that are exactly 0 are dropped too. If the layer has ``importance``, weights are
    multiplied by the importance of their neuron, as in the WAST authors' code.
    """
    scores = jnp.abs(layer.weight)
    if layer.importance is not None:
        scores = scores * layer.importance
    positive = layer.mask & (layer.weight > 0)
    negative = layer.mask & (layer.weight < 0)
    dropped = layer.mask & (layer.weight == 0)
    for side in (positive, negative):
        dropped |= smallest(scores, number_to_drop(side, fraction), side)
    return dropped


@active_only
@needs("similarity")
def lowest_similarity(layer: Layer, fraction: Array, key: Array) -> Array:
    """The connections whose neurons are least similar (CTRE, section 5.2)."""
    return layer.needed("similarity")


@active_only
def random(layer: Layer, fraction: Array, key: Array) -> Array:
    """Random connections."""
    return random_order(key, layer.mask.shape)


@active_only
@needs("gradient")
def saliency(layer: Layer, fraction: Array, key: Array) -> Array:
    """The smallest ``|weight x gradient|``, the first-order change of the loss."""
    return jnp.abs(layer.weight * layer.needed("gradient"))


@active_only
@needs("movement")
def movement(layer: Layer, fraction: Array, key: Array) -> Array:
    """The weights that moved most towards 0 (movement pruning, Sanh et al., 2020, section 4)."""
    return layer.needed("movement")


@active_only
@needs("hessian_gradient")
def gradient_flow(layer: Layer, fraction: Array, key: Array) -> Array:
    """The weights whose removal raises the norm of the gradient most (GraSP, eq. 8)."""
    return layer.weight * layer.needed("hessian_gradient")
