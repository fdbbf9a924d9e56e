"""A network with a linear skip layer (LassoNet: Lemhadri et al., JMLR 2021)."""

from __future__ import annotations

from collections.abc import Sequence

import jax.numpy as jnp
from flax import linen as nn
from jax import Array

from fsjax.engine.kernels.products import input_product, product, rounds
from fsjax.nets.mlp import MLP, fan_in_uniform


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
        # One product for both layers, because a narrow product costs half as much as a wide one.
        joined = jnp.concatenate([kernel, skip], axis=1)
        both = product(x, joined) if rounds() else input_product(x, joined)
        first = nn.relu(both[:, :width] + bias)
        rest = MLP(self.num_outputs, tuple(self.hidden[1:]), layer_norm=False, activation="relu")
        return both[:, width:] + rest(first)
