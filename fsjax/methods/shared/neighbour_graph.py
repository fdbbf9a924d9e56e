"""The graph of nearest neighbours that unsupervised filters look at."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np
from scipy import sparse
from sklearn.neighbors import NearestNeighbors

Metric = Literal["euclidean", "cosine"]
Weights = Literal["binary", "heat", "cosine"]


def neighbour_graph(
    x: np.ndarray,
    weight: np.ndarray,
    *,
    metric: Metric,
    weights: Weights,
    num_neighbors: int,
    t: float,
    self_loops: bool,
) -> sparse.csr_matrix:
    """Symmetric weights between rows of which one is among the nearest of the other.

    Without loops all weights may be multiplied by one number, which changes neither a Laplacian
    score nor an eigenvector; so the shortest distance of a heat kernel then has weight 1, and
    kernels of far rows do not vanish.

    Args:
      x: ``(N, D)`` rows.
      weight: ``(N,)`` positive weights of the rows: one of 2 has twice the edges.
      metric: which rows are near.
      weights: ``binary``; ``heat``, ``exp(-d^2 / (2 t^2))`` of Euclidean distances; ``cosine``,
        the cosine similarity, 0 where it is negative.
      num_neighbors: k; at most N - 1 are taken.
      t: width of the heat kernel, in the units of ``x``.
      self_loops: each row is a neighbour of itself as well, with weight 1.

    Returns:
      ``(N, N)``, zeros on the diagonal unless there are loops.
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
    x: np.ndarray, ends: np.ndarray, others: np.ndarray, weights: Weights, t: float, relative: bool
) -> np.ndarray:
    """``(E,)`` weights of edges between two lists of rows; relative ones are 1 at the most."""
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


#: Edges at a time: differences of so many rows are held in memory.
_BLOCK = 4096


def _by_block(
    of_pairs: Callable[[np.ndarray, np.ndarray], np.ndarray],
    x: np.ndarray,
    ends: np.ndarray,
    others: np.ndarray,
) -> np.ndarray:
    """A function of pairs of rows, for many pairs."""
    starts = range(0, len(ends), _BLOCK)
    return np.concatenate(
        [of_pairs(x[ends[at : at + _BLOCK]], x[others[at : at + _BLOCK]]) for at in starts]
    )
