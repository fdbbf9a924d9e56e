"""Laplacian score (He et al., NIPS 2005): columns that vary little between neighbours."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from fsjax.method import Method
from fsjax.methods.shared.fixed_columns import filter_method, on_host
from fsjax.methods.shared.neighbour_graph import BLOCK, GraphOptions, neighbour_graph
from fsjax.registry import register


def laplacian_scores(x: np.ndarray, graph: sparse.csr_matrix) -> np.ndarray:
    """``(f' L f) / (f' D f)`` of each column ``f``, centred under D (eqs. 4 to 6).

    With the weight matrix S of the graph, ``D = diag(S 1)`` and ``L = D - S``. The score is the
    share of a column's variance that lies between neighbours: columns that vary smoothly along the
    graph have low scores.

    Args:
      x: ``(N, D)``.
      graph: S, ``(N, N)``, symmetric and non-negative.

    Returns:
      ``(D,)`` in [0, 2], up to rounding; 1 for columns that are constant on the rows with edges.
    """
    degree = np.asarray(graph.sum(axis=1)).ravel()
    total = max(degree.sum(), np.finfo(np.float64).tiny)
    centred = x - degree @ x / total
    variance = degree @ centred**2
    # Summed edge by edge: a difference of sums would lose the small weights of a heat kernel.
    edges = sparse.triu(graph, k=1, format="coo")
    between = np.zeros(x.shape[1])
    for start in range(0, edges.nnz, BLOCK):
        block = slice(start, start + BLOCK)
        rows, others = (ends[block] for ends in edges.coords)
        between += edges.data[block] @ (centred[rows] - centred[others]) ** 2
    varies = variance > 1e-24 * (degree @ x**2)
    return np.where(varies, between / np.where(varies, variance, 1.0), 1.0)


@register(
    estimator="LaplacianScore",
    paper="He et al., NIPS 2005",
    optimises="nothing: variance between neighbouring rows over all variance, column by column",
    small={},
    options=GraphOptions(),
)
def laplacian_score(**options: Any) -> Method:
    """The Laplacian score of each column: an unsupervised filter that trains nothing.

    The published accuracy on Madelon (WAST, Table 2: 49.50) is near chance and was not reproduced
    exactly: with ``weights="heat", metric="euclidean"`` on unscaled columns all neighbours are so
    far apart that all scores are 0 (48.50, with the first columns). The defaults reach 85.33. On
    unscaled COIL-20 the defaults reproduce the published 78.12 for 50 columns, but not the figure
    for 25.

    Args:
      **options: those of :class:`fsjax.methods.shared.neighbour_graph.GraphOptions`.

    Returns:
      The method; its scores are minus the Laplacian scores, in [-2, 0].
    """
    o = GraphOptions(**options)

    def score_rows(x: np.ndarray, y: np.ndarray, weight: np.ndarray, t: float) -> np.ndarray:
        del y
        return -laplacian_scores(x, neighbour_graph(x, weight, **{**vars(o), "t": t}))

    return filter_method(
        lambda key, spec, data: on_host(score_rows, data, o.t), ("reconstruction",)
    )
