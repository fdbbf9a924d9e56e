"""A network with a linear skip layer (LassoNet: Lemhadri et al., JMLR 2021)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
from flax import linen as nn
from jax import Array

from fsjax.engine.kernels.gated import product_of_open, slopes_of_weights, takes_open_columns
from fsjax.engine.kernels.products import product, rounds
from fsjax.nets.mlp import MLP, fan_in_uniform


@jax.custom_vjp
def _input_product(x: Array, weights: Array) -> Array:
    """``x @ weights`` with a gradient that is cheaper on a CPU if x is a large table."""
    return x @ weights


def _input_product_forward(x: Array, weights: Array) -> tuple[Array, tuple[Array, Array]]:
    return x @ weights, (x, weights)


def _input_product_backward(saved: tuple[Array, Array], slope: Array) -> tuple[Array, Array]:
    x, weights = saved
    # Without the barriers XLA would transpose x, the larger factor, in a product of half the speed.
    barrier = jax.lax.optimization_barrier
    return slope @ weights.T, barrier(barrier(slope.T) @ x).T


_input_product.defvjp(_input_product_forward, _input_product_backward)


@jax.custom_vjp
def _wide_product(x: Array, kernel: Array, skip: Array) -> Array:
    """``x @ [kernel, skip]``, of few rows of many columns of which some have left the network."""
    inside = jnp.any(skip != 0, axis=1) | jnp.any(kernel != 0, axis=1)

    def joined(take: Callable[[Array], Array]) -> Array:
        return jnp.concatenate([take(kernel), take(skip)], axis=1)

    return product_of_open(x, inside, joined)


def _wide_forward(x: Array, kernel: Array, skip: Array) -> tuple[Array, tuple[Array, Array, Array]]:
    return _wide_product(x, kernel, skip), (x, kernel, skip)


def _wide_backward(saved: tuple[Array, Array, Array], slope: Array) -> tuple[Array, Array, Array]:
    x, kernel, skip = saved
    width = kernel.shape[1]
    by_weight = slopes_of_weights(x, slope)
    by_x = slope[:, :width] @ kernel.T + slope[:, width:] @ skip.T
    return by_x, by_weight[:, :width], by_weight[:, width:]


_wide_product.defvjp(_wide_forward, _wide_backward)


class SkipNetwork(nn.Module):
    """The sum of a ReLU network and a linear layer from the inputs to the outputs.

    Weights are initialised like PyTorch's. The parameters of the layers on the inputs are ``skip``
    (D, C) and, for the first hidden layer, ``kernel`` (D, H) and ``bias`` (H).

    Attributes:
      num_outputs: C, width of the output.
      hidden: widths of the hidden layers, at least one.
    """

    num_outputs: int
    hidden: Sequence[int]

    @nn.compact
    def __call__(self, x: Array) -> Array:
        """``(B, D) -> (B, C)``."""
        columns, width = x.shape[-1], self.hidden[0]
        init = fan_in_uniform(columns)
        skip = self.param("skip", init, (columns, self.num_outputs), jnp.float32)
        kernel = self.param("kernel", init, (columns, width), jnp.float32)
        bias = self.param("bias", init, (width,), jnp.float32)
        if takes_open_columns(x):
            both = _wide_product(x, kernel, skip)
        else:
            # One product for both layers, because a narrow one costs half as much as a wide one.
            joined = jnp.concatenate([kernel, skip], axis=1)
            both = product(x, joined) if rounds() else _input_product(x, joined)
        first = nn.relu(both[:, :width] + bias)
        rest = MLP(self.num_outputs, tuple(self.hidden[1:]), layer_norm=False, activation="relu")
        return both[:, width:] + rest(first)
