"""ProbMask for the parameters of any network: masks drawn with trainable probabilities.

Zhou et al., "Effective Sparsification of Neural Networks with Global Sparsity Constraint", CVPR
2021. The sum of the probabilities over the whole network is bounded. The code of the network does
not change: parameters chosen by path are multiplied by sampled masks before the forward pass::

    params = init_probmask(model.init(key, x)["params"])
    tx = probmask_optimizer(optax.sgd(0.1), num_epochs=20, steps_per_epoch=100)

    def loss(params, key):
        masks = relaxed_masks(key, params.probabilities, temperature)
        outputs = model.apply({"params": times_masks(params.weights, masks)}, x)
        return cross_entropy(outputs, y)

    # After each step:
    probabilities = project(params.probabilities, 0.03 * num_probabilities(params.probabilities))
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array
from jax.flatten_util import ravel_pytree

from fsjax.arguments import Fraction, Positive, check
from fsjax.sparsity.kth import largest
from fsjax.sparsity.masks import Where, filled_leaves, is_kernel
from fsjax.sparsity.schedules import active_between, cosine_by_epoch
from fsjax.sparsity.trees import path_name
from fsjax.typing import PyTree

#: Values in the shape of the parameter that they belong to, by its path, for example
#: ``Dense_0/kernel``.
ByPath = Mapping[str, Array]

#: Probabilities up to this value count as 0, because logarithms of smaller ones may be infinite.
_ZERO = 1e-20

#: Halvings of the bracket of the shift, enough to reach float32 precision.
_HALVINGS = 30


class Probable(NamedTuple):
    """Parameters with probabilistic masks.

    Attributes:
      weights: parameters of the network.
      probabilities: probability s that a weight is kept, in [0, 1], by path.
    """

    weights: PyTree
    probabilities: dict[str, Array]


def init_probmask(weights: PyTree, where: Where = is_kernel, initial: float = 1.0) -> Probable:
    """Adds equal probabilities to chosen parameters.

    Args:
      weights: any tree of parameters.
      where: ``(path, leaf) -> bool``, or patterns of paths: which parameters are masked; by default
        those of :func:`fsjax.sparsity.is_kernel`.
      initial: probability of every weight, in (0, 1].

    Raises:
      ConfigError: if no parameter is chosen, or ``initial`` is out of range.
    """
    check(Fraction, initial=initial)
    return Probable(weights, filled_leaves(weights, where, initial))


def num_probabilities(probabilities: ByPath) -> int:
    """Number n of weights that have a mask."""
    return sum(values.size for values in probabilities.values())


def relaxed_masks(
    key: Array, probabilities: ByPath, temperature: Array | float
) -> dict[str, Array]:
    """Binary Gumbel-Softmax samples, ``sigmoid((log s - log(1 - s) + g_1 - g_0) / T)`` in [0, 1].

    At any temperature, a sample exceeds 1/2 with probability s. If s is 0 or 1, the sample is s and
    has no gradient, which is the limit for temperatures below 1.

    Args:
      key: PRNG key.
      probabilities: s, in [0, 1].
      temperature: T, above 0. As T goes to 0, the samples approach 0 or 1.
    """
    # A single flat array, so that networks with many layers compile and run faster.
    s, unravel = ravel_pytree(probabilities)
    between = (s > _ZERO) & (s < 1.0)
    # Otherwise the gradient of the logarithm is infinite, and NaN after multiplication by 0.
    safe = jnp.where(between, s, 0.5)
    # The difference of two Gumbel variables is logistic.
    logits = jnp.log(safe) - jnp.log1p(-safe) + jax.random.logistic(key, s.shape)
    rest = (s >= 1.0).astype(s.dtype)
    samples = jnp.where(between, jax.nn.sigmoid(logits / temperature), rest)
    return unravel(samples)


def draw_thresholds(key: Array, probabilities: ByPath) -> dict[str, Array]:
    """Uniform numbers in [0, 1) for :func:`masks_below`."""
    flat, unravel = ravel_pytree(probabilities)
    return unravel(jax.random.uniform(key, flat.shape))


def masks_below(thresholds: ByPath, probabilities: ByPath) -> dict[str, Array]:
    """Bernoulli samples: masks that are 1 where the threshold is below s, else 0."""
    return {path: (thresholds[path] < s).astype(s.dtype) for path, s in probabilities.items()}


def likely_masks(probabilities: ByPath) -> dict[str, Array]:
    """The most probable masks of 0 and 1 with the expected number of open weights.

    The weights with the largest s are open, ``round(sum(s))`` in total. Ties go to the first path
    and position.
    """
    flat, unravel = ravel_pytree(probabilities)
    kept = jnp.round(jnp.sum(flat)).astype(jnp.int32)
    return unravel(largest(flat, kept).astype(flat.dtype))


def times_masks(weights: PyTree, masks: ByPath) -> PyTree:
    """The parameters times their masks; parameters without a mask are unchanged."""

    def mask(path: Any, leaf: Array) -> Array:
        probabilities = masks.get(path_name(path))
        return leaf if probabilities is None else leaf * probabilities.astype(leaf.dtype)

    return jax.tree_util.tree_map_with_path(mask, weights)


def project(probabilities: ByPath, budget: Array | float) -> dict[str, Array]:
    """Projects onto ``{0 <= s <= 1, sum(s) <= budget}`` in the Euclidean norm.

    The result is ``clip(s - v, 0, 1)`` with the smallest ``v >= 0`` that satisfies the budget,
    found by bisection. A feasible point is returned unchanged.

    Args:
      probabilities: any real numbers; the sum is over all arrays.
      budget: at least 0; may be traced.
    """
    flat, _ = ravel_pytree(probabilities)

    def above(shift: Array) -> Array:
        return jnp.sum(jnp.clip(flat - shift, 0.0, 1.0)) > budget

    def halve(_: int, bracket: tuple[Array, Array]) -> tuple[Array, Array]:
        low, high = bracket
        middle = 0.5 * (low + high)
        over = above(middle)
        return jnp.where(over, middle, low), jnp.where(over, high, middle)

    zero = jnp.zeros((), flat.dtype)
    bracket = (zero, jnp.maximum(jnp.max(flat), 0.0))
    _, high = jax.lax.fori_loop(0, _HALVINGS, halve, bracket)
    shift = jnp.where(above(zero), high, 0.0)
    return {path: jnp.clip(s - shift, 0.0, 1.0) for path, s in probabilities.items()}


def density_at(
    progress: Array | float, density: Array | float, start: Array | float, end: Array | float
) -> Array:
    """Share of the weights that the budget allows: 1 up to ``start``, then a cubic decay.

    Args:
      progress: progress of the training, in the unit of ``start`` and ``end``, for example epochs.
      density: final share, in (0, 1], from ``end`` on.
      start: when the decay begins.
      end: when the decay ends, at least ``start``.
    """
    # If start equals end, the share drops at once; the maximum avoids a division by 0.
    decayed = jnp.clip((progress - start) / jnp.maximum(end - start, 1e-9), 0.0, 1.0)
    remaining = jnp.where(progress < end, 1.0 - decayed, 0.0)
    return density + (1.0 - density) * remaining**3


def probmask_optimizer(
    weights: optax.GradientTransformation,
    *,
    num_epochs: int,
    steps_per_epoch: int,
    learning_rate: float = 6e-3,
    max_norm: float | None = 3.0,
    end_epoch: int | None = None,
) -> optax.GradientTransformation:
    """The optimiser of :class:`Probable` parameters: yours for the weights, Adam for s.

    Args:
      weights: any optimiser of the weights.
      num_epochs: length of the schedule of s, at least 1: a cosine decay from epoch to epoch that
        would reach 0 in the epoch after the last.
      steps_per_epoch: optimiser steps per epoch, at least 1.
      learning_rate: learning rate of s in the first epoch, above 0.
      max_norm: largest global norm of all gradients, above 0; larger ones are scaled down.
        ``None`` for no limit.
      end_epoch: s is frozen from this epoch on, for fine-tuning; by default never.

    Raises:
      ConfigError: if ``learning_rate`` or ``max_norm`` is out of range.
    """
    check(Positive | None, learning_rate=learning_rate, max_norm=max_norm)
    schedule = cosine_by_epoch(learning_rate, 0.0, num_epochs + 1, steps_per_epoch)
    end = None if end_epoch is None else end_epoch * steps_per_epoch
    both = optax.partition(
        {"weights": weights, "probabilities": active_between(optax.adam(schedule), 0, end)},
        Probable._make(Probable._fields),
    )
    if max_norm is None:
        return both
    return optax.chain(optax.clip_by_global_norm(max_norm), both)


def layer_sparsity(probabilities: ByPath) -> dict[str, float]:
    """Expected share of closed weights, in [0, 1], by path; exact for masks of 0 and 1."""
    return {path: 1.0 - float(np.mean(np.asarray(s))) for path, s in probabilities.items()}


def mask_sparsity(probabilities: ByPath) -> Array:
    """Expected share of closed weights over all masks, ``1 - sum(s) / n``, a scalar in [0, 1]."""
    closed = [jnp.sum(1.0 - s) for s in probabilities.values()]
    return jnp.asarray(sum(closed) / num_probabilities(probabilities))
