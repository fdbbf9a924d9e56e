"""Multilayer perceptrons as Flax modules, with PyTorch's default initialisation.

:class:`Feedforward` also returns its activations, for sparse training.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Literal

import jax
import jax.numpy as jnp
from flax import linen as nn
from jax import Array

from fsjax.arguments import Rate, Widths, check
from fsjax.engine.kernels.products import dense_product

#: Activations of hidden layers by name.
ACTIVATIONS = {"relu": nn.relu, "sigmoid": nn.sigmoid, "tanh": nn.tanh}

#: Activations of :class:`MLP`, which has an attribute for the slope of ``leaky_relu``.
MLP_ACTIVATIONS = ("leaky_relu", *ACTIVATIONS)

#: ``fan_in`` is PyTorch's default for weights and biases; ``glorot`` starts with biases of 0.
INITIALISATIONS = ("fan_in", "glorot")


def fan_in_uniform(fan_in: int) -> nn.initializers.Initializer:
    """Uniform within 1/sqrt(fan-in), PyTorch's default for weights and biases."""
    bound = 1.0 / math.sqrt(fan_in)

    def init(key, shape, dtype):
        return jax.random.uniform(key, shape, dtype, minval=-bound, maxval=bound)

    return init


class FanInDense(nn.Module):
    """A dense layer whose weights and biases start uniform within 1/sqrt(fan-in).

    This is PyTorch's default, with which the published results were obtained. ``features`` is the
    number of outputs, and ``product`` has the arguments of ``jax.lax.dot_general``.
    """

    features: int
    product: Callable[..., Array] = dense_product

    @nn.compact
    def __call__(self, x: Array) -> Array:
        """``(B, I) -> (B, features)``."""
        init = fan_in_uniform(x.shape[-1])
        layer = nn.Dense(self.features, kernel_init=init, bias_init=init, dot_general=self.product)
        return layer(x)


def batch_norm(x: Array, *, train: bool, weight: Array | None = None) -> Array:
    """Batch normalisation of the last axis, as a layer of the module that calls it.

    Ioffe & Szegedy, 2015, with PyTorch's momentum and epsilon. The running variance divides by the
    number of values n, PyTorch's by n - 1.

    Args:
      x: ``(B, ..., C)``, which is also the shape of the result.
      train: whether to normalise by the statistics of the batch and update the collection
        ``batch_stats``; otherwise the latter is used.
      weight: ``(B,)``; rows of weight 0 are excluded from the statistics. If all weights are 0, all
        rows are included, so that the statistics stay finite.
    """
    mask = None
    if weight is not None:
        counts = (weight > 0) | ~jnp.any(weight > 0)
        mask = counts.reshape(x.shape[0], *(1,) * (x.ndim - 1))
    layer = nn.BatchNorm(
        use_running_average=not train, momentum=0.9, epsilon=1e-5, use_fast_variance=False
    )
    return layer(x, mask=mask)


class MLP(nn.Module):
    """A multilayer perceptron with optional LayerNorm, batch normalisation and dropout.

    It is the decoder of the concrete autoencoders (IP-CAE, section 4: one hidden layer of 200,
    LeakyReLU 0.2) and the classifier of BinMask (section 4.1: 512, 512 with ReLU followed by batch
    normalisation; 64, 20 with tanh). With an empty ``hidden`` it is linear.

    Attributes:
      num_outputs: width of the output.
      hidden: widths of the hidden layers.
      layer_norm: LayerNorm before each activation; it is in the authors' code of IP-CAE, not in
        the paper.
      negative_slope: slope of LeakyReLU below 0.
      dropout: rate in [0, 1) after each activation, in training only.
      activation: activation of the hidden layers, a name in :data:`MLP_ACTIVATIONS`.
      batch_norm: batch normalisation after each activation, before dropout.
      first_product: ``product`` of the first :class:`FanInDense`.
    """

    num_outputs: int
    hidden: Sequence[int] = (200,)
    layer_norm: bool = True
    negative_slope: float = 0.2
    dropout: float = 0.0
    activation: str = "leaky_relu"
    batch_norm: bool = False
    first_product: Callable[..., Array] = dense_product

    def __post_init__(self) -> None:
        check(Literal[MLP_ACTIVATIONS], activation=self.activation)
        check(Rate, dropout=self.dropout)
        check(Widths, hidden=self.hidden)
        super().__post_init__()

    @nn.compact
    def __call__(self, x: Array, *, train: bool = False, weight: Array | None = None) -> Array:
        """The outputs ``(B, num_outputs)`` for a batch.

        Args:
          x: ``(B, I)``.
          train: whether to use dropout (rng stream ``dropout``) and the statistics of the batch
            (the collection ``batch_stats`` has to be mutable then).
          weight: ``(B,)`` weights; rows of weight 0 are excluded from the batch statistics.
        """
        leaky_relu = partial(nn.leaky_relu, negative_slope=self.negative_slope)
        activate = ACTIVATIONS.get(self.activation, leaky_relu)
        product = self.first_product
        for width in self.hidden:
            x = FanInDense(width, product)(x)
            product = dense_product
            if self.layer_norm:
                x = nn.LayerNorm(epsilon=1e-5, use_fast_variance=False)(x)
            x = activate(x)
            if self.batch_norm:
                x = batch_norm(x, train=train, weight=weight)
            if self.dropout:
                x = nn.Dropout(self.dropout, deterministic=not train)(x)
        return FanInDense(self.num_outputs, product)(x)


class Feedforward(nn.Module):
    """Dense layers with the same activation; weights ``(I, O)`` are named ``layer_0/kernel``, ...

    Attributes:
      num_outputs: width of the output.
      hidden: widths of the hidden layers.
      activation: activation of the hidden layers, a name in :data:`ACTIVATIONS`.
      initialisation: a name in :data:`INITIALISATIONS`.
    """

    num_outputs: int
    hidden: Sequence[int]
    activation: str = "relu"
    initialisation: str = "glorot"

    @nn.compact
    def activations(self, x: Array) -> list[Array]:
        """The values of every layer of neurons.

        These are the inputs x ``(B, D)``, each hidden layer after its activation, and the outputs.
        """
        values = [x]
        for number, width in enumerate((*self.hidden, self.num_outputs)):
            kernel_init, bias_init = nn.initializers.glorot_uniform(), nn.initializers.zeros
            if self.initialisation == "fan_in":
                kernel_init = bias_init = fan_in_uniform(values[-1].shape[-1])
            layer = nn.Dense(
                width,
                kernel_init=kernel_init,
                bias_init=bias_init,
                dot_general=dense_product,
                name=f"layer_{number}",
            )
            y = layer(values[-1])
            values.append(y if number == len(self.hidden) else ACTIVATIONS[self.activation](y))
        return values

    def __call__(self, x: Array) -> Array:
        """``(B, D) -> (B, num_outputs)``."""
        return self.activations(x)[-1]
