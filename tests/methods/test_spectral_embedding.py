"""Eigenvectors of graphs, in one piece and in several, by each of the solvers."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import linalg, sparse
from scipy.sparse.linalg import ArpackNoConvergence

from fsjax.methods.shared import spectral_embedding
from fsjax.methods.shared.spectral_embedding import (
    graph_embedding,
    parts_up_to_rounding,
    random_embedding,
)


def ring(count: int = 24) -> np.ndarray:
    """Weights of a ring whose edges are all different, and some chords."""
    s = np.zeros((count, count))
    for i in range(count):
        s[i, (i + 1) % count] = 1.0 + 0.1 * i
        s[i, (i + 5) % count] = 0.3 + 0.01 * i
    return s + s.T


def fails(*arguments: object, **options: object) -> None:
    """Replaces Lanczos' method where it does not converge."""
    raise ArpackNoConvergence("not converged", np.zeros(0), np.zeros((0, 0)))


@pytest.mark.parametrize("solver", ["all", "lanczos", "some"])
def test_eigenvectors_are_the_flattest_of_the_graph(
    solver: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if solver != "all":
        monkeypatch.setattr(spectral_embedding, "DENSE_ROWS", 0)
    if solver == "some":
        monkeypatch.setattr(spectral_embedding, "eigsh", fails)
    s = ring()
    degree = np.diag(s.sum(axis=1))
    embedding = graph_embedding(sparse.csr_matrix(s), 3)
    values, vectors = linalg.eigh(degree - s, degree)
    for vector, expected, value in zip(embedding.T, vectors[:, 1:4].T, values[1:4], strict=True):
        np.testing.assert_allclose((degree - s) @ vector, value * degree @ vector, atol=1e-7)
        np.testing.assert_allclose(np.abs(vector), np.abs(expected), atol=1e-6)
        assert vector[np.argmax(np.abs(vector))] > 0


def test_narrow_kernels_leave_one_row_to_each_eigenvector() -> None:
    embedding = graph_embedding(sparse.csr_matrix(np.eye(9)), 4)
    assert np.array_equal(embedding, np.eye(9)[:, [7, 6, 5, 4]])


def test_the_embedding_of_a_graph_in_parts_separates_all_of_them() -> None:
    # Three complete graphs of 3, 4 and 5 rows: the eigenvalue 0 three times.
    graph = np.zeros((12, 12))
    for part in (slice(0, 3), slice(3, 7), slice(7, 12)):
        graph[part, part] = 1
    embedding = graph_embedding(sparse.csr_matrix(graph), 2)
    rows = {tuple(np.round(row, 8)) for row in embedding}
    assert len(rows) == 3
    degree = graph.sum(1)
    np.testing.assert_allclose(embedding.T @ (degree[:, None] * embedding), np.eye(2), atol=1e-12)
    # No part of the constant vector is left.
    np.testing.assert_allclose(degree @ embedding, 0, atol=1e-12)
    # Rows in another order have the same entries.
    order = np.random.default_rng(0).permutation(12)
    again = graph_embedding(sparse.csr_matrix(graph[np.ix_(order, order)]), 2)
    np.testing.assert_allclose(again, embedding[order], atol=1e-12)


def narrow(order: np.ndarray) -> sparse.csr_matrix:
    """Ten rows in a line in the given order, with weights from 0.5 down to 1e-40, and loops of 1.

    The weakest weights join the first row (1e-40), the last two (1e-30) and the second (1e-20).
    """
    s = np.eye(10)
    for row, weight in enumerate([1e-40, 1e-20, 0.5, 0.1, 1e-12, 0.2, 0.3, 1e-30, 0.4]):
        s[row, row + 1] = s[row + 1, row] = weight
    s[2, 4] = s[4, 2] = 1e-25  # joins rows that are joined more strongly by others
    return sparse.csr_matrix(s[np.ix_(order, order)])


def test_parts_that_are_joined_within_rounding_error_are_those_of_the_weakest_weights(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(spectral_embedding, "DENSE_ROWS", 0)
    graph = narrow(np.arange(10))
    embedding = graph_embedding(graph, 1)
    # The exact eigenvalue is 1e-40 over the weight of the first row, 1.
    np.testing.assert_allclose(embedding[1:], embedding[1, 0], rtol=1e-9)
    assert embedding[0, 0] == np.abs(embedding).max()
    parts = parts_up_to_rounding(graph, 3)
    assert parts is not None
    assert len({tuple(np.flatnonzero(parts == part)) for part in range(3)} - {(0,), (8, 9)}) == 1
    # The joint of 1e-12 can be told from 0 and the graph has four parts without it.
    assert parts_up_to_rounding(graph, 5) is None
    order = np.random.default_rng(0).permutation(10)
    again = graph_embedding(narrow(order), 1)
    np.testing.assert_allclose(again, embedding[order], rtol=1e-9)


def test_large_graphs_of_loops_are_like_small_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    small = graph_embedding(sparse.csr_matrix(np.eye(30)), 4)
    monkeypatch.setattr(spectral_embedding, "DENSE_ROWS", 0)
    np.testing.assert_array_equal(graph_embedding(sparse.csr_matrix(np.eye(30)), 4), small)


def test_random_vectors_are_eigenvectors_of_the_parts_up_to_rounding() -> None:
    graph = narrow(np.arange(10))
    degree = np.asarray(graph.sum(axis=1)).ravel()
    assert random_embedding(graph, 5, np.random.default_rng(0)) is None  # five parts
    embedding = random_embedding(graph, 3, np.random.default_rng(0))
    assert embedding is not None
    np.testing.assert_allclose(embedding.T @ (degree[:, None] * embedding), np.eye(3), atol=1e-12)
    np.testing.assert_allclose(degree @ embedding, 0, atol=1e-12)
    laplacian = np.diag(degree) - graph.toarray()
    np.testing.assert_allclose(laplacian @ embedding, 0, atol=1e-11)
    # All of the parts take part, not only those that are joined most weakly.
    parts = [[0], [1], [2, 3, 4], [5, 6, 7], [8, 9]]
    heights = embedding[[part[0] for part in parts]]
    for part, height in zip(parts, heights, strict=True):
        np.testing.assert_allclose(embedding[part], np.broadcast_to(height, (len(part), 3)))
    assert (np.abs(heights) > 1e-3).all()
    again = random_embedding(graph, 3, np.random.default_rng(1))
    assert not np.allclose(embedding, again)
