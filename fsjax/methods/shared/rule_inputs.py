"""What the rules of a rewired network read: a random batch, some rows, similarities of neurons."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
from jax import Array

from fsjax.method import Batch, TrainingRows
from fsjax.methods.shared.layers import LayerScores, MatrixScores, PairScores
from fsjax.methods.shared.layers.network import NamedLayers
from fsjax.sparsity.similarity import SIMILARITIES, Moments, moments
from fsjax.tables.sparse_rows import SparseRows, chosen_rows, rows_at_once

#: Number of rows whose activations are in memory at once.
ROWS_AT_ONCE = 4096


def random_batch(key: Array, data: TrainingRows, size: int) -> Batch[Array]:
    """``size`` random training rows of positive weight, with replacement."""
    # Padding, of weight 0, comes last.
    count = jnp.sum(data.weight > 0, dtype=jnp.int32)
    return data.take(jax.random.randint(key, (size,), 0, count))


def some_rows(key: Array, data: TrainingRows, fraction: float) -> tuple[Array | SparseRows, Array]:
    """A random share of the rows of positive weight; with ``fraction`` 1 all rows in order.

    Returns:
      Rows ``(M, D)``, and ``(M,)`` the roots of their weights, 0 for padding.
    """
    counts, roots = data.weight > 0, jnp.sqrt(data.weight)
    if fraction == 1:
        return data.x, roots
    size = max(1, round(fraction * counts.size))
    wanted = jnp.maximum(jnp.round(fraction * jnp.sum(counts, dtype=jnp.float32)), 1)
    order = jnp.argsort(jnp.where(counts, jax.random.uniform(key, counts.shape), 2.0))
    chosen = order[:size]
    return chosen_rows(data.x, chosen), jnp.where(jnp.arange(size) < wanted, roots[chosen], 0.0)


def similarity_scores(
    layers: NamedLayers,
    activations: Callable[[Array], list[Array]],
    x: Array | SparseRows,
    roots: Array,
    name: str,
) -> Sequence[LayerScores]:
    """Similarities of the neurons of every layer, as scores of its connections.

    Arguments are those of :func:`layer_similarities`. If a layer is too large for a matrix of
    scores, the activations of all rows are held in memory instead.
    """
    if all(layer.scored_as_matrix for layer in layers.values()):
        return [MatrixScores(scores) for scores in layer_similarities(activations, x, roots, name)]
    values = [value * roots[:, None] for value in activations(x[:])]
    pairs = zip(values[:-1], values[1:], strict=True)
    return [PairScores(*pair, SIMILARITIES[name]) for pair in pairs]


def equal_similarities(layers: NamedLayers, name: str) -> Sequence[LayerScores]:
    """Scores of every layer when no similarity is known: those of neurons that are always 0."""
    measure = SIMILARITIES[name]
    return [
        PairScores(jnp.zeros((1, inputs)), jnp.zeros((1, outputs)), measure)
        for inputs, outputs in (layer.shape for layer in layers.values())
    ]


def layer_similarities(
    activations: Callable[[Array], list[Array]], x: Array | SparseRows, roots: Array, name: str
) -> list[Array]:
    """Similarities ``(I, O)`` between the inputs and outputs of every layer.

    Args:
      activations: ``(B, D) -> [(B, I), ...]``, the activations of every layer of neurons.
      x: ``(N, D)``, processed in chunks of rows.
      roots: ``(N,)`` of the weights of the rows, 0 for those that do not count.
      name: a name in ``SIMILARITIES``.
    """
    chunks = -(-x.shape[0] // rows_at_once(x, ROWS_AT_ONCE))
    size = -(-x.shape[0] // chunks)

    def sums(number: Array) -> list[Moments]:
        rows = number * size + jnp.arange(size)
        inside = jnp.minimum(rows, x.shape[0] - 1)
        factor = jnp.where(rows < x.shape[0], roots[inside], 0.0)[:, None]
        values = [value * factor for value in activations(x[inside])]
        return [moments(*pair) for pair in zip(values[:-1], values[1:], strict=True)]

    total = jax.lax.fori_loop(
        1, chunks, lambda i, total: jax.tree.map(jnp.add, total, sums(i)), sums(jnp.int32(0))
    )
    return [SIMILARITIES[name](layer) for layer in total]
