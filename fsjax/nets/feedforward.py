"""A plain feedforward network that also returns its activations, for sparse training."""

from __future__ import annotations

from collections.abc import Sequence

from flax import linen as nn
from jax import Array

from fsjax.kernels.products import dense_product
from fsjax.nets.mlp import ACTIVATIONS, fan_in_uniform

#: ``fan_in`` is PyTorch's default for weights and biases; ``glorot`` starts with biases of 0.
INITIALISATIONS = ("fan_in", "glorot")


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
