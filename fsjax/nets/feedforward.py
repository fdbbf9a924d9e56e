"""A plain feedforward network whose activations can be looked at, for sparse training."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import jax
from flax import linen as nn

#: Of hidden layers, by name.
ACTIVATIONS: dict[str, Callable[[jax.Array], jax.Array]] = {
    "relu": nn.relu,
    "sigmoid": nn.sigmoid,
    "tanh": nn.tanh,
}

#: ``fan_in`` is PyTorch's default for weights and biases; ``glorot`` has biases of 0.
INITIALISATIONS = ("fan_in", "glorot")


class Feedforward(nn.Module):
    """Dense layers with one activation; their weights ``(I, O)`` are ``layer_0/kernel``, ...

    Attributes:
      num_outputs: width of the output.
      hidden: widths of the hidden layers.
      activation: of the hidden layers, a name in :data:`ACTIVATIONS`.
      initialisation: a name in :data:`INITIALISATIONS`; fans are those of the dense layer.
    """

    num_outputs: int
    hidden: Sequence[int]
    activation: str = "relu"
    initialisation: str = "glorot"

    @nn.compact
    def activations(self, x: jax.Array) -> list[jax.Array]:
        """The values of every layer of neurons.

        Args:
          x: ``(B, D)``.

        Returns:
          The inputs ``(B, D)``, each hidden layer after its activation, and the outputs.
        """
        values = [x]
        for number, width in enumerate((*self.hidden, self.num_outputs)):
            kernel_init, bias_init = nn.initializers.glorot_uniform(), nn.initializers.zeros
            if self.initialisation == "fan_in":
                kernel_init = bias_init = _uniform(1.0 / math.sqrt(values[-1].shape[-1]))
            layer = nn.Dense(
                width, kernel_init=kernel_init, bias_init=bias_init, name=f"layer_{number}"
            )
            last = number == len(self.hidden)
            values.append(layer(values[-1]) if last else self._activate(layer(values[-1])))
        return values

    def __call__(self, x: jax.Array) -> jax.Array:
        """``(B, D) -> (B, num_outputs)``."""
        return self.activations(x)[-1]

    def _activate(self, x: jax.Array) -> jax.Array:
        return ACTIVATIONS[self.activation](x)


def _uniform(bound: float) -> Callable:
    def init(key: jax.Array, shape: Sequence[int], dtype: jax.typing.DTypeLike) -> jax.Array:
        return jax.random.uniform(key, shape, dtype, minval=-bound, maxval=bound)

    return init
