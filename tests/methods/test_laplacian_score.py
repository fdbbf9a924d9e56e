"""The Laplacian score against a loop over edges, and the filter as a method."""

from __future__ import annotations

import numpy as np
import pytest

from fsjax.methods.laplacian_score import laplacian_scores
from fsjax.methods.shared.neighbour_graph import neighbour_graph


def edges(x: np.ndarray, k: int, metric: str, weights: str, t: float) -> np.ndarray:
    """S, entry by entry (He et al., section 2.1)."""
    count = len(x)
    distance, similarity, is_edge = (np.zeros((count, count)) for _ in range(3))
    for i in range(count):
        for j in range(count):
            distance[i, j] = np.sum((x[i] - x[j]) ** 2)
            similarity[i, j] = x[i] @ x[j] / np.sqrt((x[i] @ x[i]) * (x[j] @ x[j]))
    for i in range(count):
        order = np.argsort(-similarity[i] if metric == "cosine" else distance[i])
        for j in [other for other in order if other != i][:k]:
            value = {
                "binary": 1.0,
                "heat": np.exp(-distance[i, j] / (2 * t * t)),
                "cosine": max(similarity[i, j], 0.0),
            }[weights]
            is_edge[i, j] = is_edge[j, i] = value
    return is_edge


def reference(x: np.ndarray, s: np.ndarray) -> np.ndarray:
    """``sum_ij (f_i - f_j)^2 S_ij / (2 Var_D(f))``, summed edge by edge (section 3)."""
    degree = s.sum(axis=1)
    scores = []
    for f in x.T:
        mean = sum(f[i] * degree[i] for i in range(len(f))) / degree.sum()
        variance = sum((f[i] - mean) ** 2 * degree[i] for i in range(len(f)))
        total = sum(s[i, j] * (f[i] - f[j]) ** 2 for i in range(len(f)) for j in range(len(f)))
        scores.append(total / 2 / variance)
    return np.array(scores)


def clusters(seed: int = 0) -> np.ndarray:
    """Columns 1, 4 and 6 lie in three clusters, the others are noise."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(60, 8))
    place = 6.0 * np.repeat(np.arange(3), 20)
    x[:, 1] += place
    x[:, 4] -= place
    x[:, 6] += 6.0 * (place == 6)
    return x


@pytest.mark.parametrize(
    ("metric", "weights"),
    [("euclidean", "binary"), ("euclidean", "heat"), ("cosine", "cosine"), ("cosine", "heat")],
)
def test_scores_are_those_of_a_loop_over_edges(metric: str, weights: str) -> None:
    x = clusters()[::2]
    options = dict(metric=metric, weights=weights, num_neighbors=4, t=1.3, self_loops=False)
    graph = neighbour_graph(x, np.ones(len(x)), **options)
    s = edges(x, 4, metric, weights, 1.3)
    # A graph is known up to a factor.
    np.testing.assert_allclose(graph.toarray() / graph.max(), s / s.max(), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(laplacian_scores(x, graph), reference(x, s), rtol=1e-9)
    order = np.random.default_rng(1).permutation(x.shape[1])
    again = neighbour_graph(x[:, order], np.ones(len(x)), **options)
    np.testing.assert_allclose(
        laplacian_scores(x[:, order], again), reference(x, s)[order], rtol=1e-9
    )


def plain_graph(x: np.ndarray, weights: str, t: float = 1.0):
    """Four neighbours, no loops, rows of weight 1."""
    return neighbour_graph(
        x,
        np.ones(len(x)),
        metric="euclidean",
        weights=weights,
        num_neighbors=4,
        t=t,
        self_loops=False,
    )


def test_kernels_of_far_rows_do_not_vanish() -> None:
    x = clusters()
    # exp(-d^2 / 2 t^2) is far below the smallest number here; only ratios of weights matter.
    far, near = plain_graph(1e3 * x, "heat", 1e3), plain_graph(x, "heat")
    np.testing.assert_allclose(far.toarray(), near.toarray(), rtol=1e-6)
    tiny = plain_graph(x, "heat", 0.01)
    assert tiny.max() == 1.0 and np.isfinite(laplacian_scores(x, tiny)).all()


def test_loops_add_to_the_variance_and_not_to_what_lies_between() -> None:
    x = clusters()[::2]
    options = dict(metric="euclidean", weights="heat", num_neighbors=4, t=0.4)
    s = edges(x, 4, "euclidean", "heat", 0.4) + np.eye(30)
    graph = neighbour_graph(x, np.ones(30), **options, self_loops=True)
    np.testing.assert_allclose(graph.toarray(), s, rtol=1e-9)
    np.testing.assert_allclose(laplacian_scores(x, graph), reference(x, s), rtol=1e-9)
    # Edges of weight 1e-50 are not lost to rounding next to self-loops of weight 1.
    options["t"] = 0.1
    s = edges(x, 4, "euclidean", "heat", 0.1) + np.eye(30)
    scores = laplacian_scores(x, neighbour_graph(x, np.ones(30), **options, self_loops=True))
    np.testing.assert_allclose(scores, reference(x, s), rtol=1e-8)


def test_weights_of_rows_weigh_their_edges() -> None:
    x, weight = clusters(), np.where(np.arange(60) < 30, 2.0, 1.0)
    options = dict(metric="euclidean", weights="binary", num_neighbors=4, t=1.0, self_loops=False)
    plain = neighbour_graph(x, np.ones(60), **options).toarray()
    weighted = neighbour_graph(x, weight, **options).toarray()
    np.testing.assert_allclose(weighted, plain * np.outer(weight, weight))


def test_constant_columns_have_the_score_of_noise() -> None:
    x = clusters()
    x[:, 0] = 3.7
    assert laplacian_scores(x, plain_graph(x, "binary"))[0] == 1.0
