"""Layers of sparse networks: one interface, whatever form the weights of a layer have.

:class:`MaskedLayer` is a matrix under a mask, :class:`CoordinateLayer` a vector of weights whose
positions come from a mask, :class:`ConnectedLayer` a vector of weights without any matrix.
"""

from fsjax.sparsity.layers.base import MatrixScores, PairScores, Replaced, Scores, Seen, SparseLayer
from fsjax.sparsity.layers.connections import ConnectedLayer
from fsjax.sparsity.layers.coordinates import CoordinateLayer
from fsjax.sparsity.layers.masked import MaskedLayer

__all__ = [
    "ConnectedLayer",
    "CoordinateLayer",
    "MaskedLayer",
    "MatrixScores",
    "PairScores",
    "Replaced",
    "Scores",
    "Seen",
    "SparseLayer",
]
