"""Products of few rows of many columns with the weights of inputs of which most are closed."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import Array, lax

from fsjax.engine.kernels.products import is_on_cpu, rounds

#: The table has at least this many columns per row. Batches of 256 rows then need 8,192 columns,
#: which none of the published results has.
COLUMNS_PER_ROW = 32

#: Shares of the columns, as divisors, to whose number the open ones are padded.
SHARES = (32, 8)


def takes_open_columns(x: Array) -> bool:
    """Whether products of a batch ``(B, D)`` should take its open columns alone, on this device."""
    return is_on_cpu() and not rounds() and x.shape[1] >= COLUMNS_PER_ROW * x.shape[0]


def product_of_open(x: Array, is_open: Array, weights: Callable[[Callable], Array]) -> Array:
    """``x @ w``, where rows of w are 0 unless they are open; if few are, from those alone.

    It differs from the plain product by rounding only, and has no gradient of its own.

    Args:
      x: ``(B, D)``.
      is_open: ``(D,)`` bool.
      weights: makes w ``(D, H)`` of arrays ``(D, ...)``, to each of which it applies its argument
        first; that takes some of the rows.
    """
    columns = x.shape[1]
    sizes = [columns // share for share in SHARES if columns >= share]

    def of_open(most: int) -> Array:
        (places,) = jnp.nonzero(is_open, size=most, fill_value=columns)
        # Places after the last column read zeros.
        few = x.at[:, places].get(mode="fill", fill_value=0.0)
        return few @ weights(lambda rows: rows.at[places].get(mode="fill", fill_value=0.0))

    branches: list[Callable[[], Array]] = [lambda most=most: of_open(most) for most in sizes]
    branches.append(lambda: x @ weights(lambda rows: rows))
    number = jnp.sum(is_open, dtype=jnp.int32)
    return lax.switch(jnp.sum(number > jnp.asarray(sizes), dtype=jnp.int32), branches)


def slopes_of_weights(x: Array, slope: Array) -> Array:
    """``x.T @ slope``, ``(D, H)``, of all columns, from ``(B, D)`` and ``(B, H)``."""
    # Stored by columns, x is the faster left factor; without the barrier XLA would remove it.
    return lax.optimization_barrier(x.T) @ slope


@jax.custom_vjp
def gated_product(x: Array, kernel: Array, gates: Array) -> Array:
    """``x @ (gates[:, None] * kernel)``, by :func:`product_of_open`.

    The gradients need all columns, because a closed gate has one too.

    Args:
      x: ``(B, D)``.
      kernel: ``(D, H)``.
      gates: ``(D,)``.
    """
    return product_of_open(x, gates != 0, lambda take: take(gates)[:, None] * take(kernel))


def _forward(x: Array, kernel: Array, gates: Array) -> tuple[Array, tuple[Array, Array, Array]]:
    return gated_product(x, kernel, gates), (x, kernel, gates)


def _backward(saved: tuple[Array, Array, Array], slope: Array) -> tuple[Array, Array, Array]:
    x, kernel, gates = saved
    by_weight = slopes_of_weights(x, slope)
    by_gate = jnp.sum(by_weight * kernel, axis=1)
    return slope @ (gates[:, None] * kernel).T, gates[:, None] * by_weight, by_gate


gated_product.defvjp(_forward, _backward)
