"""AEFS against a NumPy version of its equation, and what it finds in small tables."""

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

D, H, B = 6, 4, 9

#: Weights of the rows; the last two rows are padding.
WEIGHT = np.array([1.0] * (B - 2) + [0.0] * 2)


def make(**options) -> Method:
    return fsjax.methods.aefs(**{"hidden": (H,), **options})


def start(method: Method) -> tuple[TrainState, Batch]:
    spec = Spec(D, D, "reconstruction", B, B, num_epochs=4, steps_per_epoch=1)
    x = np.random.default_rng(0).normal(size=(B, D))
    batch = Batch(*(jnp.asarray(array, jnp.float32) for array in (x, x, WEIGHT)))
    initialise = jax.jit(functools.partial(init_state, method, spec))
    return initialise(np.uint32(0), batch, jnp.ones(D, bool)), batch


def layers(params: dict) -> list[np.ndarray]:
    """W1 ``(D, H)``, its bias, W2 ``(H, D)``, its bias; in float64."""
    dense_layers = [params[f"FanInDense_{i}"]["Dense_0"] for i in (0, 1)]
    return [
        np.array(layer[name], np.float64) for layer in dense_layers for name in ("kernel", "bias")
    ]


def reference(
    values: list[np.ndarray], x: np.ndarray, activation: str, alpha: float, beta: float
) -> tuple[float, list[np.ndarray]]:
    """The loss and its gradient."""
    w1, b1, w2, b2 = values
    before = x @ w1 + b1
    if activation == "sigmoid":
        hidden = 1 / (1 + np.exp(-before))
        slope = hidden * (1 - hidden)
    else:
        hidden, slope = np.where(before > 0, before, 0.2 * before), np.where(before > 0, 1.0, 0.2)
    share = (WEIGHT / WEIGHT.sum())[:, None]
    residual = hidden @ w2 + b2 - x
    norms = np.linalg.norm(w1, axis=1, keepdims=True)
    value = (share * residual**2).sum() / D + alpha * norms.sum()
    value += beta / 2 * ((w1**2).sum() + (w2**2).sum())
    to_out = 2 * share * residual / D
    to_hidden = to_out @ w2.T * slope
    by_w1 = x.T @ to_hidden + alpha * w1 / norms + beta * w1
    return value, [by_w1, to_hidden.sum(0), hidden.T @ to_out + beta * w2, to_out.sum(0)]


@slow_ids("sigmoid-*")
@pytest.mark.parametrize(
    ("activation", "alpha", "beta"),
    [("leaky_relu", 0.3, 0.05), ("sigmoid", 0.3, 0.05), ("sigmoid", 0.0, 0.0)],
)
def test_loss_and_gradient_are_those_of_the_equation(
    activation: str, alpha: float, beta: float
) -> None:
    method = make(activation=activation, penalty=alpha, weight_decay=beta)
    state, batch = start(method)
    run = jax.jit(jax.value_and_grad(method.loss, has_aux=True))
    (value, _), grads = run(state.params, state, batch, jax.random.key(0))
    x = np.asarray(batch.x, np.float64)
    expected, slopes = reference(layers(state.params), x, activation, alpha, beta)
    assert float(value) == pytest.approx(expected, rel=1e-5)
    for gradient, slope in zip(layers(grads), slopes, strict=True):
        np.testing.assert_allclose(gradient, slope, rtol=1e-4, atol=1e-6)


def test_scores_are_norms_or_the_turns_of_the_hidden_units() -> None:
    state, _ = start(make())
    w1 = np.array([[1, 1, 0, 1], [-3, 0, 0, 0], [0, 2, 0, 9], [0, 0, 0, 0], [2, 0, -5, 2], [1] * 4])
    first = state.params["FanInDense_0"]["Dense_0"]
    layer = {"Dense_0": {**first, "kernel": jnp.asarray(w1, jnp.float32)}}
    state = state.replace(params={**state.params, "FanInDense_0": layer})
    norms = np.linalg.norm(w1, axis=1)
    np.testing.assert_allclose(make(rank_by="norm").select(state).scores, norms, rtol=1e-5)
    # The units choose columns 1, 2, 4 and 2 again.
    scores = np.asarray(make().select(state).scores)
    assert np.argsort(-scores).tolist() == [1, 2, 4, 5, 0, 3]
    np.testing.assert_allclose(scores[[1, 2, 4]], [4, 3, 2])


def test_permuted_columns_permute_the_scores() -> None:
    method = make(penalty=0.5)
    state, batch = start(method)
    order = np.random.default_rng(1).permutation(D)
    first, last = (state.params[f"FanInDense_{i}"]["Dense_0"] for i in (0, 1))
    first = {**first, "kernel": first["kernel"][order]}
    last = {"kernel": last["kernel"][:, order], "bias": last["bias"][order]}
    params = {"FanInDense_0": {"Dense_0": first}, "FanInDense_1": {"Dense_0": last}}
    moved = batch._replace(x=batch.x[:, order], y=batch.y[:, order])
    plain_loss, permuted_loss = (
        float(method.loss(parameters, state, rows, jax.random.key(0))[0])
        for parameters, rows in ((state.params, batch), (params, moved))
    )
    assert plain_loss == pytest.approx(permuted_loss, rel=1e-5)
    scores = method.select(state).scores
    np.testing.assert_allclose(method.select(state.replace(params=params)).scores, scores[order])


#: Columns that belong together, a quarter of all.
TRUTH = np.arange(3, 40, 4)


def table() -> np.ndarray:
    """Forty columns of equal variance, ten of which are mixtures of two factors."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(600, 40))
    mixture = rng.normal(size=(2, len(TRUTH)))
    mixture /= np.linalg.norm(mixture, axis=0)
    x[:, TRUTH] = rng.normal(size=(600, 2)) @ mixture + 0.3 * x[:, TRUTH]
    return (x / x.std(axis=0)).astype(np.float32)


def fit(x: np.ndarray, penalty: float) -> fsjax.FitResult:
    method = make(hidden=(2,), penalty=penalty, learning_rate=1e-2, rank_by="norm")
    options = {"num_features": 10, "num_epochs": 30, "batch_size": 100, "seeds": (0, 1, 2)}
    return fsjax.fit(method, (x, None), **options)


@pytest.mark.slow
def test_finds_columns_that_belong_together_and_the_penalty_shrinks_the_others() -> None:
    x, rng = table(), np.random.default_rng(1)
    shuffled = np.stack([rng.permutation(column) for column in x.T], axis=1)
    result, control, stronger = fit(x, 1e-3), fit(shuffled, 1e-3), fit(x, 1e-2)
    # By chance it is a quarter.
    assert np.isin(result.selected, TRUTH).mean(axis=1).min() >= 0.9
    assert np.isin(control.selected, TRUTH).mean() <= 0.5
    others = np.setdiff1d(range(40), TRUTH)
    assert (stronger.scores[:, others].sum(axis=1) < result.scores[:, others].sum(axis=1) / 2).all()
