"""Flax modules."""

from fsjax.nets.feedforward import Feedforward
from fsjax.nets.mlp import MLP, FanInDense

__all__ = ["MLP", "FanInDense", "Feedforward"]
