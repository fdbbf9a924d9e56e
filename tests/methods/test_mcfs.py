"""MCFS: its regressions, and the filter as a method."""

from __future__ import annotations

import functools
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fsjax
from fsjax.methods.mcfs import mcfs_coefficients


def path(x: np.ndarray, y: np.ndarray, steps: int) -> np.ndarray:
    """Least angle regression, joint step by step (Efron et al. 2004, section 2)."""
    used: list[int] = []
    coefficients, fitted = np.zeros(x.shape[1]), np.zeros(len(y))
    for _ in range(steps):
        correlation = x.T @ (y - fitted)
        most = np.abs(correlation).max()
        used = [
            j for j in range(x.shape[1]) if j in used or abs(correlation[j]) > most * (1 - 1e-9)
        ]
        sign = np.sign(correlation[used])
        active = x[:, used] * sign
        gram = np.linalg.inv(active.T @ active)
        scale = 1 / np.sqrt(gram.sum())
        step = scale * gram.sum(axis=1)
        direction = active @ step
        along = x.T @ direction
        lengths = [most / scale]
        for j in set(range(x.shape[1])) - set(used):
            lengths += [
                (most - correlation[j]) / (scale - along[j]),
                (most + correlation[j]) / (scale + along[j]),
            ]
        length = min(candidate for candidate in lengths if candidate > 1e-12)
        coefficients[used] += length * sign * step
        fitted = fitted + length * direction
    return coefficients


@pytest.mark.parametrize("unit_columns", [True, False])
def test_coefficients_are_those_of_least_angles(unit_columns: bool) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(40, 7)) * [1, 3, 0.2, 1, 1, 2, 1] + 5
    targets = x[:, [1, 4]] @ [[1.0, -0.3], [2.0, 1.0]] + 0.3 * rng.normal(size=(40, 2))
    coefficients = mcfs_coefficients(
        x, np.ones(40), targets, num_nonzero=3, unit_columns=unit_columns
    )
    assert ((coefficients != 0).sum(axis=0) <= 3).all()
    centred = x - x.mean(axis=0)
    length = np.linalg.norm(centred, axis=0) if unit_columns else np.ones(7)
    for column, target in enumerate(targets.T):
        expected = path(centred / length, target - target.mean(), 3) / length
        np.testing.assert_allclose(coefficients[:, column], expected, rtol=1e-6, atol=1e-9)
    order = rng.permutation(7)
    again = mcfs_coefficients(
        x[:, order], np.ones(40), targets, num_nonzero=3, unit_columns=unit_columns
    )
    np.testing.assert_allclose(again, coefficients[order], rtol=1e-6, atol=1e-9)


def test_whole_weights_are_repeated_rows() -> None:
    rng = np.random.default_rng(0)
    x, targets = rng.normal(size=(30, 5)), rng.normal(size=(30, 2))
    weight = np.where(np.arange(30) < 10, 2.0, 1.0)
    coefficients = mcfs_coefficients(x, weight, targets, num_nonzero=3)
    twice = np.concatenate([x, x[:10]]), np.ones(40), np.concatenate([targets, targets[:10]])
    np.testing.assert_allclose(coefficients, mcfs_coefficients(*twice, num_nonzero=3), rtol=1e-6)


def clusters() -> np.ndarray:
    """Columns 2 and 7 separate four clusters, the others are noise."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=(120, 10))
    x[:, 2] += 8.0 * (np.arange(120) % 2)
    x[:, 7] += 8.0 * (np.arange(120) // 2 % 2)
    return x


def test_many_columns_have_the_same_coefficients(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    x, targets = rng.normal(size=(20, 60)), rng.normal(size=(20, 3))
    fit = functools.partial(mcfs_coefficients, x, np.ones(20), targets, num_nonzero=6)
    known = fit()
    # The package has a function of this module's name.
    monkeypatch.setattr(sys.modules["fsjax.methods.mcfs"], "MAX_GRAM_COLUMNS", 59)
    np.testing.assert_allclose(fit(), known, rtol=1e-8, atol=1e-12)
    assert (np.count_nonzero(known, axis=0) == 6).all()


def test_rows_without_weight_do_not_count() -> None:
    x = clusters().astype(np.float32)
    method = fsjax.methods.mcfs(2, num_clusters=3)
    spec = fsjax.Spec(10, 10, "reconstruction", 127, 16, 1, steps_per_epoch=8)
    more = jnp.concatenate([x, jnp.full((7, 10), 50.0)])
    weight = (jnp.arange(127) < 120) * 1.0
    padded = method.init(jax.random.key(0), spec, fsjax.Batch(more, more, weight))
    plain = method.init(jax.random.key(0), spec, fsjax.Batch(x, x, jnp.ones(120)))
    np.testing.assert_array_equal(method.select(padded).scores, method.select(plain).scores)


@pytest.mark.slow
def test_a_seed_draws_the_vectors_of_a_graph_in_parts() -> None:
    rng = np.random.default_rng(0)
    x = 100 * rng.normal(size=(40, 12))  # so far apart that only self-loops remain
    method = fsjax.methods.mcfs(num_features=4, weights="heat", tied="random")
    scores = fsjax.fit(method, (x, None), scaling="none", seeds=(0, 1)).scores
    assert not np.allclose(scores[0], scores[1])
    again = fsjax.fit(method, (x, None), scaling="none", seeds=(1,)).scores
    np.testing.assert_array_equal(again[0], scores[1])
    # Where the graph is in one piece there is nothing to draw.
    near = fsjax.fit(method, (x / 1000, None), scaling="none", seeds=(0, 1)).scores
    np.testing.assert_array_equal(near[0], near[1])
