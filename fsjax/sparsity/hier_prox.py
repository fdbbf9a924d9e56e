"""The hierarchical proximal step of LassoNet (Lemhadri et al., JMLR 2021, section 3)."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array

#: Rows of the skip layer with a smaller norm count as 0: their squares lose precision in float32.
MIN_NORM = 1e-15

#: Number of floats that a CPU adds at once.
LANES = 8

#: From this number of features on, the last steps take only the features that still change, once
#: they are at most the ``FEW``-th part.
MANY, FEW = 2048, 4


def hier_prox(
    skip: Array, kernel: Array, strength: Array | float, hierarchy: Array | float
) -> tuple[Array, Array]:
    """Shrinks the skip weights and bounds the first layer by them, for all features at once.

    Let v and u be the rows of a feature in ``skip`` and ``kernel``. The new rows v', u' minimise ::

        1/2 |v' - v|^2 + 1/2 |u' - u|^2 + strength |v'|,  subject to  max_k |u'_k| <= M |v'|

    At the minimum, v' has the direction of v, u' is u clipped to ``M |v'|``, and the length
    ``b = |v'|`` is the root of the increasing, concave, piecewise linear function ::

        b - |v| + strength - M sum_k relu(|u_k| - M b)

    or 0 if the root is negative. Newton's method from the left reaches the root in finitely many
    steps, without the sorting of the paper's algorithm 2: every step except the last removes at
    least one k from the sum.

    A row v = 0 gives v' = u' = 0 (norms below 1e-15 count as 0), as in the authors' code. If
    ``M sum |u_k|`` exceeds the strength, some b > 0 would be better, but v has no direction.

    Args:
      skip: ``(D, C)`` weights of the skip layer.
      kernel: ``(D, H)`` weights of the first hidden layer.
      strength: scalar, at least 0: lambda times the step size. At 0, the constraint still holds.
      hierarchy: scalar M, at least 0; 0 gives a linear model with a group lasso.

    Returns:
      The new ``skip`` and ``kernel``. If ``|v'|`` is 0, both rows are exactly 0; otherwise the
      constraint holds up to rounding. NaN in one row does not affect the others.

    Examples:
      >>> skip, kernel = jnp.ones((6, 2)), jnp.ones((6, 8))
      >>> skip, kernel = sparsity.hier_prox(skip, kernel, strength=0.5, hierarchy=10.0)
    """
    norm = jnp.sqrt(jnp.sum(jnp.square(skip), axis=1))
    # Rows without a direction have no root above 0, so they take no steps.
    free = jnp.where(norm < MIN_NORM, -jnp.inf, norm - strength)
    length = _roots(free, kernel, hierarchy)
    factor = jnp.where(length > 0, length / jnp.maximum(norm, MIN_NORM), length)
    bound = (hierarchy * length)[:, None]
    return factor[:, None] * skip, jnp.clip(kernel, -bound, bound)


def _roots(free: Array, kernel: Array, hierarchy: Array | float) -> Array:
    """The lengths ``(D,)``; ``free`` are those of features without weights in ``kernel``."""
    features, width = kernel.shape
    few = features // FEW if features >= MANY else 0

    def climb_until(
        few: int, free: Array, kernel: Array, start: tuple[Array, Array, Array]
    ) -> tuple[Array, Array, Array]:
        """Steps until at most ``few`` lengths grew in the last one."""
        magnitude = _lanes(jnp.abs(kernel))

        def climbs(carry: tuple[Array, Array, Array]) -> Array:
            _, grew, steps = carry
            # Lengths grow at most H times; the limit rules out endless loops due to rounding.
            return (jnp.sum(grew, dtype=jnp.int32) > few) & (steps <= width)

        def climb(carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
            length, _, steps = carry
            total, count = _above(magnitude, hierarchy * length)
            root = (free + hierarchy * total) / (1.0 + hierarchy**2 * count)
            return jnp.maximum(length, root), root > length, steps + 1

        return jax.lax.while_loop(climbs, climb, start)

    start = (jnp.maximum(free, 0.0), jnp.ones((features,), bool), jnp.zeros((), jnp.int32))
    length, grew, steps = climb_until(few, free, kernel, start)
    if not few:
        return length
    # A length that did not grow has reached its root, so that the others go on alone.
    (places,) = jnp.nonzero(grew, size=few, fill_value=features)
    taken, others, weights = (
        of.at[places].get(mode="fill", fill_value=0.0) for of in (free, length, kernel)
    )
    reached, _, _ = climb_until(0, taken, weights, (others, places < features, steps))
    return length.at[places].set(reached, mode="drop")


def _lanes(magnitude: Array) -> Array:
    """``(D, H)`` padded with zeros and reshaped to ``(D, ceil(H / 8), 8)``."""
    features, width = magnitude.shape
    padded = jnp.pad(magnitude, ((0, 0), (0, -width % LANES)))
    return padded.reshape(features, -(-width // LANES), LANES)


def _above(magnitude: Array, threshold: Array) -> tuple[Array, Array]:
    """Sum and number ``(D,)`` of the weights ``(D, n, 8)`` above a threshold ``(D,)`` >= 0."""
    above = magnitude > threshold[:, None, None]
    zero = jnp.zeros((), magnitude.dtype)
    # One reduction gives both. It sums over the middle axis first, because a CPU adds the entries
    # of a row one after another, but eight lanes in parallel.
    total, count = jax.lax.reduce(
        (jnp.where(above, magnitude, zero), above.astype(magnitude.dtype)),
        (zero, zero),
        lambda left, right: (left[0] + right[0], left[1] + right[1]),
        (1,),
    )
    return jnp.sum(total, axis=1), jnp.sum(count, axis=1)
