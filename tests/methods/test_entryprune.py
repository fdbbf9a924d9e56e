"""EntryPrune against a NumPy version of its exchanges, and what it finds."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fsjax
from fsjax.engine.loop import init_state, train_step
from fsjax.method import Batch, Method, Spec, TrainState
from fsjax.methods.entryprune import enter, exchange, relative_change
from fsjax.methods.shared.network import NetworkOptions, first_kernel

B, D, C, K, EVERY, RATE = 10, 9, 3, 3, 4, 0.1
SPEC = Spec(D, C, "classification", B, B, num_epochs=5, steps_per_epoch=5)
ALLOWED = np.arange(D) != 3
#: K columns, and ceil(0.4 x 6) candidates.
INSIDE = 6


def make() -> Method:
    return fsjax.methods.entryprune(
        K, candidates=0.4, every=EVERY, hidden=(), optimizer="sgd", learning_rate=RATE, momentum=0.0
    )


def batch(number: int) -> Batch:
    """A batch of rows; the last two rows of every third batch are padding."""
    rng = np.random.default_rng(number)
    x, y = rng.normal(size=(B, D)), rng.integers(0, C, B)
    weight = np.where((np.arange(B) >= B - 2) & (number % 3 == 0), 0.0, 1.0)
    return Batch(jnp.asarray(x, jnp.float32), jnp.asarray(y), jnp.asarray(weight, jnp.float32))


def begun(method: Method) -> TrainState:
    mask = jnp.asarray(ALLOWED)
    return jax.jit(lambda seed: init_state(method, SPEC, seed, batch(0), mask))(np.uint32(0))


def slopes(weight: np.ndarray, bias: np.ndarray, rows: Batch, inside: np.ndarray):
    """Gradients of the cross-entropy of a linear model on some columns."""
    x = np.where(inside, np.asarray(rows.x, np.float64), 0)
    logits = x @ weight + bias
    chances = np.exp(logits - logits.max(1, keepdims=True))
    chances /= chances.sum(1, keepdims=True)
    error = chances - np.eye(C)[np.asarray(rows.y)]
    error *= (np.asarray(rows.weight) / np.asarray(rows.weight).sum())[:, None]
    return x.T @ error, error.sum(0)


def of_all_columns(state: TrainState, rows: jax.Array) -> np.ndarray:
    """``(D, H)`` from the rows of the network's inputs, 0 for columns that are not among them."""
    columns = np.asarray(state.extra["columns"])
    assert len(set(columns.tolist())) == len(columns) == INSIDE
    everything = np.zeros((D, rows.shape[1]))
    everything[columns] = rows
    return everything


@pytest.mark.slow
def test_steps_and_exchanges() -> None:
    method = make()
    state = begun(method)
    step = jax.jit(functools.partial(train_step, method))
    weight = of_all_columns(state, first_kernel(state.params))
    bias = np.zeros(C) + np.asarray(state.params["FanInDense_0"]["Dense_0"]["bias"])
    kept, entered = (np.asarray(state.extra[name]) for name in ("kept", "entered"))
    assert kept.sum() == K and entered.sum() == INSIDE and not (kept & ~entered).any()
    best, change, exchanges = np.full(D, -np.inf), np.zeros((D, C)), 0
    for number in range(1, 21):
        rows = batch(number)
        of_weight, of_bias = slopes(weight, bias, rows, kept | entered)
        weight, bias = weight - RATE * of_weight, bias - RATE * of_bias
        change += of_weight * np.asarray(rows.weight).sum()
        state, _ = step(state, rows, jax.random.key(number))
        if number % EVERY == 0:
            inside = kept | entered
            total = np.abs(change).sum(1)
            values = (total - total[inside].mean()) / total[inside].std()
            best = np.where(entered, np.maximum(best, values), best)
            order = [i for i in np.argsort(-best) if ALLOWED[i]]
            kept = np.isin(np.arange(D), order[:K])
            weight[~kept] = 0
            change[:] = 0
            before, entered = entered, np.asarray(state.extra["entered"])
            assert entered.sum() == INSIDE - K and not (entered & kept).any()
            assert ALLOWED[entered].all()
            exchanges += (before != entered).any()
        np.testing.assert_array_equal(state.extra["kept"], kept)
        tried = np.isfinite(best)
        np.testing.assert_allclose(np.asarray(state.extra["best"])[tried], best[tried], rtol=1e-3)
        kernel = of_all_columns(state, first_kernel(state.params))
        np.testing.assert_allclose(kernel[kept], weight[kept], rtol=1e-3, atol=1e-5)
        x = np.where(kept, np.asarray(rows.x), 0)
        np.testing.assert_allclose(
            method.predict(state, rows.x), x @ weight + bias, rtol=1e-3, atol=1e-4
        )
    assert exchanges >= 3 and tried.sum() > INSIDE
    selection = method.select(state)
    assert set(np.asarray(selection.picks).tolist()) == set(np.flatnonzero(kept).tolist())


def test_weights_and_moments_move_with_their_columns() -> None:
    method = fsjax.methods.entryprune(K, candidates=0.4, every=EVERY, hidden=(4,))
    state = begun(method)
    step = jax.jit(functools.partial(train_step, method))
    for number in range(1, EVERY):
        state, _ = step(state, batch(number), jax.random.key(number))
    after = enter(
        NetworkOptions(optimizer="adam"), exchange(state, jax.random.key(0), K, INSIDE - K)
    )
    kept = np.asarray(after.extra["kept"])
    assert (np.asarray(after.extra["columns"]) != np.asarray(state.extra["columns"])).any()
    pairs = [(first_kernel(state.params), first_kernel(after.params))]
    for old, new in zip(*map(jax.tree.leaves, (state.opt_state, after.opt_state)), strict=True):
        if old.shape == (INSIDE, 4):
            pairs.append((old, new))
        else:
            np.testing.assert_array_equal(old, new)
    assert len(pairs) == 3
    for old, new in pairs:
        assert np.asarray(old).any(axis=1).all()
        expected = np.where(kept[:, None], of_all_columns(state, old), 0.0)
        np.testing.assert_array_equal(of_all_columns(after, new), expected)


def test_relative_change_is_standardised_over_the_inputs() -> None:
    rng = np.random.default_rng(0)
    change, inside = rng.normal(size=(D, 4)), np.arange(D) < 6
    relative = np.asarray(relative_change(jnp.asarray(change), jnp.asarray(inside)))[inside]
    total = np.abs(change).sum(1)[inside]
    np.testing.assert_allclose(relative, (total - total.mean()) / total.std(), rtol=1e-4)
    moved = relative_change(jnp.asarray(3 * change), jnp.asarray(inside))
    np.testing.assert_allclose(np.asarray(moved)[inside], relative, rtol=1e-4)
