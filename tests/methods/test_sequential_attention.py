"""Sequential Attention: its phases and masks against NumPy, and what it finds."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from marks import slow_ids

import fsjax
from fsjax.engine.loop import init_state, train_step
from fsjax.method import Batch, Method, Spec, TrainState
from fsjax.methods.shared.network import FIRST_LAYER

N, D, K, EPOCHS, STEPS = 12, 9, 4, 5, 6
SPEC = Spec(D, 2, "classification", N, N, num_epochs=EPOCHS, steps_per_epoch=STEPS)
ALLOWED = np.arange(D) != 3


def make(**options) -> Method:
    fixed = {"hidden": (5,), "optimizer": "sgd", "learning_rate": 0.1, "momentum": 0.0}
    return fsjax.methods.sequential_attention(K, **fixed, **options)


def rows() -> Batch:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(N, D)).astype(np.float32)
    return Batch(jnp.asarray(x), jnp.asarray(np.arange(N) % 2), jnp.ones(N))


def begun(method: Method) -> TrainState:
    mask = jnp.asarray(ALLOWED)
    return jax.jit(lambda seed: init_state(method, SPEC, seed, rows(), mask))(np.uint32(0))


def gates(logits: np.ndarray, chosen: list[int], weighed: bool) -> np.ndarray:
    """1 for the chosen ones and a softmax over the others that may be chosen."""
    if not weighed:
        return np.ones(D)
    factors = np.zeros(D)
    factors[chosen] = 1
    free = np.array([i for i in range(D) if ALLOWED[i] and i not in chosen])
    if len(chosen) < K:
        powers = np.exp(logits[free].astype(np.float64))
        factors[free] = powers / powers.sum()
    return factors


def outputs(params: dict, x: np.ndarray, scale: np.ndarray) -> np.ndarray:
    first, second = (
        {name: np.asarray(leaf) for name, leaf in params["weights"][layer]["Dense_0"].items()}
        for layer in (FIRST_LAYER, "FanInDense_1")
    )
    hidden = np.maximum((x * scale) @ first["kernel"] + first["bias"], 0)
    return hidden @ second["kernel"] + second["bias"]


@slow_ids("3-0.3")
@slow_ids("1-0.3")
@slow_ids("1-0.0", "3-0.0")
@pytest.mark.parametrize("warmup", [0.0, 0.3])
@pytest.mark.parametrize("at_once", [1, 3])
def test_phases_and_masks(warmup: float, at_once: int) -> None:
    method, batch = make(warmup=warmup, columns_per_phase=at_once), rows()
    state = begun(method)
    step = jax.jit(functools.partial(train_step, method))
    total, start = EPOCHS * STEPS, int(warmup * EPOCHS * STEPS)
    phases, chosen = -(-K // at_once), []
    for number in range(1, total + 1):
        # A pull of its own on every logit, as those of few steps are nearly equal.
        pull = np.random.default_rng(number).permutation(D).astype(np.float32)
        state = state.replace(params={**state.params, "logits": jnp.asarray(pull)})
        state, _ = step(state, batch, jax.random.key(number))
        over = max(number - start, 0) * phases // (total - start)
        wanted = min(over * at_once, K)
        free = [i for i in np.argsort(-pull) if ALLOWED[i] and i not in chosen]
        more = wanted - len(chosen)
        chosen += free[:more]
        place = np.asarray(state.extra["place"])
        assert np.flatnonzero(place).tolist() == sorted(chosen)
        assert place[chosen].tolist() == [K - i for i in range(len(chosen))]
        logits = np.asarray(state.params["logits"])
        assert (np.abs(logits) < 1e-3).all() == (more > 0)
        scale = gates(logits, chosen, number >= start)
        predicted = method.predict(state, batch.x)
        np.testing.assert_allclose(
            predicted, outputs(state.params, np.asarray(batch.x), scale), rtol=1e-4, atol=1e-5
        )
    assert len(chosen) == K
    assert np.asarray(method.select(state).picks).tolist() == chosen


@pytest.mark.slow
def test_logits_learn_which_column_matters() -> None:
    """The slope of the loss by a logit, against finite differences of the loss."""
    method, batch = make(warmup=0.0), rows()
    state = begun(method)
    logits = np.random.default_rng(1).normal(size=D).astype(np.float32)

    def value(logits: jax.Array) -> jax.Array:
        params = {**state.params, "logits": logits}
        return method.loss(params, state, batch, jax.random.key(0))[0]

    slope = np.asarray(jax.grad(value)(jnp.asarray(logits)))
    for i in (0, 5):
        moved = np.eye(D, dtype=np.float32)[i] * 1e-2
        difference = float(value(logits + moved) - value(logits - moved)) / 2e-2
        assert slope[i] == pytest.approx(difference, rel=0.05, abs=1e-5)
    assert slope[3] == 0  # a constant column
    assert np.abs(slope[ALLOWED]).min() > 0
