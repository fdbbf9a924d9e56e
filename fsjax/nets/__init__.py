"""Flax modules."""

from fsjax.nets.mlp import MLP, FanInDense

__all__ = ["MLP", "FanInDense"]
