"""DUFS against a NumPy version of its equations, and what it finds in small tables."""

from __future__ import annotations

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import norm

import fsjax
from fsjax.engine.loop import init_state
from fsjax.method import Batch, Method, Spec, TrainState

D, B = 5, 9

#: Weights of the rows; the last two rows are padding.
WEIGHT = np.array([1.0] * (B - 2) + [0.0] * 2)


def start(method: Method) -> tuple[TrainState, Batch]:
    spec = Spec(D, D, "reconstruction", B, B, num_epochs=4, steps_per_epoch=1)
    x = np.random.default_rng(0).normal(size=(B, D))
    batch = Batch(*(jnp.asarray(array, jnp.float32) for array in (x, x, WEIGHT)))
    initialise = jax.jit(functools.partial(init_state, method, spec))
    return initialise(np.uint32(0), batch, jnp.ones(D, bool)), batch


def smoothness(rows: np.ndarray, neighbors: int, width: float, steps: int) -> float:
    """tr(Z' P^t Z) / (B D) of rows Z that all count, by the definition."""
    distances = ((rows[:, None] - rows[None]) ** 2).sum(axis=2)
    unit = np.median(np.sort(distances, axis=1)[:, neighbors - 1])
    kernel = np.exp(-distances / (width * unit))
    walk = np.diag(1 / kernel.sum(axis=1)) @ kernel
    return np.trace(rows.T @ np.linalg.matrix_power(walk, steps) @ rows) / rows.size


def reference(
    mu: np.ndarray, noise: np.ndarray, x: np.ndarray, strength: float | None, **graph
) -> float:
    """Equation 3, or equation 4 where there is no strength; both over D."""
    rows = x * np.clip(mu + 0.5 + 0.5 * noise, 0, 1)
    score, price = smoothness(rows, **graph), norm.cdf((mu + 0.5) / 0.5).mean()
    return -score / (price + 1e-6) if strength is None else -score + strength * price


def slopes(function: Callable[[np.ndarray], float], mu: np.ndarray) -> np.ndarray:
    """The gradient, by central differences."""
    gradient = np.zeros(len(mu))
    for j, step in enumerate(1e-5 * np.eye(len(mu))):
        gradient[j] = (function(mu + step) - function(mu - step)) / 2e-5
    return gradient


@pytest.mark.parametrize(
    ("options", "strength"),
    [
        ({}, None),
        ({"loss": "difference", "strength": 0.7}, 0.7),
        ({"noise": "batch", "walk_steps": 1, "num_neighbors": 3, "width": 2.0}, None),
    ],
    ids=str,
)
def test_loss_and_gradient_are_those_of_the_equations(
    options: dict, strength: float | None
) -> None:
    method = fsjax.methods.dufs(**options)
    state, batch = start(method)
    mu = np.random.default_rng(2).normal(size=D) * 0.3
    run = jax.jit(jax.value_and_grad(method.loss, has_aux=True))
    key = jax.random.key(3)
    (value, _), grads = run(jnp.asarray(mu, jnp.float32), state, batch, key)
    shape = (D,) if options.get("noise") == "batch" else (B, D)
    noise = np.asarray(jax.random.normal(jax.random.clone(key), shape), np.float64)
    graph = {
        "neighbors": options.get("num_neighbors", 2),
        "width": options.get("width", 5.0),
        "steps": options.get("walk_steps", 2),
    }
    # Rows of weight 0 take no part.
    real = WEIGHT > 0
    x, noise = np.asarray(batch.x, np.float64)[real], noise if noise.ndim == 1 else noise[real]

    def expected(mu: np.ndarray) -> float:
        return reference(mu, noise, x, strength, **graph)

    assert float(value) == pytest.approx(expected(mu), rel=1e-4)
    np.testing.assert_allclose(grads, slopes(expected, mu), rtol=2e-3, atol=1e-5)


@pytest.mark.slow
def test_permuted_columns_permute_the_gradient() -> None:
    method = fsjax.methods.dufs(noise="batch", sigma=1e-6)
    state, batch = start(method)
    mu, order = 0.1 * jnp.arange(D), np.random.default_rng(1).permutation(D)
    slope = jax.grad(lambda mu, rows: method.loss(mu, state, rows, jax.random.key(0))[0])
    moved = batch._replace(x=batch.x[:, order])
    np.testing.assert_allclose(slope(mu[order], moved), slope(mu, batch)[order], rtol=1e-3)
    scores = method.select(state.replace(params=mu[order])).scores
    np.testing.assert_array_equal(scores, method.select(state.replace(params=mu)).scores[order])


@pytest.mark.slow
def test_equal_rows_have_a_graph() -> None:
    method = fsjax.methods.dufs(noise="batch")
    state, batch = start(method)
    same = batch._replace(x=jnp.ones((B, D)))
    (value, _), slope = jax.value_and_grad(method.loss, has_aux=True)(
        state.params, state, same, jax.random.key(0)
    )
    assert np.isfinite(value) and np.isfinite(slope).all()


#: Columns with the two clusters of rows.
TRUTH = (1, 4, 8, 13)


def table() -> np.ndarray:
    """Twenty columns of equal variance; four of them separate two clusters of rows."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 20))
    x[:, TRUTH] = 0.4 * x[:, TRUTH] + np.where(np.arange(200) % 2, 1.0, -1.0)[:, None]
    return (x / x.std(axis=0)).astype(np.float32)


def fit(x: np.ndarray, **options) -> fsjax.FitResult:
    method = fsjax.methods.dufs(**options)
    return fsjax.fit(
        method, (x, None), num_features=4, num_epochs=200, batch_size=100, seeds=(0, 1, 2)
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [{}, pytest.param({"loss": "difference", "strength": 0.03}, marks=pytest.mark.long)],
    ids=["ratio", "difference"],
)
def test_finds_the_columns_of_the_clusters(options: dict) -> None:
    x = table()
    result = fit(x, **options)
    assert [set(columns) for columns in result.selected] == [set(TRUTH)] * 3
    gates = result.gates.mean(axis=0)
    rng = np.random.default_rng(1)
    noise = np.stack([rng.normal(size=200) for _ in range(20)], axis=1).astype(np.float32)
    control = fit(noise, **options)
    assert gates[list(TRUTH)].min() > gates[np.setdiff1d(range(20), TRUTH)].max() + 0.2
    # By chance it is a fifth.
    assert np.isin(control.selected, TRUTH).mean() <= 0.5
