"""ProbMask on a small network: density, what it learns, fixed masks, and its options."""

from __future__ import annotations

import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fsjax.data import load
from fsjax.engine.epoch_metrics import metrics_of_rows
from fsjax.engine.loop import init_state, train_epoch
from fsjax.engine.rows import Arrays, Rows, as_batch
from fsjax.method import Batch, Method, Spec, TrainState
from fsjax.methods.probmask import probmask
from fsjax.sparsity.probmask import num_probabilities, project

EPOCHS, FINETUNE, DENSITY = 20, 4, 0.2


@functools.cache
def digits_method() -> Method:
    return probmask(
        density=DENSITY, hidden=(24,), finetune_epochs=FINETUNE, score_learning_rate=0.02
    )


@functools.cache
def trained(shuffled: bool) -> tuple[list[TrainState], list[dict[str, float]], float]:
    """States after each epoch, its metrics, and the accuracy on the test rows in percent."""
    data = load("digits")
    rng = np.random.default_rng(0)
    order = rng.permutation(len(data.X))
    x, y = np.float32(data.X[order] / 16), np.int32(data.y[order])
    x_train, y_train, x_test, y_test = (
        jnp.asarray(part) for part in (x[:1400], y[:1400], x[1400:], y[1400:])
    )
    if shuffled:
        y_train = y_train[rng.permutation(1400)]
    none = Rows(x[:0], y[:0], np.ones(0, np.float32))
    arrays = Arrays(Rows(x_train, y_train, jnp.ones(1400)), none, none)
    method = digits_method()
    spec = Spec(x.shape[1], 10, "classification", 1400, 64, EPOCHS, 22, best_by="last")
    epoch = compiled_epoch()
    data = as_batch("classification", arrays.train)
    initialise = jax.jit(functools.partial(init_state, method, spec))
    state = initialise(np.uint32(0), data, jnp.ones(x.shape[1], bool))
    states, metrics = [], []
    for _ in range(EPOCHS):
        state, recorded = epoch(state, arrays)
        states.append(state)
        metrics.append({name: float(value) for name, value in recorded.items()})
    return (
        states,
        metrics,
        float(compiled_accuracy()(state, Rows(x_test, y_test, jnp.ones(len(x_test))))),
    )


@functools.cache
def compiled_epoch():
    return jax.jit(lambda state, arrays: train_epoch(digits_method(), state, arrays))


@functools.cache
def compiled_accuracy():
    return jax.jit(lambda state, rows: metrics_of_rows(digits_method(), state, rows)["accuracy"])


@pytest.mark.slow
def test_sparse_network_learns_and_its_control_does_not() -> None:
    accuracy, control = trained(False)[2], trained(True)[2]
    assert accuracy > 80
    assert control < 30


@pytest.mark.slow
def test_density_falls_to_what_was_asked_for() -> None:
    states, metrics, _ = trained(False)
    sparsity = np.array([m["train/sparsity"] for m in metrics])
    masks = EPOCHS - FINETUNE
    # The budget falls from epoch int(0.16 * 16) to int(0.6 * 16).
    np.testing.assert_allclose(sparsity[:3], 0.0, atol=1e-6)
    assert (np.diff(sparsity[2:10]) > 0).all()
    np.testing.assert_allclose(sparsity[9:masks], 1 - DENSITY, atol=1e-4)
    # A mask is a draw, as dense as expected.
    last = states[-1].params.probabilities
    number = num_probabilities(last)
    assert sparsity[-1] == pytest.approx(1 - DENSITY, abs=4 * np.sqrt(DENSITY / number))
    closed = sum(int(np.sum(np.asarray(s) == 0)) for s in last.values())
    assert sparsity[-1] == pytest.approx(closed / number, abs=1e-6)


@pytest.mark.slow
def test_masks_rest_in_fine_tuning() -> None:
    states, _, _ = trained(False)
    method, first = digits_method(), states[EPOCHS - FINETUNE - 1]
    for values in first.params.probabilities.values():
        assert set(np.unique(values)) == {0.0, 1.0}
    for before, after in zip(
        states[EPOCHS - FINETUNE - 1 :], states[EPOCHS - FINETUNE :], strict=False
    ):
        chex.assert_trees_all_equal(after.params.probabilities, first.params.probabilities)
        moved = jax.tree.map(
            lambda a, b: bool((a != b).any()), after.params.weights, before.params.weights
        )
        assert all(jax.tree.leaves(moved))
    # What is predicted with has the same zeros, whichever thresholds there are.
    chex.assert_trees_all_equal(
        scores(method, states[-1]) == 0, scores(method, states[-1].replace(extra=first.extra)) == 0
    )


def scores(method: Method, state: TrainState) -> np.ndarray:
    return np.asarray(method.select(state).scores)


SPEC = Spec(13, 3, "classification", 24, 8, 6, 3, best_by="last")


def rows() -> Batch:
    rng = np.random.default_rng(0)
    x = jnp.asarray(rng.normal(size=(8, 13)), jnp.float32)
    return Batch(x, jnp.asarray(rng.integers(0, 3, 8), jnp.int32), jnp.ones(8))


def started(method: Method, spec: Spec = SPEC, budget: float = 0.3, epoch: int = 0) -> TrainState:
    """A state with random probabilities of this mean."""
    state = jax.jit(method.init, static_argnums=1)(jax.random.key(1), spec, rows())
    rng = np.random.default_rng(1)
    values = {
        path: jnp.asarray(rng.uniform(size=s.shape), jnp.float32)
        for path, s in state.params.probabilities.items()
    }
    values = project(values, budget * num_probabilities(values))
    return state.replace(params=state.params._replace(probabilities=values), epoch=jnp.int32(epoch))


def test_masks_of_an_epoch_are_new_and_repeatable() -> None:
    method, x = probmask(hidden=(6,)), rows().x
    first, predict = started(method), jax.jit(method.predict)
    other = jax.jit(method.after_epoch)(first, rows(), jax.random.key(0))
    chex.assert_trees_all_equal(predict(first, x), predict(first, x))
    drawn_again = first.replace(extra=other.extra)
    assert not np.allclose(predict(first, x), predict(drawn_again, x))


def test_order_of_columns_does_not_matter_once_masks_are_drawn() -> None:
    method = probmask(hidden=(6,))
    state = started(method)
    assert 0 < np.mean(scores(method, state) > 0) <= 1
    order = np.random.default_rng(0).permutation(13)

    def permute(leaf: jax.Array) -> jax.Array:
        return leaf[order] if leaf.ndim and leaf.shape[0] == 13 else leaf

    permuted = state.replace(
        params=jax.tree.map(permute, state.params), extra=jax.tree.map(permute, state.extra)
    )
    chex.assert_trees_all_equal(scores(method, permuted), scores(method, state)[order])
    chex.assert_trees_all_close(
        method.predict(permuted, rows().x[:, order]), method.predict(state, rows().x), rtol=1e-4
    )


def test_most_probable_mask_has_the_density() -> None:
    method = probmask(hidden=(6,), evaluation="most_probable", finetune_epochs=2)
    state = started(method)
    number = num_probabilities(state.params.probabilities)
    before = method.predict(state, rows().x)
    end = jax.jit(lambda state, key: method.after_epoch(state, rows(), key))
    fixed = end(state.replace(epoch=jnp.int32(4)), jax.random.key(0))
    opened = sum(int(np.sum(s)) for s in fixed.params.probabilities.values())
    assert opened == round(0.3 * number)
    chex.assert_trees_all_close(method.predict(fixed, rows().x), before, rtol=1e-5)
    # In any other epoch nothing is fixed.
    for epoch in (3, 5):
        same = end(state.replace(epoch=jnp.int32(epoch)), jax.random.key(0))
        chex.assert_trees_all_equal(same.params, state.params)


@pytest.mark.slow
def test_more_samples_are_averaged() -> None:
    state = started(probmask(hidden=(6,), batch_norm=True))
    spread = {}
    for samples in (1, 4):
        method = probmask(hidden=(6,), batch_norm=True, samples=samples)
        losses = jax.jit(
            jax.vmap(lambda key, method=method: method.loss(state.params, state, rows(), key))
        )
        values, aux = losses(jax.random.split(jax.random.key(samples), 200))
        means = aux["stats"]["BatchNorm_0"]["mean"]
        chex.assert_shape(means, (200, 6))
        spread[samples] = np.var(values), np.mean(np.var(means, axis=0))
    np.testing.assert_allclose(np.divide(spread[1], spread[4]), 4.0, rtol=0.35)


def test_shares_of_epochs_that_are_whole_numbers_are_not_rounded_down() -> None:
    method = probmask(hidden=(6,), sparsify_start=0.1, sparsify_end=0.29, finetune_epochs=0)
    spec = Spec(5, 2, "classification", 8, 4, 100, 2)
    (phase,) = method.phases(spec)
    assert phase.epochs == 30  # those up to and with 29
