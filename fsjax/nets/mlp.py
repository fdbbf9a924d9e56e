"""Multilayer perceptrons as Flax modules, with PyTorch's default initialisation."""

from __future__ import annotations

import math
from collections.abc import Sequence

import jax
from flax import linen as nn


class FanInDense(nn.Module):
    """A dense layer whose weights and biases start uniform within 1/sqrt(fan-in).

    This is PyTorch's default, on which the published results of this family rest.

    Attributes:
      features: number of outputs.
    """

    features: int

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        """``(B, I) -> (B, features)``."""
        bound = 1.0 / math.sqrt(x.shape[-1])

        def uniform(key, shape, dtype):
            return jax.random.uniform(key, shape, dtype, minval=-bound, maxval=bound)

        return nn.Dense(self.features, kernel_init=uniform, bias_init=uniform)(x)


class MLP(nn.Module):
    """Hidden layers of dense, optional LayerNorm, LeakyReLU and dropout; a linear output.

    The decoder of the concrete autoencoders (IP-CAE, section 4: one hidden layer of 200,
    LeakyReLU 0.2). An empty ``hidden`` is a linear decoder.

    Attributes:
      num_outputs: width of the output.
      hidden: widths of the hidden layers.
      layer_norm: LayerNorm before each activation; the authors' code has it, the paper does not
        say so.
      negative_slope: slope of LeakyReLU below 0.
      dropout: rate in [0, 1) after each activation, in training only.
    """

    num_outputs: int
    hidden: Sequence[int] = (200,)
    layer_norm: bool = True
    negative_slope: float = 0.2
    dropout: float = 0.0

    @nn.compact
    def __call__(self, x: jax.Array, *, train: bool = False) -> jax.Array:
        """``(B, I) -> (B, num_outputs)``; ``train`` turns dropout on (rng stream ``dropout``)."""
        for width in self.hidden:
            x = FanInDense(width)(x)
            if self.layer_norm:
                x = nn.LayerNorm(epsilon=1e-5, use_fast_variance=False)(x)
            x = nn.leaky_relu(x, self.negative_slope)
            if self.dropout:
                x = nn.Dropout(self.dropout, deterministic=not train)(x)
        return FanInDense(self.num_outputs)(x)
