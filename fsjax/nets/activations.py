"""Activations by name."""

from __future__ import annotations

from collections.abc import Callable

from flax import linen as nn
from jax import Array

#: Of hidden layers, by name.
ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "relu": nn.relu,
    "sigmoid": nn.sigmoid,
    "tanh": nn.tanh,
}
