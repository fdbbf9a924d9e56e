"""Layers of sparse networks: one interface for three ways to store the weights.

:class:`MaskedLayer` stores a matrix and a mask, :class:`CoordinateLayer` a vector of weights and a
mask with their positions, :class:`ConnectedLayer` a vector of weights and a list of connections,
without any matrix.
"""

from fsjax.sparsity.layers.base import (
    LayerChange,
    LayerScores,
    MatrixScores,
    PairScores,
    RuleInputs,
    SparseLayer,
)
from fsjax.sparsity.layers.connections import ConnectedLayer
from fsjax.sparsity.layers.coordinates import CoordinateLayer
from fsjax.sparsity.layers.masked import MaskedLayer

__all__ = [
    "ConnectedLayer",
    "CoordinateLayer",
    "MaskedLayer",
    "MatrixScores",
    "PairScores",
    "LayerChange",
    "LayerScores",
    "RuleInputs",
    "SparseLayer",
]
