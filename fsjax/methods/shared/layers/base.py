"""The interface of a layer of a sparse network, and the scores that its rules rank pairs by."""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
from jax import Array

from fsjax.sparsity.connections import Connections, products
from fsjax.sparsity.recipes import Recipe
from fsjax.sparsity.similarity import Moments, moments
from fsjax.sparsity.trees import identity


class MatrixScores(NamedTuple):
    """Scores that are stored for all pairs of neurons, ``(I, O)``."""

    scores: Array

    def matrix(self) -> Array:
        return self.scores

    def rows(self, numbers: Array) -> Array:
        return self.scores[numbers]

    def at(self, connections: Connections) -> Array:
        return self.scores[connections.rows, connections.columns]


class PairScores(NamedTuple):
    """Scores that are computed from the activations of both layers when they are needed.

    Attributes:
      before, after: ``(N, I)`` and ``(N, O)`` activations.
      score: function from sums over the rows to scores.
    """

    before: Array
    after: Array
    score: Callable[[Moments], Array]

    def matrix(self) -> Array:
        return self.score(moments(self.before, self.after))

    def rows(self, numbers: Array) -> Array:
        return self.score(moments(self.before[:, numbers], self.after))

    def at(self, connections: Connections) -> Array:
        rows, columns = connections.rows, connections.columns
        ones = jnp.ones(self.before.shape[0], self.before.dtype)
        before, after = (ones @ jnp.square(side) for side in (self.before, self.after))
        sums = products(self.before.T, self.after.T, rows, columns)

        def score_pair(product: Array, before: Array, after: Array) -> Array:
            return self.score(Moments(product[None, None], before[None], after[None]))[0, 0]

        return jax.vmap(score_pair)(sums, before[rows], after[columns])


#: Scores of the pairs of neurons of a layer ``(I, O)``: of all pairs (``matrix``), of some input
#: neurons ``(b,)`` with all outputs (``rows``), or of connections ``(n,)`` (``at``).
LayerScores = MatrixScores | PairScores


class RuleInputs(NamedTuple):
    """What the rules see of a layer besides its weights.

    Attributes:
      number: number of the layer, from 0 at the input.
      scores: scores for the fields ``similarity`` and ``gradient`` that a rule needs, by field.
      search, state: as in :class:`fsjax.sparsity.Layer`.
    """

    number: int
    scores: Mapping[str, LayerScores]
    search: Array | None = None
    state: Any = None


L_co = TypeVar("L_co", bound="SparseLayer", covariant=True)


@dataclasses.dataclass(frozen=True)
class LayerChange(Generic[L_co]):
    """A layer that replaces another one, and how the optimiser's arrays follow it.

    Attributes:
      layer: the new layer.
      move: maps an array in the shape of the old kernel to the shape of the new kernel.
      kept: bool in the shape of the new kernel: where moments are kept; elsewhere they are reset.
        A scalar if all are kept.
    """

    layer: L_co
    move: Callable[[Array], Array] = identity
    kept: Array | bool = True


@dataclasses.dataclass(frozen=True)
class SparseLayer(abc.ABC):
    """A layer from I inputs to O outputs: its weights and their positions.

    Attributes:
      kernel: the weights, ``(I, O)``, or ``(n,)`` for the connections alone.
      bias: ``(O,)``.
      where: bool mask ``(I, O)``, or connections; ``None`` for a layer without a mask.
    """

    kernel: Array
    bias: Array
    where: Array | Connections | None

    #: Whether the weights are a matrix; its product may have the batch first.
    is_matrix: ClassVar[bool] = False

    @property
    def shape(self) -> tuple[int, int]:
        """``(I, O)``."""
        inputs, outputs = (self.kernel if self.where is None else self.where).shape
        return inputs, outputs

    @property
    def scored_as_matrix(self) -> bool:
        """Whether the scores of all pairs of neurons fit in memory at once."""
        return True

    @abc.abstractmethod
    def apply(self, x: Array) -> Array:
        """The product ``(I, B) -> (O, B)``, without the bias.

        Neurons come first, so that each connection reads and writes a contiguous row.
        """

    def active(self) -> SparseLayer:
        """The layer with weights set to 0 where there is no connection."""
        return self

    def l2(self) -> Array:
        """Sum of the squared weights, a scalar."""
        return jnp.sum(jnp.square(self.kernel))

    @abc.abstractmethod
    def input_strength(self) -> Array:
        """Sums ``(I,)`` of the absolute weights of each input neuron."""

    @abc.abstractmethod
    def rewire(
        self, recipe: Recipe, rule_inputs: RuleInputs, key: Array
    ) -> LayerChange[SparseLayer]:
        """The layer after one change of its connections, in the same form.

        Args:
          recipe: the rules.
          rule_inputs: what the rules see besides the weights.
          key: PRNG key; the number of the layer is folded in.
        """

    @abc.abstractmethod
    def to_matrix(self) -> SparseLayer:
        """The layer as a ``MaskedLayer``: a matrix under a mask."""

    @abc.abstractmethod
    def expand(self, max_pairs: int) -> LayerChange[SparseLayer]:
        """The layer in the form that results store: usually :meth:`to_matrix`.

        Args:
          max_pairs: largest number of pairs of neurons for which connections become a matrix.
        """
