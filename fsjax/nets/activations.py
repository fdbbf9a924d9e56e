"""Activations by name."""

from __future__ import annotations

from collections.abc import Callable

import jax
from flax import linen as nn

#: Of hidden layers, by name.
ACTIVATIONS: dict[str, Callable[[jax.Array], jax.Array]] = {
    "relu": nn.relu,
    "sigmoid": nn.sigmoid,
    "tanh": nn.tanh,
}
