"""A layer stored as a matrix and a mask: works for every density and every rule."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import jax
import jax.numpy as jnp
from jax import Array

from fsjax.engine.kernels.products import product
from fsjax.methods.shared.layers.base import LayerChange, RuleInputs, SparseLayer
from fsjax.sparsity.recipes import Recipe
from fsjax.sparsity.rules import Layer


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class MaskedLayer(SparseLayer):
    """Weights ``(I, O)`` and their mask; without a mask (``None``), all are active."""

    where: Array | None
    is_matrix: ClassVar[bool] = True

    @property
    def mask(self) -> Array:
        """The mask ``(I, O)``; all true if the layer has none."""
        return jnp.ones(self.shape, bool) if self.where is None else self.where

    def apply(self, x: Array) -> Array:
        return product(self.kernel.T, x)

    def active(self) -> MaskedLayer:
        if self.where is None:
            return self
        return dataclasses.replace(self, kernel=jnp.where(self.where, self.kernel, 0))

    def input_strength(self) -> Array:
        return jnp.sum(jnp.abs(self.kernel), axis=1)

    def rewire(
        self, recipe: Recipe, rule_inputs: RuleInputs, key: Array
    ) -> LayerChange[MaskedLayer]:
        fields = {field: scores.matrix() for field, scores in rule_inputs.scores.items()}
        layer = Layer(
            self.kernel,
            self.mask,
            rule_inputs.number,
            search=rule_inputs.search,
            state=rule_inputs.state,
            **fields,
        )
        weight, mask, kept = recipe.change_layer(layer, key)
        return LayerChange(MaskedLayer(weight, self.bias, mask), kept=kept)

    def to_matrix(self) -> MaskedLayer:
        return self

    def expand(self, max_pairs: int) -> LayerChange[MaskedLayer]:
        return LayerChange(self)
