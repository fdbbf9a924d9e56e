"""Layers of sparse networks: one interface for two ways to store the weights.

:class:`MaskedLayer` stores a matrix and a mask, :class:`ConnectedLayer` a vector of weights and a
list of connections, without any matrix.
"""

from fsjax.methods.shared.layers.base import (
    LayerChange,
    LayerScores,
    MatrixScores,
    PairScores,
    RuleInputs,
    SparseLayer,
)
from fsjax.methods.shared.layers.connections import ConnectedLayer
from fsjax.methods.shared.layers.masked import MaskedLayer

__all__ = [
    "ConnectedLayer",
    "MaskedLayer",
    "MatrixScores",
    "PairScores",
    "LayerChange",
    "LayerScores",
    "RuleInputs",
    "SparseLayer",
]
