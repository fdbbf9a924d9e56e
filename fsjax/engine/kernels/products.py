"""Matrix products in the form that XLA computes fastest on a CPU."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax

from fsjax.engine.environment.jax_settings import setting
from fsjax.engine.kernels.bfloat16 import rounded_product

#: JAX's name for products with factors rounded to bfloat16 and sums in float32.
ROUNDED = "bfloat16"

#: Columns per row of a wide map and of a wide batch; the published results have neither.
WIDE_MAP, WIDE_TABLE = 2, 32


def product(left: Array, right: Array) -> Array:
    """``left @ right`` of a network, from ``(B, I)`` and ``(I, O)`` to ``(B, O)``.

    With ``jax.default_matmul_precision("bfloat16")``, factors are rounded to bfloat16, also in
    gradients, and sums are in float32. TPUs do so by themselves; on CPUs, JAX ignores the setting,
    and this function implements it. It is two to five times as fast on a CPU with AMX
    (``BENCHMARKS.md``); other CPUs were not measured.
    """
    if rounds():
        return rounded_product(left, right)
    return left @ right


def rounds() -> bool:
    """Whether :func:`product` rounds its factors in the program that is being traced."""
    return setting("jax_default_matmul_precision") == ROUNDED and _on_cpu()


def dense_product(left: Array, right: Array, dimension_numbers: Any, **options: Any) -> Array:
    """:func:`product` as the ``dot_general`` of ``flax.linen.Dense``."""
    if rounds() and left.ndim == 2:
        return rounded_product(left, right)
    return lax.dot_general(left, right, dimension_numbers, **options)


def few_rows_times(left: Array, right: Array) -> Array:
    """:func:`product` of a left factor with few rows and a large right one, twice as fast on CPUs.

    From ``(K, P)`` and ``(P, D)`` to ``(K, D)``.
    """
    return _by_columns(left, right) if _on_cpu() and not rounds() else product(left, right)


def _on_cpu() -> bool:
    return jax.default_backend() == "cpu"


@jax.custom_vjp
def _by_columns(left: Array, right: Array) -> Array:
    # XLA chooses another kernel if the left factor is stored column by column; without the barrier
    # it would remove the transposition.
    columns = lax.optimization_barrier(left.T)
    return lax.dot_general(columns, right, (((0,), (0,)), ((), ())))


def _forward(left: Array, right: Array) -> tuple[Array, tuple[Array, Array]]:
    return _by_columns(left, right), (left, right)


def _backward(factors: tuple[Array, Array], grad: Array) -> tuple[Array, Array]:
    left, right = factors
    turned = left.T
    if right.shape[1] >= WIDE_MAP * right.shape[0]:
        turned = lax.optimization_barrier(turned)
    return grad @ right.T, turned @ grad


_by_columns.defvjp(_forward, _backward)


def is_wide(x: Array) -> bool:
    """Whether :func:`input_product` takes open columns alone of a batch ``(B, D)``."""
    return _on_cpu() and not rounds() and x.shape[1] >= WIDE_TABLE * x.shape[0]


@jax.custom_vjp
def input_product(x: Array, weights: Array) -> Array:
    """``x @ weights`` of a batch ``(B, D)``, with a gradient that is cheaper on a CPU.

    Rows of the weights ``(D, H)`` are closed if they are 0. If most are, and the batch is wide, the
    product is that of the others alone, which differs by rounding; the gradient is of all.
    """
    if not is_wide(x):
        return x @ weights
    is_open, columns = jnp.any(weights != 0, axis=1), x.shape[1]

    def of_open(most: int) -> Array:
        (places,) = jnp.nonzero(is_open, size=most, fill_value=columns)
        few, rows = x.at[:, places], weights.at[places]
        # Places after the last column read zeros.
        return few.get(mode="fill", fill_value=0.0) @ rows.get(mode="fill", fill_value=0.0)

    sizes = columns // 32, columns // 8
    larger = jnp.sum(jnp.sum(is_open) > jnp.asarray(sizes), dtype=jnp.int32)
    return lax.switch(larger, [*(partial(of_open, most) for most in sizes), lambda: x @ weights])


def _input_backward(factors: tuple[Array, Array], slope: Array) -> tuple[Array, Array]:
    x, weights = factors
    # Without the barriers XLA would transpose the larger factor, at half the speed.
    barrier = lax.optimization_barrier
    by_weights = barrier(x.T) @ slope if is_wide(x) else barrier(barrier(slope.T) @ x).T
    return slope @ weights.T, by_weights


input_product.defvjp(lambda x, weights: (input_product(x, weights), (x, weights)), _input_backward)
