"""Matrix products in the form that XLA computes fastest on a CPU."""

from __future__ import annotations

import jax
from jax import Array, lax


@jax.custom_vjp
def few_rows_times(left: Array, right: Array) -> Array:
    """``left @ right`` for a left factor of few rows and a large right one, twice as fast on CPUs.

    From ``(K, P)`` and ``(P, D)`` to ``(K, D)``. Gradients are those of the plain product.
    """
    if jax.default_backend() != "cpu":
        return left @ right
    # Another kernel is chosen where the left factor lies in memory column by column; without the
    # barrier XLA takes the transposition away.
    columns = lax.optimization_barrier(left.T)
    return lax.dot_general(columns, right, (((0,), (0,)), ((), ())))


def _forward(left: Array, right: Array) -> tuple[Array, tuple[Array, Array]]:
    return few_rows_times(left, right), (left, right)


def _backward(factors: tuple[Array, Array], grad: Array) -> tuple[Array, Array]:
    left, right = factors
    return grad @ right.T, left.T @ grad


few_rows_times.defvjp(_forward, _backward)
