"""MCFS (Cai et al., KDD 2010): columns that explain the eigenvectors of a neighbour graph."""

from __future__ import annotations

import warnings
from typing import Any, Literal

import jax
import numpy as np
from jax import Array
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Lars

from fsjax.arguments import Count
from fsjax.method import Method, Spec, TrainingRows
from fsjax.methods.shared.fixed_columns import filter_method, on_host
from fsjax.methods.shared.neighbour_graph import GraphOptions, neighbour_graph
from fsjax.methods.shared.spectral_embedding import graph_embedding, random_embedding
from fsjax.registry import register

#: Columns beyond which their products are not computed beforehand: 5,000 take 0.2 GB, and more time
#: than the few steps of the regressions.
MAX_GRAM_COLUMNS = 5000


def mcfs_coefficients(
    x: np.ndarray,
    weight: np.ndarray,
    vectors: np.ndarray,
    *,
    num_nonzero: int,
    unit_columns: bool = True,
) -> np.ndarray:
    """Sparse regressions of the eigenvectors on the columns, by least-angle regression (eq. 5).

    Args:
      x: ``(N, D)``; the columns are centred before the regression.
      weight: ``(N,)`` positive weights of the rows.
      vectors: ``(N, E)`` eigenvectors.
      num_nonzero: the largest number of non-zero coefficients of a regression.
      unit_columns: whether columns are scaled to length 1 for the regression.

    Returns:
      ``(D, E)`` coefficients of the unscaled columns.
    """
    root = np.sqrt(weight / weight.mean())[:, None]
    columns = root * (x - np.average(x, axis=0, weights=weight))
    targets = root * (vectors - np.average(vectors, axis=0, weights=weight))
    length = np.linalg.norm(columns, axis=0)
    used = np.flatnonzero(length > 0)
    length = length[used] if unit_columns else np.ones(len(used))
    gram = "auto" if len(used) <= MAX_GRAM_COLUMNS else False
    model = Lars(n_nonzero_coefs=num_nonzero, fit_intercept=False, fit_path=False, precompute=gram)
    coefficients = np.zeros((x.shape[1], vectors.shape[1]))
    if len(used):
        with warnings.catch_warnings():
            # The warning says that collinear columns are dropped, which is what we want.
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(columns[:, used] / length, targets)
        coefficients[used] = np.reshape(model.coef_, (-1, len(used))).T / length[:, None]
    return coefficients


@register(
    estimator="MCFS",
    paper="Cai et al., KDD 2010",
    optimises="nothing: sparse regressions of a neighbour graph's eigenvectors on the columns",
    small={"num_features": 4, "num_clusters": 3},
    options=GraphOptions(),
)
def mcfs(
    num_features: Count = 50,
    *,
    num_clusters: Count = 5,
    unit_columns: bool = True,
    signed: bool = False,
    tied: Literal["weakest", "random"] = "weakest",
    **options: Any,
) -> Method:
    """Multi-cluster feature selection: an unsupervised filter.

    The leading eigenvectors of a graph of nearest neighbours separate the clusters of rows. Each
    eigenvector is regressed on at most K columns, and the score of a column is its largest absolute
    coefficient over the eigenvectors.

    The published accuracy on Madelon (WAST, Table 2: 51.83) is that of
    ``weights="heat", metric="euclidean", signed=True`` on unscaled columns. It is the accuracy of
    random columns: only the self-loops remain of that graph, and each eigenvector is 0 in all rows
    but one. The defaults reach 82.17. Such a kernel also leaves many parts of ISOLET, USPS and
    PCMAC, and scikit-feature's columns there are those of ``tied="random"`` with
    ``unit_columns=False, signed=True``.

    Args:
      num_features: K.
      num_clusters: number of eigenvectors; the paper takes the number of clusters.
      unit_columns: whether columns are scaled to length 1 for the regressions.
      signed: whether to score by the largest signed coefficient, as scikit-feature does although
        the sign of an eigenvector is arbitrary; otherwise by the largest absolute one, as in the
        paper.
      tied: which eigenvectors are taken if a graph has more parts, up to rounding, than there are
        eigenvectors: those of the parts that are joined most ``"weakest"``, or ``"random"`` ones,
        like those that a dense solver returns.
      **options: those of :class:`fsjax.methods.shared.neighbour_graph.GraphOptions`.

    Returns:
      The method. Columns that no regression uses score 0 (0 or below with ``signed``).
    """
    o = GraphOptions(**options)

    def score_rows(
        x: np.ndarray, y: np.ndarray, weight: np.ndarray, t: float, seed: float
    ) -> np.ndarray:
        del y
        graph = neighbour_graph(x, weight, **{**vars(o), "t": t})
        vectors = None
        if tied == "random":
            vectors = random_embedding(graph, num_clusters, np.random.default_rng(int(seed)))
        if vectors is None:
            vectors = graph_embedding(graph, num_clusters)
        coefficients = mcfs_coefficients(
            x, weight, vectors, num_nonzero=num_features, unit_columns=unit_columns
        )
        return (coefficients if signed else np.abs(coefficients)).max(axis=1)

    def scores(key: Array, spec: Spec, data: TrainingRows) -> Array:
        del spec
        # Every whole number of 23 bits is a float32.
        seed = jax.random.randint(key, (), 0, 2**23)
        return on_host(score_rows, data, o.t, seed)

    return filter_method(scores, ("reconstruction",), num_features=num_features)
