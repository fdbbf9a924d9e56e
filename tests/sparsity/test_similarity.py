"""Similarities of neurons, compared with NumPy pair by pair."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fsjax.sparsity import similarity

N, IN, OUT = 11, 4, 3
MEASURES = {name: getattr(similarity, name) for name in similarity.SIMILARITIES}


def of_pair(name: str, p: np.ndarray, q: np.ndarray) -> float:
    """The paper's equations for two neurons."""
    if name == "hebb":
        return abs(p @ q)
    if name == "euclidean":
        return 1 / (1 + np.linalg.norm(p - q))
    lengths = np.linalg.norm(p) * np.linalg.norm(q)
    return abs(p @ q) / lengths if lengths else 0.0


@pytest.fixture
def activations() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    before, after = rng.normal(size=(N, IN)), np.maximum(rng.normal(size=(N, OUT)), 0)
    before[:, 1] = 0  # A dead neuron.
    after[:, 2] = -2.5 * before[:, 0]  # Neurons on one line.
    return before, after


@pytest.mark.parametrize("name", MEASURES)
def test_equals_numpy_pair_by_pair(name: str, activations) -> None:
    before, after = activations
    measure = jax.jit(MEASURES[name])
    similarities = measure(jnp.asarray(before, jnp.float32), jnp.asarray(after, jnp.float32))
    expected = [[of_pair(name, p, q) for q in after.T] for p in before.T]
    assert similarities.shape == (IN, OUT)
    np.testing.assert_allclose(similarities, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e6])
def test_ranges(scale: float) -> None:
    rng = np.random.default_rng(1)
    before = jnp.asarray(scale * rng.normal(size=(N, IN)), jnp.float32)
    for name in ("cosine", "euclidean"):
        similarities = MEASURES[name](before, before)
        assert (
            np.isfinite(similarities).all()
            and (similarities >= 0).all()
            and (similarities <= 1 + 1e-6).all()
        )
    # A neuron is most similar to itself.
    assert (np.argmax(similarity.cosine(before, before), axis=1) == np.arange(IN)).all()


def test_cosine_ignores_scale_and_sign_and_hebb_does_not(activations) -> None:
    before, after = (jnp.asarray(a, jnp.float32) for a in activations)
    np.testing.assert_allclose(
        similarity.cosine(before, after), similarity.cosine(-3 * before, after), rtol=1e-5
    )
    np.testing.assert_allclose(
        3 * similarity.hebb(before, after), similarity.hebb(-3 * before, after), rtol=1e-5
    )
    assert float(similarity.cosine(before, after)[0, 2]) == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("name", MEASURES)
def test_silent_neurons_give_finite_values(name: str) -> None:
    silent = jnp.zeros((N, 2))
    similarities = MEASURES[name](silent, jnp.ones((N, 3)))
    expected = 1 / (1 + np.sqrt(N)) if name == "euclidean" else 0.0
    np.testing.assert_allclose(similarities, np.full((2, 3), expected), rtol=1e-5)


@pytest.mark.parametrize("name", MEASURES)
def test_sums_over_chunks_of_rows_add_up(name: str, activations) -> None:
    before, after = (jnp.asarray(a, jnp.float32) for a in activations)
    chunks = (similarity.moments(before[rows], after[rows]) for rows in (slice(4), slice(4, N)))
    similarities = similarity.SIMILARITIES[name](jax.tree.map(jnp.add, *chunks))
    np.testing.assert_allclose(similarities, MEASURES[name](before, after), rtol=1e-4, atol=1e-5)
