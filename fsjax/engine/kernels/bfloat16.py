"""Matrix products of factors rounded to bfloat16, in the form that uses the AMX units of CPUs.

XLA calls the library that uses AMX only if both factors and the result are stored row by row;
otherwise it falls back to float32, or fails.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
from jax import Array, lax
from jax.custom_batching import custom_vmap
from jax.experimental.layout import Layout, with_layout_constraint


def rounded_product(left: Array, right: Array) -> Array:
    """``left @ right`` with factors rounded to bfloat16 and sums in float32.

    From ``(B, I)`` and ``(I, O)``, float32, to ``(B, O)``, float32. In gradients, the incoming
    gradient is rounded too. It can be differentiated and batched repeatedly; under ``vmap``, the
    rounded factors are multiplied in float32.
    """
    return _rounded(left, right, 0)


def _summing(axis: int) -> Callable[[Array, Array], Array]:
    """A product over the last axis of the left and ``axis`` of the right factor, in float32."""
    dimensions = (((1,), (axis,)), ((), ()))

    @custom_vmap
    def summed(left: Array, right: Array) -> Array:
        # The library that XLA calls does not take arrays that are stored column by column.
        rows = partial(with_layout_constraint, layouts=Layout((0, 1)))
        return rows(
            lax.dot_general(
                rows(left),
                rows(right),
                dimensions,
                precision=lax.Precision.DEFAULT,
                preferred_element_type=jnp.float32,
            )
        )

    @summed.def_vmap
    def _(size: int, batched: list[bool], *factors: Array) -> tuple[Array, bool]:
        # XLA fails for some batched products; this gives the same numbers in float32.
        exact = (lax.reduce_precision(x.astype(jnp.float32), 8, 7) for x in factors)
        axes = [0 if has else None for has in batched]
        return jax.vmap(lambda x, y: lax.dot_general(x, y, dimensions), axes)(*exact), True

    return summed


#: The products by the axis of the right factor.
_SUMMING = {0: _summing(0), 1: _summing(1)}


@partial(jax.custom_vjp, nondiff_argnums=(2,))
def _rounded(left: Array, right: Array, axis: int) -> Array:
    return _SUMMING[axis](left.astype(jnp.bfloat16), right.astype(jnp.bfloat16))


def _rounded_forward(
    left: Array, right: Array, axis: int
) -> tuple[Array, tuple[Array, Array, Array, Array]]:
    factors = left.astype(jnp.bfloat16), right.astype(jnp.bfloat16)
    # Scalars that carry the types of the gradients.
    types = jnp.zeros((), left.dtype), jnp.zeros((), right.dtype)
    return _rounded(*factors, axis), (*factors, *types)


def _rounded_backward(
    axis: int, residuals: tuple[Array, Array, Array, Array], grad: Array
) -> tuple[Array, Array]:
    left, right, of_left, of_right = residuals
    if axis == 0:
        grads = _rounded(grad, right, 1), _rounded(left.T, grad, 0)
    else:
        grads = _rounded(grad, right, 0), _rounded(grad.T, left, 0)
    return grads[0].astype(of_left.dtype), grads[1].astype(of_right.dtype)


_rounded.defvjp(_rounded_forward, _rounded_backward)
