"""Matrix products in the form that XLA computes fastest on a CPU."""

from __future__ import annotations

from typing import Any

import jax
from jax import Array, lax

from fsjax.engine.environment.jax_settings import setting
from fsjax.engine.kernels.bfloat16 import rounded_product

#: JAX's name for products with factors rounded to bfloat16 and sums in float32.
ROUNDED = "bfloat16"

#: Matrices of at least this many columns per row are wide; those of the published results are not.
WIDE = 2


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
    return setting("jax_default_matmul_precision") == ROUNDED and is_on_cpu()


def dense_product(left: Array, right: Array, dimension_numbers: Any, **options: Any) -> Array:
    """:func:`product` as the ``dot_general`` of ``flax.linen.Dense``."""
    if rounds() and left.ndim == 2:
        return rounded_product(left, right)
    return lax.dot_general(left, right, dimension_numbers, **options)


def few_rows_times(left: Array, right: Array) -> Array:
    """:func:`product` of a left factor with few rows and a large right one, twice as fast on CPUs.

    From ``(K, P)`` and ``(P, D)`` to ``(K, D)``.
    """
    return _by_columns(left, right) if is_on_cpu() and not rounds() else product(left, right)


def is_on_cpu() -> bool:
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
    if right.shape[1] >= WIDE * right.shape[0]:
        # The same barrier halves the time of this product too, but not of one as wide as high.
        turned = lax.optimization_barrier(turned)
    return grad @ right.T, turned @ grad


_by_columns.defvjp(_forward, _backward)
