"""The eigenvectors of a graph of rows that separate its parts, whatever solver finds them.

A graph in several parts has the same eigenvalue once for each part, and a solver returns any basis
of these eigenvectors, also where parts are joined by weights below rounding. Here the vectors
depend on the graph alone, or on a seed (:func:`random_embedding`).
"""

from __future__ import annotations

import contextlib

import numpy as np
from scipy import linalg, sparse
from scipy.sparse.csgraph import connected_components, minimum_spanning_tree
from scipy.sparse.linalg import ArpackNoConvergence, eigsh

#: Up to this many rows all eigenvectors are computed; above it, only some, by Lanczos' method.
DENSE_ROWS = 2500

#: Restarts of Lanczos' method before a dense solver is used instead. It converges slowly if the
#: heat kernel is narrow: the graph is then nearly disconnected, its eigenvalues nearly equal.
RESTARTS = 30

#: Normalised weights up to this are lost in rounding: an eigenvalue of 1 less this is 1.
LOST = float(np.finfo(np.float64).eps)

#: Eigenvalues that are this close to the largest, 1, count as equal to it.
TIED = 1e-8


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
    places = weights.row[joins], weights.col[joins]
    # A negative length, because 1 / weight may overflow.
    lengths = sparse.csr_matrix((-weights.data[joins], places), shape=matrix.shape)
    tree = minimum_spanning_tree(lengths).tocoo()
    strength = -tree.data
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
