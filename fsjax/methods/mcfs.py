"""MCFS (Cai et al., KDD 2010): columns that explain the eigenvectors of a neighbour graph."""

from __future__ import annotations

import contextlib
import warnings

import numpy as np
from jax import Array
from scipy import linalg, sparse
from scipy.sparse.linalg import ArpackNoConvergence, eigsh
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Lars

from fsjax.arguments import Count, Positive
from fsjax.method import Method, Spec, TrainingRows
from fsjax.methods.shared.fixed_columns import filter_method
from fsjax.methods.shared.neighbour_graph import Metric, Weights, neighbour_graph
from fsjax.methods.shared.on_host import on_host
from fsjax.registry import register

#: Rows up to which all eigenvectors are computed; above it, some by Lanczos' method.
DENSE_ROWS = 2500

#: Restarts of Lanczos' method before all eigenvectors are computed after all: where a heat kernel
#: is narrow, the graph nearly falls apart and its eigenvalues are nearly equal.
RESTARTS = 30


def mcfs_coefficients(
    x: np.ndarray,
    weight: np.ndarray,
    vectors: np.ndarray,
    *,
    num_nonzero: int,
    unit_columns: bool = True,
) -> np.ndarray:
    """Sparse regressions of the eigenvectors on the columns, by least angles (eq. 5).

    Args:
      x: ``(N, D)``; columns are centred.
      weight: ``(N,)`` positive weights of the rows.
      vectors: ``(N, E)``.
      num_nonzero: the most coefficients of a regression that are not 0.
      unit_columns: columns have length 1 while the path is followed.

    Returns:
      ``(D, E)`` coefficients of the columns as they were given.
    """
    root = np.sqrt(weight / weight.mean())[:, None]
    columns = root * (x - np.average(x, axis=0, weights=weight))
    targets = root * (vectors - np.average(vectors, axis=0, weights=weight))
    length = np.linalg.norm(columns, axis=0)
    used = np.flatnonzero(length > 0)
    length = length[used] if unit_columns else np.ones(len(used))
    model = Lars(n_nonzero_coefs=num_nonzero, fit_intercept=False, fit_path=False)
    coefficients = np.zeros((x.shape[1], vectors.shape[1]))
    if len(used):
        with warnings.catch_warnings():
            # Columns that say the same are dropped from the path, as they should be.
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(columns[:, used] / length, targets)
        coefficients[used] = np.reshape(model.coef_, (-1, len(used))).T / length[:, None]
    return coefficients


def graph_embedding(graph: sparse.csr_matrix, num_vectors: int) -> np.ndarray:
    """The flattest eigenvectors of ``L v = lambda D v`` but the constant one (eq. 3).

    Args:
      graph: ``(N, N)`` symmetric, with weights from 0.
      num_vectors: E; at most N - 1 are given.

    Returns:
      ``(N, E)``, flattest first; where a vector's largest entry is negative, the vector times -1,
      as their signs mean nothing.
    """
    count = graph.shape[0]
    take = min(num_vectors, count - 1) + 1
    degree = np.maximum(np.asarray(graph.sum(axis=1)).ravel(), np.finfo(np.float64).tiny)
    root = sparse.diags(1 / np.sqrt(degree))
    # L v = lambda D v is (1 - lambda) u = D^-1/2 S D^-1/2 u of u = D^1/2 v.
    normal = root @ graph @ root
    vectors = _last_eigenvectors(normal, take)
    vectors = root @ vectors[:, -2::-1]
    largest = np.argmax(np.abs(vectors), axis=0)
    return vectors * np.where(np.take_along_axis(vectors, largest[None], axis=0) < 0, -1.0, 1.0)


def _last_eigenvectors(matrix: sparse.csr_matrix, number: int) -> np.ndarray:
    """``(N, number)`` eigenvectors of the largest eigenvalues, which come last."""
    count = matrix.shape[0]
    if count > max(DENSE_ROWS, 4 * number):
        start = np.random.default_rng(0).normal(size=count)
        with contextlib.suppress(ArpackNoConvergence):
            return eigsh(matrix, number, which="LA", v0=start, maxiter=RESTARTS, tol=1e-9)[1]
    return linalg.eigh(matrix.toarray(), overwrite_a=True)[1][:, -number:]


@register(
    estimator="MCFS",
    paper="Cai et al., KDD 2010",
    optimises="nothing: sparse regressions of a neighbour graph's eigenvectors on the columns",
    small={"num_features": 4, "num_clusters": 3},
)
def mcfs(
    num_features: Count = 50,
    *,
    num_clusters: Count = 5,
    metric: Metric = "cosine",
    weights: Weights = "binary",
    num_neighbors: Count = 5,
    t: Positive = 1.0,
    self_loops: bool = True,
    unit_columns: bool = True,
    signed: bool = False,
) -> Method:
    """Multi-cluster feature selection, a filter without labels.

    The eigenvectors of the graph of nearest neighbours tell clusters of rows apart. Each is
    explained by at most K columns, and a column's score is the largest of its coefficients.

    The published figure on Madelon (WAST, Table 2: 51.83) is that of
    ``weights="heat", metric="euclidean", signed=True`` on columns that are not scaled. There it
    is that of columns drawn at random: nothing but the loops is left of the graph, each
    eigenvector is 0 in all rows but one. The defaults give 82.17 there.

    Args:
      num_features: K.
      num_clusters: how many eigenvectors; the paper takes the number of clusters.
      metric: by which rows are near, ``euclidean`` or ``cosine``.
      weights: of the edges: ``binary``; ``heat``, ``exp(-d^2 / (2 t^2))``; or ``cosine``.
      num_neighbors: k; rows are neighbours where one is among the k nearest of the other.
      t: width of the heat kernel, in the units of the scaled columns.
      self_loops: rows are neighbours of themselves as well, with weight 1, as scikit-feature has
        it. Leave them out where a heat kernel is narrow.
      unit_columns: columns have length 1 while the path of a regression is followed.
      signed: the largest coefficient, as scikit-feature has it, although the sign of an
        eigenvector means nothing; otherwise the largest absolute one, as the paper has it.

    Returns:
      The method. Columns that no regression uses have the score 0 (or below, where ``signed``).

    Raises:
      ConfigError: for a value outside its range.
    """

    def of_rows(x: np.ndarray, y: np.ndarray, weight: np.ndarray, t: float) -> np.ndarray:
        del y
        graph = neighbour_graph(
            x,
            weight,
            metric=metric,
            weights=weights,
            num_neighbors=num_neighbors,
            t=t,
            self_loops=self_loops,
        )
        vectors = graph_embedding(graph, num_clusters)
        coefficients = mcfs_coefficients(
            x, weight, vectors, num_nonzero=num_features, unit_columns=unit_columns
        )
        return (coefficients if signed else np.abs(coefficients)).max(axis=1)

    def scores(key: Array, spec: Spec, data: TrainingRows) -> Array:
        del key, spec
        return on_host(of_rows, data, t)

    method = filter_method(scores, ("reconstruction",))
    return method._replace(about=method.about._replace(num_features=num_features))
