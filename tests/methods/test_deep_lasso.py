"""Deep Lasso against a NumPy version of its equation, and what it finds in small tables."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from marks import slow_ids

import fsjax
from fsjax.engine.loop import init_state
from fsjax.method import Batch, Method, Spec, TrainState
from fsjax.methods.deep_lasso import SMOOTHING

D, H, C, B = 5, 4, 3, 7

#: Weights of the rows; the last two rows are padding.
WEIGHT = np.array([1.0] * (B - 2) + [0.0] * 2)

#: The informative columns.
TRUTH = (2, 9, 17)


def make(**options) -> Method:
    return fsjax.methods.deep_lasso(**{"hidden": (H,), "activation": "tanh", **options})


def start(method: Method) -> tuple[TrainState, Batch]:
    spec = Spec(D, C, "classification", B, B, num_epochs=4, steps_per_epoch=1)
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(B, D)), rng.integers(0, C, B)
    batch = Batch(jnp.asarray(x, jnp.float32), jnp.asarray(y, jnp.int32), jnp.asarray(WEIGHT))
    initialise = jax.jit(functools.partial(init_state, method, spec))
    return initialise(np.uint32(0), batch, jnp.ones(D, bool)), batch


def layers(params: dict) -> list[np.ndarray]:
    """Weights and bias of the hidden layer, then of the output, in float64."""
    dense_layers = [params[f"FanInDense_{i}"]["Dense_0"] for i in (0, 1)]
    return [
        np.array(layer[name], np.float64) for layer in dense_layers for name in ("kernel", "bias")
    ]


def norms(values: list[np.ndarray], batch: Batch, smoothing: float) -> tuple[float, np.ndarray]:
    """The loss L, and the norms of dL/dx over the rows for each column."""
    w1, b1, w2, b2 = values
    x, y = np.asarray(batch.x, np.float64), np.asarray(batch.y)
    hidden = np.tanh(x @ w1 + b1)
    logits = hidden @ w2 + b2
    odds = np.exp(logits - logits.max(axis=1, keepdims=True))
    probabilities = odds / odds.sum(axis=1, keepdims=True)
    share = WEIGHT / WEIGHT.sum()
    value = -(share * np.log(probabilities[np.arange(B), y])).sum()
    to_logits = share[:, None] * (probabilities - np.eye(C)[y])
    slopes = (to_logits @ w2.T * (1 - hidden**2)) @ w1.T
    return value, np.sqrt((slopes**2).sum(axis=0) + smoothing)


def reference(values: list[np.ndarray], batch: Batch, penalty: float) -> float:
    value, gradient_norms = norms(values, batch, SMOOTHING)
    return value + penalty * gradient_norms.sum()


@slow_ids("0.0")
@pytest.mark.parametrize("penalty", [0.0, 0.7])
def test_loss_and_its_gradient_are_those_of_the_equation(penalty: float) -> None:
    method = make(penalty=penalty)
    state, batch = start(method)
    run = jax.jit(jax.value_and_grad(method.loss, has_aux=True))
    (value, _), grads = run(state.params, state, batch, jax.random.key(0))
    values = layers(state.params)
    np.testing.assert_allclose(value, reference(values, batch, penalty), rtol=1e-5)
    for leaf, slope in zip(values, layers(grads), strict=True):
        for place in np.ndindex(leaf.shape):
            moved = []
            for step in (1e-5, -1e-5):
                leaf[place] += step
                moved.append(reference(values, batch, penalty))
                leaf[place] -= step
            expected = (moved[0] - moved[1]) / 2e-5
            np.testing.assert_allclose(slope[place], expected, rtol=1e-3, atol=1e-5)


def test_the_score_is_the_norm_over_all_training_rows() -> None:
    method = make()
    state, batch = start(method)
    assert not np.any(method.select(state).scores)
    finished = jax.jit(method.finish)(state, batch, jax.random.key(0))
    scores = method.select(finished).scores
    np.testing.assert_allclose(scores, norms(layers(state.params), batch, 0.0)[1], rtol=1e-4)
    # A row of weight c counts as c rows.
    counts = np.array([3, 1, 2, 1, 4])
    kept = Batch(batch.x[:5], batch.y[:5], jnp.asarray(counts, jnp.float32))
    copies = Batch(*(jnp.repeat(part, counts, axis=0) for part in kept))
    copies = copies._replace(weight=jnp.ones(len(copies.y)))
    weighted, repeated = (
        method.select(method.finish(state, data, jax.random.key(0))).scores
        for data in (kept, copies)
    )
    np.testing.assert_allclose(weighted, repeated, rtol=1e-5)


def test_permuted_columns_permute_the_scores() -> None:
    method = make(penalty=0.5)
    state, batch = start(method)
    order = np.random.default_rng(1).permutation(D)
    first = state.params["FanInDense_0"]["Dense_0"]
    moved = {"Dense_0": {**first, "kernel": first["kernel"][order]}}
    other = state.replace(params={**state.params, "FanInDense_0": moved})
    loss_of, finish = jax.jit(method.loss), jax.jit(method.finish)
    results = []
    for start_state, rows in ((state, batch), (other, batch._replace(x=batch.x[:, order]))):
        loss, _ = loss_of(start_state.params, start_state, rows, jax.random.key(0))
        scores = method.select(finish(start_state, rows, jax.random.key(0))).scores
        results.append((float(loss), np.asarray(scores)))
    assert results[0][0] == pytest.approx(results[1][0], rel=1e-5)
    np.testing.assert_allclose(results[1][1], results[0][1][order], rtol=1e-4)


def fit(y: np.ndarray, penalty: float, **options) -> fsjax.FitResult:
    method = make(penalty=penalty, hidden=(16,), activation="relu", learning_rate=1e-2, **options)
    x = np.random.default_rng(0).normal(size=(300, 30)).astype(np.float32)
    return fsjax.fit(
        method,
        (x, y),
        seeds=(0, 1, 2),
        num_features=3,
        num_epochs=20,
        batch_size=50,
        split="random",
    )


def labels() -> np.ndarray:
    x = np.random.default_rng(0).normal(size=(300, 30)).astype(np.float32)
    return (x[:, TRUTH].sum(axis=1) > 0).astype(int)


@pytest.mark.slow
def test_finds_the_informative_columns_and_none_without_labels() -> None:
    y = labels()
    result = fit(y, 0.3)
    assert [set(columns) for columns in result.selected] == [set(TRUTH)] * 3
    control = fit(np.random.default_rng(5).permutation(y), 0.3)
    assert np.isin(control.selected, TRUTH).mean() < 0.5
