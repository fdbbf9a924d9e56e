"""The graph of nearest neighbours on which the unsupervised filters are based."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy import sparse
from sklearn.neighbors import NearestNeighbors

from fsjax.arguments import Count, Positive

Distance = Literal["euclidean", "cosine"]
EdgeWeights = Literal["binary", "heat", "cosine"]

#: Edges that are handled at a time, which bounds the memory for differences of rows.
BLOCK = 4096


@dataclass(frozen=True)
class GraphOptions:
    """Arguments of the filters that are based on a graph of nearest neighbours.

    Attributes:
      metric: distance by which neighbours are found, ``euclidean`` or ``cosine``.
      weights: weights of the edges: ``binary``; ``heat``, ``exp(-d^2 / (2 t^2))`` of the Euclidean
        distance; or ``cosine``, the cosine similarity.
      num_neighbors: k; two rows are neighbours if one is among the k nearest of the other.
      t: width of the heat kernel, above 0, in the units of the scaled columns.
      self_loops: whether every row is also a neighbour of itself, with weight 1, as in
        scikit-feature. Choose ``False`` if a heat kernel is narrow.

    Examples:
      >>> by_graph = fsjax.methods.laplacian_score(metric="euclidean", weights="heat")
    """

    metric: Distance = "cosine"
    weights: EdgeWeights = "binary"
    num_neighbors: Count = 5
    t: Positive = 1.0
    self_loops: bool = True


def neighbour_graph(
    x: np.ndarray,
    weight: np.ndarray,
    *,
    metric: Distance,
    weights: EdgeWeights,
    num_neighbors: int,
    t: float,
    self_loops: bool,
) -> sparse.csr_matrix:
    """The symmetric weight matrix of a graph of nearest neighbours.

    Without self-loops a common factor of all weights changes neither a Laplacian score nor an
    eigenvector. Weights of a heat kernel are then relative to the shortest distance, which gets
    weight 1, so that they do not underflow where all rows are far apart.

    Args:
      x: ``(N, D)`` rows.
      weight: ``(N,)`` positive weights of the rows; weight 2 doubles the weights of a row's edges.
      metric, weights, num_neighbors, t, self_loops: as in :class:`GraphOptions`. At most N - 1
        neighbours are taken, and negative cosine similarities become 0.

    Returns:
      ``(N, N)``, with zeros on the diagonal unless there are self-loops.
    """
    count = len(x)
    k = min(num_neighbors, count - 1)
    loops = sparse.diags_array(weight**2 * self_loops).tocsr()
    if k < 1:
        return loops
    search = NearestNeighbors(n_neighbors=k, metric=metric, algorithm="brute").fit(x)
    near = search.kneighbors(return_distance=False)
    rows = np.repeat(np.arange(count), k)
    edges = _edge_weights(x, rows, near.ravel(), weights, t, relative=not self_loops)
    edges *= weight[rows] * weight[near.ravel()]
    directed = sparse.csr_matrix((edges, (rows, near.ravel())), shape=(count, count))
    return sparse.csr_matrix(directed.maximum(directed.T) + loops)


def _edge_weights(
    x: np.ndarray,
    ends: np.ndarray,
    others: np.ndarray,
    weights: EdgeWeights,
    t: float,
    relative: bool,
) -> np.ndarray:
    """``(E,)`` weights of the edges ``(ends[e], others[e])``; ``relative`` ones are at most 1."""
    if weights == "binary":
        return np.ones(len(ends))
    if weights == "heat":
        exponent = _by_block(
            lambda first, second: np.sum((first - second) ** 2, axis=1), x, ends, others
        )
        exponent /= 2 * t**2
        return np.exp((exponent.min() if relative else 0.0) - exponent)
    length = np.maximum(np.linalg.norm(x, axis=1), np.finfo(np.float64).tiny)
    product = _by_block(lambda first, second: np.einsum("ed,ed->e", first, second), x, ends, others)
    return np.maximum(product / (length[ends] * length[others]), 0.0)


def _by_block(
    of_pairs: Callable[[np.ndarray, np.ndarray], np.ndarray],
    x: np.ndarray,
    ends: np.ndarray,
    others: np.ndarray,
) -> np.ndarray:
    """A function of pairs of rows, computed block by block."""
    blocks = [slice(start, start + BLOCK) for start in range(0, len(ends), BLOCK)]
    return np.concatenate([of_pairs(x[ends[block]], x[others[block]]) for block in blocks])
