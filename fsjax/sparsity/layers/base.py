"""The interface of a layer of a sparse network, and what its rules may rank pairs of neurons by."""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
from jax import Array

from fsjax.sparsity.connections import Connections, products
from fsjax.sparsity.recipes import Recipe
from fsjax.sparsity.similarity import Moments, moments

if TYPE_CHECKING:
    from fsjax.sparsity.layers.masked import MaskedLayer


class MatrixScores(NamedTuple):
    """Scores that are held for all pairs, ``(I, O)``."""

    scores: Array

    def matrix(self) -> Array:
        return self.scores

    def rows(self, numbers: Array) -> Array:
        return self.scores[numbers]

    def at(self, connections: Connections) -> Array:
        return self.scores[connections.rows, connections.columns]


class PairScores(NamedTuple):
    """Scores made of the activations of the input and output neurons, without a matrix of them.

    Attributes:
      before, after: ``(N, I)`` and ``(N, O)`` activations.
      score: how sums over rows become scores.
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

        def of_pair(product: Array, before: Array, after: Array) -> Array:
            return self.score(Moments(product[None, None], before[None], after[None]))[0, 0]

        return jax.vmap(of_pair)(sums, before[rows], after[columns])


#: Scores of the pairs of neurons of a layer ``(I, O)``: of all in a ``matrix``, of the ``rows`` of
#: the input neurons ``(b,)``, or ``at`` connections ``(n,)``.
Scores = MatrixScores | PairScores


class Seen(NamedTuple):
    """What the rules see of a layer beside its weights, as in :class:`fsjax.sparsity.Layer`.

    Attributes:
      number: of the layer, from 0 at the input.
      scores: by the fields ``similarity`` and ``gradient``, where a rule needs them.
      search, state: those fields themselves.
    """

    number: int
    scores: Mapping[str, Scores]
    search: Array | None = None
    state: Any = None


def unmoved(leaf: Array) -> Array:
    """The array as it is."""
    return leaf


L_co = TypeVar("L_co", bound="SparseLayer", covariant=True)


@dataclasses.dataclass(frozen=True)
class Replaced(Generic[L_co]):
    """A layer in place of another one, and what becomes of the optimiser's arrays.

    Attributes:
      layer: the new layer.
      move: from an array in the shape of the old kernel to one in that of the new kernel.
      kept: bool in the shape of the new kernel, where moments stay; elsewhere they begin anew. A
        scalar where all stay.
    """

    layer: L_co
    move: Callable[[Array], Array] = unmoved
    kept: Array | bool = True


@dataclasses.dataclass(frozen=True)
class SparseLayer(abc.ABC):
    """A layer ``(I, O)``: its weights, and where they are.

    Attributes:
      kernel: the weights, ``(I, O)`` or, of the connections alone, ``(n,)``.
      bias: ``(O,)``.
      where: bool mask ``(I, O)``, or connections; ``None`` for a layer without a mask.
    """

    kernel: Array
    bias: Array
    where: Array | Connections | None

    #: Whether the weights are a matrix, whose product may have the batch first.
    is_matrix: ClassVar[bool] = False

    @property
    def shape(self) -> tuple[int, int]:
        """``(I, O)``."""
        inputs, outputs = (self.kernel if self.where is None else self.where).shape
        return inputs, outputs

    @property
    def scored_as_matrix(self) -> bool:
        """Whether the scores of all pairs of neurons may be held at once."""
        return True

    @abc.abstractmethod
    def apply(self, x: Array) -> Array:
        """``(I, B) -> (O, B)``, without the bias; neurons first, as one connection moves a row."""

    def active(self) -> SparseLayer:
        """The layer with weights of 0 where there is no connection."""
        return self

    def l2(self) -> Array:
        """The sum of squares of the weights, a scalar."""
        return jnp.sum(jnp.square(self.kernel))

    @abc.abstractmethod
    def input_strength(self) -> Array:
        """``(I,)`` sums of the absolute weights of every input neuron."""

    @abc.abstractmethod
    def rewire(self, recipe: Recipe, seen: Seen, key: Array) -> Replaced[SparseLayer]:
        """The layer after one change of its connections, in the same form.

        Args:
          recipe: the rules; ``None`` is not one of them here.
          seen: what they look at.
          key: PRNG key; the number of the layer is folded in.
        """

    @abc.abstractmethod
    def to_matrix(self) -> MaskedLayer:
        """The layer as a matrix under a mask."""

    @abc.abstractmethod
    def expand(self, most: int) -> Replaced[SparseLayer]:
        """The layer as it is kept after training: :meth:`to_matrix`, as a rule.

        Args:
          most: pairs of neurons up to which connections become a matrix.
        """
