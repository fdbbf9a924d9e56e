"""Convolutions and pooling for NHWC images that are also fast on a CPU."""

from __future__ import annotations

import math
from functools import partial

import jax
import jax.numpy as jnp
from flax import linen as nn
from jax import Array

from fsjax.nets.mlp import fan_in_uniform

#: Normal with variance 2 / fan-in (He et al., 2015), as in the code of ProbMask, whose settings
#: BinMask's section 4.2 uses.
HE_NORMAL = nn.initializers.variance_scaling(2.0, "fan_in", "normal")


def convolve(x: Array, kernel: Array, stride: int = 1, padding: int = 0) -> Array:
    """Two-dimensional convolution that is also fast on a CPU.

    Args:
      x: ``(B, H, W, I)``.
      kernel: ``(K, K, I, O)``.
      stride: step along both axes.
      padding: number of zeros on each side of both axes.

    Returns:
      ``(B, H', W', O)`` with ``H' = (H + 2 * padding - K) // stride + 1``, and W' likewise.
    """
    on_cpu = jax.default_backend() == "cpu"
    return (convolve_for_cpu if on_cpu else convolve_plainly)(x, kernel, stride, padding)


def convolve_plainly(x: Array, kernel: Array, stride: int, padding: int) -> Array:
    """:func:`convolve` with JAX's own gradients."""
    return _convolve(x, kernel, [(padding, padding)] * 2, stride=stride)


@partial(jax.custom_vjp, nondiff_argnums=(2, 3))
def convolve_for_cpu(x: Array, kernel: Array, stride: int, padding: int) -> Array:
    """:func:`convolve` with the same gradients, computed faster on a CPU.

    XLA's fast convolutions on a CPU require one order of the axes. XLA reorders the axes of the
    gradients itself, but not inside loops, which is where all training steps are; there gradients
    took up to 40 times as long (https://github.com/jax-ml/jax/issues/12868).
    """
    return convolve_plainly(x, kernel, stride, padding)


def _forward(
    x: Array, kernel: Array, stride: int, padding: int
) -> tuple[Array, tuple[Array, Array]]:
    return convolve_plainly(x, kernel, stride, padding), (x, kernel)


def _backward(
    stride: int, padding: int, saved: tuple[Array, Array], dy: Array
) -> tuple[Array, Array]:
    x, kernel = saved
    size = kernel.shape[0]
    before = size - 1 - padding
    # The padding at the end makes the gradients have the shapes of x and kernel.
    sides = [(n, (m - 1) * stride) for n, m in zip(x.shape[1:3], dy.shape[1:3], strict=True)]
    around_dy = [(before, side + size - 2 - span - before) for side, span in sides]
    around_x = [(padding, size + span - side - padding) for side, span in sides]
    # The pixels of dy are dilated by the stride.
    mirrored = kernel[::-1, ::-1].transpose(0, 1, 3, 2)
    dx = _convolve(dy, mirrored, around_dy, x_dilation=stride)
    # Channels and rows of the batch change places, so that the convolution sums over the batch.
    dkernel = _convolve(
        x.transpose(3, 1, 2, 0), dy.transpose(1, 2, 0, 3), around_x, kernel_dilation=stride
    )
    return dx, dkernel.transpose(1, 2, 0, 3)


convolve_for_cpu.defvjp(_forward, _backward)


def _convolve(
    x: Array,
    kernel: Array,
    padding: list[tuple[int, int]],
    stride: int = 1,
    x_dilation: int = 1,
    kernel_dilation: int = 1,
) -> Array:
    return jax.lax.conv_general_dilated(
        x,
        kernel,
        (stride, stride),
        padding,
        lhs_dilation=(x_dilation, x_dilation),
        rhs_dilation=(kernel_dilation, kernel_dilation),
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
    )


class Conv(nn.Module):
    """A convolutional layer; its weights ``(K, K, I, O)`` are the parameter ``kernel``.

    Attributes:
      features: number of output channels, O.
      size: K, side length of the kernel.
      stride, padding: as for :func:`convolve`.
      kernel_init: initialiser of the weights; ``None`` is PyTorch's default, uniform within
        1/sqrt(fan-in).
      use_bias: whether to add biases, initialised like PyTorch's.
    """

    features: int
    size: int
    stride: int = 1
    padding: int = 0
    kernel_init: nn.initializers.Initializer | None = None
    use_bias: bool = True

    @nn.compact
    def __call__(self, x: Array) -> Array:
        """``(B, H, W, I) -> (B, H', W', features)``."""
        shape = (self.size, self.size, x.shape[-1], self.features)
        fan_in = fan_in_uniform(math.prod(shape[:3]))
        kernel = self.param("kernel", self.kernel_init or fan_in, shape, jnp.float32)
        y = convolve(x, kernel, self.stride, self.padding)
        if self.use_bias:
            y = y + self.param("bias", fan_in, (self.features,), jnp.float32)
        return y


def conv3x3(x: Array, features: int, stride: int = 1) -> Array:
    """A 3x3 convolution without bias, as a layer of the module that calls it.

    ``(B, H, W, C) -> (B, ceil(H / stride), ceil(W / stride), features)``.
    """
    return Conv(features, 3, stride, padding=1, kernel_init=HE_NORMAL, use_bias=False)(x)


def max_pool_2x2(x: Array) -> Array:
    """``(B, H, W, C) -> (B, H // 2, W // 2, C)``, the largest of each 2x2 pixels."""
    # A maximum over axes, because its gradient is faster on a CPU than that of nn.max_pool.
    b, h, w, c = x.shape[0], x.shape[1] // 2, x.shape[2] // 2, x.shape[3]
    return x[:, : 2 * h, : 2 * w].reshape(b, h, 2, w, 2, c).max(axis=(2, 4))
