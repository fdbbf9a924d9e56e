"""A layer as a vector of weights whose positions come from a mask, which is kept beside it.

Faster than a matrix where few connections are there, and good for every rule: while connections
change, the layer is a matrix.
"""

from __future__ import annotations

import dataclasses

from jax import Array

from fsjax.sparsity.connections import connected, connected_dot
from fsjax.sparsity.coordinates import gather, positions_of, scatter
from fsjax.sparsity.layers.base import Replaced, Seen, SparseLayer
from fsjax.sparsity.layers.masked import MaskedLayer
from fsjax.sparsity.recipes import Recipe


@dataclasses.dataclass(frozen=True)
class CoordinateLayer(SparseLayer):
    """Weights ``(n,)`` of the connections of a mask.

    Attributes:
      positions: ``(n,)`` int32, ascending flat positions of the weights.
    """

    where: Array
    positions: Array

    def apply(self, x: Array) -> Array:
        outputs = self.shape[1]
        rows, columns = self.positions // outputs, self.positions % outputs
        return connected_dot(self.kernel, connected(rows, columns, self.shape), x)

    def input_strength(self) -> Array:
        return self._matrix().input_strength()

    def rewire(self, recipe: Recipe, seen: Seen, key: Array) -> Replaced:
        changed = self._matrix().rewire(recipe, seen, key)
        layer = by_coordinates(changed.layer, self.positions.size).layer
        move = lambda leaf: gather(scatter(leaf, self.positions, self.where), layer.positions)  # noqa: E731
        return Replaced(layer, move, gather(changed.kept, layer.positions))

    def expand(self, most: int | None = None) -> Replaced:
        return Replaced(self._matrix(), lambda leaf: scatter(leaf, self.positions, self.where))

    def _matrix(self) -> MaskedLayer:
        kernel = scatter(self.kernel, self.positions, self.where)
        return MaskedLayer(kernel, self.bias, self.where)


def by_coordinates(layer: SparseLayer, count: int) -> Replaced:
    """The layer of ``count`` connections that a matrix under a mask is, by coordinates."""
    positions = positions_of(layer.where, count)
    kernel = gather(layer.kernel, positions)
    coordinates = CoordinateLayer(kernel, layer.bias, layer.where, positions)
    return Replaced(coordinates, lambda leaf: gather(leaf, positions))
