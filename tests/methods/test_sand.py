"""SAND: its loss, gains and steps against NumPy, and what it finds."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from marks import slow_ids

import fsjax
from fsjax.engine.kernels.noise import normal
from fsjax.engine.loop import init_state
from fsjax.method import Batch, Method, Spec, TrainState
from fsjax.methods.sand import scaled_gains
from fsjax.methods.shared.network import FIRST_LAYER

N, D, K, RATE = 7, 6, 3, 0.1
SPEC = Spec(D, 2, "classification", N, N, num_epochs=3, steps_per_epoch=2)
USABLE = np.arange(D) != 4


def begun(**options) -> tuple[Method, TrainState, Batch]:
    fixed = {"hidden": (4,), "optimizer": "sgd", "learning_rate": RATE, "momentum": 0.0}
    method = fsjax.methods.sand(K, **fixed, **options)
    x = np.random.default_rng(0).normal(size=(N, D)).astype(np.float32)
    batch = Batch(jnp.asarray(x), jnp.asarray(np.arange(N) % 2), jnp.ones(N))
    start = jax.jit(functools.partial(init_state, method, SPEC))
    state = start(np.uint32(0), batch, jnp.asarray(USABLE))
    values = jnp.asarray([0.9, -0.3, 1.7, 0.2, 0.8, 0.1])
    return method, state.replace(params={**state.params, "gains": values}), batch


def expected_gains(values: np.ndarray, norm: float) -> np.ndarray:
    cut = np.minimum(np.abs(values), 1) * USABLE
    return cut * (K / (cut**norm).sum()) ** (1 / norm)


def cross_entropy(params: dict, x: np.ndarray, y: np.ndarray) -> float:
    layers = (params["weights"][name]["Dense_0"] for name in (FIRST_LAYER, "FanInDense_1"))
    (first, start), (second, end) = (
        [np.asarray(layer[part], np.float64) for part in ("kernel", "bias")] for layer in layers
    )
    outputs = np.maximum(x @ first + start, 0) @ second + end
    return float(np.mean(np.log(np.exp(outputs).sum(1)) - outputs[np.arange(N), y]))


@slow_ids("1.5-2.0")
@pytest.mark.parametrize(("sigma", "norm"), [(1.5, 2.0), (0.5, 1.0)])
def test_a_step_against_numpy(sigma: float, norm: float) -> None:
    method, state, batch = begun(sigma=sigma, norm=norm)
    values, x, y = np.asarray(state.params["gains"], np.float64), np.asarray(batch.x), batch.y
    key = jax.random.key(3)
    noise = sigma * np.asarray(normal(jax.random.split(key)[0], x.shape), np.float64)
    key = jax.random.key(3)

    def value(values: np.ndarray) -> float:
        a = expected_gains(values, norm)
        return cross_entropy(state.params, a * x + (1 - a) * noise, np.asarray(y))

    slope = jax.jit(jax.value_and_grad(method.loss, has_aux=True))
    (loss, aux), grads = slope(state.params, state, batch, key)
    assert float(loss) == pytest.approx(value(values), rel=1e-5)
    moves = 1e-4 * np.eye(D)
    slopes = [(value(values + move) - value(values - move)) / 2e-4 for move in moves]
    np.testing.assert_allclose(grads["gains"], slopes, rtol=2e-3, atol=1e-5)
    assert grads["gains"][2] == 0  # cut at 1
    # The optimiser's update is added to the scaled gains.
    moved = state.replace(params=jax.tree.map(lambda p, g: p - RATE * g, state.params, grads))
    after = method.after_step(moved, grads, aux)
    wanted = expected_gains(values, norm) - RATE * np.asarray(slopes)
    np.testing.assert_allclose(after.params["gains"], wanted, rtol=1e-3, atol=1e-5)


def test_predictions_use_the_largest_gains_without_noise() -> None:
    method, state, batch = begun()
    a = expected_gains(np.asarray(state.params["gains"], np.float64), 2.0)
    np.testing.assert_allclose(method.select(state).scores, a, rtol=1e-5)
    kept = np.isin(np.arange(D), [0, 1, 2])
    outputs = jax.nn.log_softmax(method.predict(state, batch.x))
    loss = -np.mean(np.asarray(outputs)[np.arange(N), np.asarray(batch.y)])
    wanted = cross_entropy(state.params, np.asarray(batch.x) * a * kept, np.asarray(batch.y))
    assert loss == pytest.approx(wanted, rel=1e-5)


@given(st.lists(st.floats(-3, 3, width=32), min_size=D, max_size=D), st.sampled_from((1.0, 2.0)))
def test_gains_have_their_sum_and_no_sign(values: list[float], norm: float) -> None:
    usable = np.asarray([abs(value) > 1e-3 for value in values])
    gains = np.asarray(scaled_gains(jnp.asarray(values), jnp.asarray(usable), K, norm))
    assert not gains[~usable].any() and (gains >= 0).all()
    assert (gains**norm).sum() == pytest.approx(min(K, usable.sum()), rel=1e-4)


@pytest.mark.slow
def test_it_finds_columns_that_matter_together() -> None:
    """The exclusive or of two columns among 12; with a random target the gains stay apart less."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 12)).astype(np.float32)
    options = {"num_features": 2, "hidden": (32,), "learning_rate": 0.01}
    fit = functools.partial(fsjax.fit, num_epochs=40, batch_size=64, seeds=(0, 1))
    found = fit(fsjax.methods.sand(**options), (x, ((x[:, 3] > 0) ^ (x[:, 7] > 0)).astype(int)))
    assert {tuple(sorted(row)) for row in found.selected.tolist()} == {(3, 7)}
    assert found.metrics["embedded_accuracy"].min() > 85
    chance = fit(fsjax.methods.sand(**options), (x, rng.permutation(400) % 2))
    assert chance.metrics["embedded_accuracy"].max() < 70
