"""A layer stored as a vector of weights, with a mask that gives their positions.

It is faster than a matrix if there are few connections. All rules work, because the layer becomes a
matrix while its connections change.
"""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
from jax import Array

from fsjax.sparsity.connections import connected, connected_dot
from fsjax.sparsity.coordinates import gather, positions_of, scatter
from fsjax.sparsity.layers.base import LayerChange, RuleInputs, SparseLayer
from fsjax.sparsity.layers.masked import MaskedLayer
from fsjax.sparsity.recipes import Recipe


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class CoordinateLayer(SparseLayer):
    """Weights ``(n,)`` of the connections in a mask.

    Attributes:
      positions: ``(n,)`` int32, ascending flat positions of the weights.
    """

    where: Array
    positions: Array

    def apply(self, x: Array) -> Array:
        outputs = self.shape[1]
        rows, columns = self.positions // outputs, self.positions % outputs
        return connected_dot(self.kernel, connected(rows, columns, self.shape), x)

    @classmethod
    def of(cls, layer: MaskedLayer, count: int) -> CoordinateLayer:
        """The layer with the ``count`` connections of a masked matrix."""
        positions = positions_of(layer.mask, count)
        return cls(gather(layer.kernel, positions), layer.bias, layer.mask, positions)

    def input_strength(self) -> Array:
        return self.to_matrix().input_strength()

    def rewire(self, recipe: Recipe, seen: RuleInputs, key: Array) -> LayerChange[CoordinateLayer]:
        changed = self.to_matrix().rewire(recipe, seen, key)
        layer = self.of(changed.layer, self.positions.size)

        def move(leaf: Array) -> Array:
            return gather(scatter(leaf, self.positions, self.where), layer.positions)

        return LayerChange(layer, move, gather(jnp.asarray(changed.kept), layer.positions))

    def expand(self, most: int) -> LayerChange[MaskedLayer]:
        return LayerChange(self.to_matrix(), lambda leaf: scatter(leaf, self.positions, self.where))

    def to_matrix(self) -> MaskedLayer:
        kernel = scatter(self.kernel, self.positions, self.where)
        return MaskedLayer(kernel, self.bias, self.where)
