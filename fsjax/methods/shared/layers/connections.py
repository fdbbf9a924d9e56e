"""A layer stored as its connections alone, without any array of all pairs of neurons.

Only rules with an implementation in ``rewiring.py`` can change its connections.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import Array

from fsjax.methods.shared.layers.base import LayerChange, RuleInputs, SparseLayer
from fsjax.methods.shared.layers.free_positions import BLOCK
from fsjax.methods.shared.layers.masked import MaskedLayer
from fsjax.methods.shared.layers.rewiring import rewire_connections
from fsjax.sparsity.connections import Connections, connected_dot, dense, indexed, of_inputs
from fsjax.sparsity.recipes import Initializer, Recipe
from fsjax.sparsity.rules import Layer


def uniform_at(key: Array, bound: float, connections: Connections) -> Array:
    """Uniform values ``(n,)`` in [-bound, bound)."""
    return jax.random.uniform(key, connections.rows.shape, minval=-1.0) * bound


#: Initializers of the weights of new connections, by name; ``uniform`` is within sqrt(6 / n_in).
GROW_INITS: dict[str, Initializer] = {
    "zeros": jax.nn.initializers.zeros,
    "uniform": jax.nn.initializers.he_uniform(),
}

#: The same for a list of connections, by the initializer for a matrix.
_INITIAL: dict[Initializer, Callable[[Array, Connections], Array | float]] = {
    GROW_INITS["zeros"]: lambda key, connections: 0.0,
    GROW_INITS["uniform"]: lambda key, connections: uniform_at(
        key, math.sqrt(6.0 / connections.shape[0]), connections
    ),
}


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class ConnectedLayer(SparseLayer):
    """Weights ``(n,)`` and the connections they belong to."""

    where: Connections

    @property
    def scored_as_matrix(self) -> bool:
        return self.where.size <= BLOCK

    def apply(self, x: Array) -> Array:
        return connected_dot(self.kernel, self.where, x)

    def input_strength(self) -> Array:
        return of_inputs(jnp.abs(self.kernel), self.where)

    def rewire(
        self, recipe: Recipe, rule_inputs: RuleInputs, key: Array
    ) -> LayerChange[ConnectedLayer]:
        drop, grow = recipe.rules
        if drop is None or grow is None:
            return LayerChange(self)
        at_drop = {
            field: scores.at(self.where)
            for field, scores in rule_inputs.scores.items()
            if field in drop.needs
        }
        active = jnp.ones(self.kernel.shape, bool)
        values = Layer(
            self.kernel,
            active,
            rule_inputs.number,
            search=rule_inputs.search,
            state=rule_inputs.state,
            **at_drop,
        )
        key_rules, key_init = jax.random.split(jax.random.fold_in(key, rule_inputs.number))
        rows = {field: scores.rows for field, scores in rule_inputs.scores.items()}
        fraction = recipe.fraction_at(0)
        change = rewire_connections(self.where, values, drop, grow, fraction, key_rules, rows)
        where = indexed(change.connections, self.where.index != ())
        initial = _INITIAL[recipe.grow_init](key_init, where)
        kernel = jnp.where(change.kept, self.kernel[change.source], initial)
        layer = ConnectedLayer(kernel, self.bias, where)
        return LayerChange(layer, lambda leaf: leaf[change.source], change.kept)

    def to_matrix(self) -> MaskedLayer:
        mask = dense(jnp.ones(self.kernel.shape, bool), self.where)
        return MaskedLayer(dense(self.kernel, self.where), self.bias, mask)

    def expand(self, max_pairs: int) -> LayerChange[SparseLayer]:
        if self.where.size > max_pairs:
            return LayerChange(dataclasses.replace(self, where=indexed(self.where, False)))
        return LayerChange(self.to_matrix(), lambda leaf: dense(leaf, self.where))
