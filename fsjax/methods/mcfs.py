"""MCFS (Cai et al., KDD 2010): columns that explain the eigenvectors of a neighbour graph."""

from __future__ import annotations

import contextlib
import warnings
from typing import Any, Literal

import jax
import numpy as np
from jax import Array
from scipy import linalg, sparse
from scipy.sparse.csgraph import connected_components, minimum_spanning_tree
from scipy.sparse.linalg import ArpackNoConvergence, eigsh
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Lars

from fsjax.arguments import Count
from fsjax.method import Method, Spec, TrainingRows
from fsjax.methods.shared.fixed_columns import filter_method, on_host
from fsjax.methods.shared.neighbour_graph import GraphOptions, neighbour_graph
from fsjax.registry import register

#: Up to this many rows all eigenvectors are computed; above it, only some, by Lanczos' method.
DENSE_ROWS = 2500

#: Restarts of Lanczos' method before a dense solver is used instead. It converges slowly if the
#: heat kernel is narrow: the graph is then nearly disconnected, its eigenvalues nearly equal.
RESTARTS = 30

#: Normalised weights up to this are lost in rounding: an eigenvalue of 1 less this is 1.
LOST = float(np.finfo(np.float64).eps)

#: Eigenvalues that are this close to the largest, 1, count as equal to it.
TIED = 1e-8


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
    model = Lars(n_nonzero_coefs=num_nonzero, fit_intercept=False, fit_path=False)
    coefficients = np.zeros((x.shape[1], vectors.shape[1]))
    if len(used):
        with warnings.catch_warnings():
            # The warning says that collinear columns are dropped, which is what we want.
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(columns[:, used] / length, targets)
        coefficients[used] = np.reshape(model.coef_, (-1, len(used))).T / length[:, None]
    return coefficients


def graph_embedding(graph: sparse.csr_matrix, num_vectors: int) -> np.ndarray:
    """The eigenvectors of ``L v = lambda D v`` with the smallest non-zero lambda (eq. 3).

    Args:
      graph: S, ``(N, N)``, symmetric and non-negative; ``D = diag(S 1)``, ``L = D - S``.
      num_vectors: E; at most N - 1 are returned.

    Returns:
      ``(N, E)``, by rising lambda. The sign of an eigenvector is arbitrary: here its entry of
      largest absolute value is positive.
    """
    number = min(num_vectors, graph.shape[0] - 1) + 1
    normal, constant = _normalised(graph)
    values, vectors = _last_eigenvectors(normal, constant, number)
    vectors = _without_constant(values, vectors, constant) / constant[:, None]
    largest = np.argmax(np.abs(vectors), axis=0)
    return vectors * np.where(np.take_along_axis(vectors, largest[None], axis=0) < 0, -1.0, 1.0)


def random_embedding(
    graph: sparse.csr_matrix, num_vectors: int, rng: np.random.Generator
) -> np.ndarray | None:
    """Random eigenvectors of a graph that has more parts than that, up to rounding.

    All vectors that are constant on each part then have lambda = 0, as far as float64 tells, and a
    dense solver returns any of them.

    Args:
      graph: as in :func:`graph_embedding`.
      num_vectors: E.
      rng: the source of the vectors.

    Returns:
      ``(N, E)``, or ``None`` if there are at most E parts.
    """
    normal, constant = _normalised(graph)
    part = connected_components(normal.multiply(normal > LOST), directed=False)[1]
    if part.max() < num_vectors:
        return None
    length = np.sqrt(np.bincount(part, constant**2))
    coordinates = rng.normal(size=(len(length), num_vectors)) / length[:, None]
    vectors = np.column_stack([constant, constant[:, None] * coordinates[part]])
    orthonormal, _ = linalg.qr(vectors, mode="economic")
    return orthonormal[:, 1:] / constant[:, None]


def _normalised(graph: sparse.csr_matrix) -> tuple[sparse.csr_matrix, np.ndarray]:
    """``D^-1/2 S D^-1/2``, and ``(N,)`` the roots of D, its eigenvector for the eigenvalue 1.

    With ``u = D^1/2 v``, ``L v = lambda D v`` becomes ``D^-1/2 S D^-1/2 u = (1 - lambda) u``.
    """
    degree = np.asarray(graph.sum(axis=1)).ravel()
    constant = np.sqrt(np.maximum(degree, np.finfo(np.float64).tiny))
    root = sparse.diags(1 / constant)
    return root @ graph @ root, constant


def _without_constant(values: np.ndarray, vectors: np.ndarray, constant: np.ndarray) -> np.ndarray:
    """``(N, number - 1)`` eigenvectors by falling eigenvalue, without the constant one.

    A graph in several parts has the largest eigenvalue once for each part. If all of its
    eigenvectors are here, those orthogonal to the constant one get a basis that does not depend on
    the solver's; otherwise the last vector is left out.
    """
    tied = values > values[-1] - TIED
    inside = constant / np.linalg.norm(constant) @ vectors[:, tied]
    if tied.sum() == 1 or np.linalg.norm(inside) < 1 - TIED:
        return vectors[:, -2::-1]
    rest = vectors[:, tied] @ linalg.null_space(inside[None])
    _, triangle, order = linalg.qr(rest.T, mode="economic", pivoting=True)
    basis = np.empty_like(rest)
    basis[order] = triangle.T
    return np.concatenate([basis, vectors[:, ~tied][:, ::-1]], axis=1)


def _last_eigenvectors(
    matrix: sparse.csr_matrix, constant: np.ndarray, number: int
) -> tuple[np.ndarray, np.ndarray]:
    """``(number,)`` largest eigenvalues, in rising order, and ``(N, number)`` eigenvectors.

    ``constant`` ``(N,)`` is an eigenvector for 1, the largest eigenvalue.
    """
    count = matrix.shape[0]
    if count <= max(DENSE_ROWS, 4 * number):
        values, vectors = linalg.eigh(matrix.toarray(), overwrite_a=True)
        return values[-number:], vectors[:, -number:]
    part = parts_up_to_rounding(matrix, number)
    if part is not None:
        last_parts = part.max() - np.arange(number)[::-1]
        vectors = np.where(part[:, None] == last_parts, constant[:, None], 0.0)
        return np.ones(number), vectors / np.linalg.norm(vectors, axis=0)
    start = np.random.default_rng(0).normal(size=count)
    with contextlib.suppress(ArpackNoConvergence):
        return eigsh(matrix, number, which="LA", v0=start, maxiter=RESTARTS, tol=1e-9)
    last = (count - number, count - 1)
    return linalg.eigh(matrix.toarray(), overwrite_a=True, subset_by_index=last)


def parts_up_to_rounding(matrix: sparse.csr_matrix, number: int) -> np.ndarray | None:
    """The parts of a graph that has at least ``number`` of them up to rounding.

    Weights between parts are then lost in rounding, as under a narrow heat kernel, and the
    eigenvalue 1 has as many eigenvectors as there are parts, of which a solver returns any. The
    exact ones with the largest eigenvalues belong to the parts that are joined most weakly. Single
    linkage finds these: the strongest weights that join all rows, without the weakest of them.

    Args:
      matrix: ``(N, N)`` symmetric normalised weights.
      number: the number of parts; more are returned only if no weights at all join them.

    Returns:
      ``(N,)`` the part of each row, from 0, or ``None`` if there are fewer up to rounding.
    """
    weights = matrix.tocoo()
    joins = (weights.row < weights.col) & (weights.data > 0)
    # The length of the k-th largest weight is k, because 1 / weight may overflow.
    ordered, rank = np.unique(-weights.data[joins], return_inverse=True)
    places = weights.row[joins], weights.col[joins]
    lengths = sparse.csr_matrix((rank + 1.0, places), shape=matrix.shape)
    tree = minimum_spanning_tree(lengths).tocoo()
    strength = -ordered[tree.data.astype(np.int64) - 1]
    num_parts = matrix.shape[0] - np.count_nonzero(strength > LOST)
    if num_parts < number:
        return None
    order = np.argsort(strength, kind="stable")
    # A graph in more parts than that is cut no further.
    kept = order[max(tree.nnz - (matrix.shape[0] - number), 0) :]
    forest = sparse.csr_matrix(
        (np.ones(len(kept)), (tree.row[kept], tree.col[kept])), shape=matrix.shape
    )
    return connected_components(forest, directed=False)[1]


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
