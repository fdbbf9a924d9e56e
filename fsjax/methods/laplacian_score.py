"""Laplacian score (He et al., NIPS 2005): columns that vary little between neighbours."""

from __future__ import annotations

import numpy as np
from jax import Array
from scipy import sparse

from fsjax.arguments import Count, Positive
from fsjax.method import Method, Spec, TrainingRows
from fsjax.methods.shared.fixed_columns import filter_method
from fsjax.methods.shared.neighbour_graph import Metric, Weights, neighbour_graph
from fsjax.methods.shared.on_host import on_host
from fsjax.registry import register

#: Edges at a time: the differences of so many rows are held in memory.
BLOCK = 4096


def laplacian_scores(x: np.ndarray, graph: sparse.csr_matrix) -> np.ndarray:
    """``(f' L f) / (f' D f)`` of each column ``f``, centred under D (eqs. 4 to 6).

    With S the graph, ``D = diag(S 1)`` and ``L = D - S``. It is the share of a column's variance
    that lies between neighbours; columns that follow the graph have low scores.

    Args:
      x: ``(N, D)``.
      graph: ``(N, N)`` symmetric, with weights from 0.

    Returns:
      ``(D,)`` from 0 to 2, up to rounding; 1 for columns that are constant where there are edges.
    """
    degree = np.asarray(graph.sum(axis=1)).ravel()
    total = max(degree.sum(), np.finfo(np.float64).tiny)
    centred = x - degree @ x / total
    variance = degree @ centred**2
    # Edge by edge, as differences of sums would lose the small weights of a heat kernel.
    edges = sparse.triu(graph, k=1, format="coo")
    between = np.zeros(x.shape[1])
    for at in range(0, edges.nnz, BLOCK):
        rows, others = (ends[at : at + BLOCK] for ends in edges.coords)
        between += edges.data[at : at + BLOCK] @ (centred[rows] - centred[others]) ** 2
    varies = variance > 1e-24 * (degree @ x**2)
    return np.where(varies, between / np.where(varies, variance, 1.0), 1.0)


@register(
    estimator="LaplacianScore",
    paper="He et al., NIPS 2005",
    optimises="nothing: variance between neighbouring rows over all variance, column by column",
    small={},
)
def laplacian_score(
    *,
    metric: Metric = "cosine",
    weights: Weights = "binary",
    num_neighbors: Count = 5,
    t: Positive = 1.0,
    self_loops: bool = True,
) -> Method:
    """The Laplacian score of every column, a filter without labels that trains nothing.

    The published figure on Madelon (WAST, Table 2: 49.50) is near chance and was not met exactly:
    with ``weights="heat", metric="euclidean"`` on columns that are not scaled all neighbours are
    so far away that all scores are 0 (48.50, the first columns). The defaults give 85.33 there. On
    COIL-20, not scaled, they meet the published 78.12 of 50 columns, but not that of 25.

    Args:
      metric: by which rows are near, ``euclidean`` or ``cosine``.
      weights: of the edges: ``binary``; ``heat``, ``exp(-d^2 / (2 t^2))``; or ``cosine``.
      num_neighbors: k; rows are neighbours where one is among the k nearest of the other.
      t: width of the heat kernel, in the units of the scaled columns.
      self_loops: rows are neighbours of themselves as well, with weight 1, as scikit-feature has
        it. Leave them out where a heat kernel is narrow.

    Returns:
      The method; its scores are minus the Laplacian scores, from -2 to 0.

    Raises:
      ConfigError: for a value outside its range.
    """

    def graph_of(x: np.ndarray, weight: np.ndarray, t: float) -> sparse.csr_matrix:
        return neighbour_graph(
            x,
            weight,
            metric=metric,
            weights=weights,
            num_neighbors=num_neighbors,
            t=t,
            self_loops=self_loops,
        )

    def of_rows(x: np.ndarray, y: np.ndarray, weight: np.ndarray, t: float) -> np.ndarray:
        del y
        return -laplacian_scores(x, graph_of(x, weight, t))

    def scores(key: Array, spec: Spec, data: TrainingRows) -> Array:
        del key, spec
        return on_host(of_rows, data, t)

    return filter_method(scores, ("reconstruction",))
