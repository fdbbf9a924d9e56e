"""The hierarchical proximal step of LassoNet (Lemhadri et al., JMLR 2021, section 3)."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array

#: Rows of the skip layer below this norm count as 0: their squares lose digits in float32.
SMALLEST_NORM = 1e-15

#: Numbers that a CPU adds at once.
LANES = 8


def hier_prox(
    skip: Array, kernel: Array, strength: Array | float, hierarchy: Array | float
) -> tuple[Array, Array]:
    """Shrinks skip weights and bounds the first layer by them, for every feature at once.

    With v and u the rows of a feature in ``skip`` and ``kernel``, the new rows v', u' are where ::

        1/2 |v' - v|^2 + 1/2 |u' - u|^2 + strength |v'|,  subject to  max_k |u'_k| <= M |v'|

    is smallest. There v' has the direction of v, u' is u clipped to ``M |v'|``, and the
    length ``b = |v'|`` is where the increasing, concave, piecewise linear function ::

        b - |v| + strength - M sum_k relu(|u_k| - M b)

    is 0, or b = 0 where that is negative. Newton's method from the left climbs to that root in
    finitely many steps and without the sort of the paper's algorithm 2: every step but the last
    drops at least one k from the sum.

    A row v = 0 gives v' = u' = 0 (norms below 1e-15 count as 0). This is a convention, that of
    the authors' code: where ``M sum |u_k|`` exceeds the strength, lengths b > 0 would do better,
    but v has no direction to give them.

    Args:
      skip: ``(D, C)`` weights of the skip layer.
      kernel: ``(D, H)`` weights of the first hidden layer.
      strength: scalar, at least 0: lambda times the step size. With 0 the constraint remains.
      hierarchy: scalar M, at least 0; 0 leaves a linear model, by the group lasso.

    Returns:
      The new ``skip`` and ``kernel``. Where ``|v'|`` is 0 both rows are exactly 0; else the
      constraint holds up to rounding. NaN in a row stays in it.
    """
    norm = jnp.sqrt(jnp.sum(jnp.square(skip), axis=1))
    # No root is above 0 where there is no direction, and no step is taken.
    free = jnp.where(norm < SMALLEST_NORM, -jnp.inf, norm - strength)
    magnitude = _lanes(jnp.abs(kernel))

    def climbs(carry: tuple[Array, Array, Array]) -> Array:
        _, moved, steps = carry
        # Rounding cannot make it endless: a length only grows, and at most H times.
        return moved & (steps <= kernel.shape[1])

    def climb(carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        length, _, steps = carry
        total, count = _above(magnitude, hierarchy * length)
        root = (free + hierarchy * total) / (1.0 + hierarchy**2 * count)
        return jnp.maximum(length, root), jnp.any(root > length), steps + 1

    # A root at or below 0 stays clipped, so the start is its own maximum with 0.
    start = (jnp.maximum(free, 0.0), jnp.ones((), bool), jnp.zeros((), jnp.int32))
    length, _, _ = jax.lax.while_loop(climbs, climb, start)
    factor = jnp.where(length > 0, length / jnp.maximum(norm, SMALLEST_NORM), length)
    bound = (hierarchy * length)[:, None]
    return factor[:, None] * skip, jnp.clip(kernel, -bound, bound)


def _lanes(magnitude: Array) -> Array:
    """``(D, H)`` padded with zeros and reshaped to ``(D, ceil(H / 8), 8)``."""
    features, width = magnitude.shape
    padded = jnp.pad(magnitude, ((0, 0), (0, -width % LANES)))
    return padded.reshape(features, -(-width // LANES), LANES)


def _above(magnitude: Array, threshold: Array) -> tuple[Array, Array]:
    """Sum and number ``(D,)`` of the weights ``(D, n, 8)`` above a threshold ``(D,)`` >= 0."""
    above = magnitude > threshold[:, None, None]
    zero = jnp.zeros((), magnitude.dtype)
    # Pairs, so that one pass gives both; over the middle axis first, as a CPU adds up a row in
    # order, but eight rows side by side.
    total, count = jax.lax.reduce(
        (jnp.where(above, magnitude, zero), above.astype(magnitude.dtype)),
        (zero, zero),
        lambda left, right: (left[0] + right[0], left[1] + right[1]),
        (1,),
    )
    return jnp.sum(total, axis=1), jnp.sum(count, axis=1)
