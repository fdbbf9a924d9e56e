"""LassoNet's path against a plain NumPy version.

Covers ``fsjax.nets.skip_network``.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from lassonet_reference import OPTIONS, TASKS, D, H, K, Reference, spec_of, table
from marks import slow_ids

from fsjax.engine.kernels.products import WIDE_TABLE
from fsjax.engine.loop import at_kept, init_state, train_epoch
from fsjax.engine.rows import as_batch
from fsjax.method import Method, TrainState, create_state
from fsjax.methods.lassonet import importances, lassonet
from fsjax.methods.shared.lassonet_path import automatic_start, first_lambda, improves, skip_norms
from fsjax.sparsity import hier_prox


class Run(NamedTuple):
    """The initial state, and the state and what was recorded after every epoch."""

    first: TrainState
    states: list[TrainState]
    recorded: list[dict[str, float]]


def follow(method: Method, task: str, most: int = 400) -> Run:
    """Trains epoch by epoch until the method has finished."""
    spec, arrays = spec_of(task), table(task)
    data = as_batch(task, arrays.train)
    initialise = jax.jit(functools.partial(init_state, method, spec))
    first = initialise(np.uint32(2), data, jnp.arange(D) < D - 1)
    epoch = jax.jit(lambda state: train_epoch(method, state, arrays))
    state, states, recorded = first, [], []
    while len(states) < most and not state.done:
        state, metrics = epoch(state)
        states.append(jax.tree.map(np.asarray, state))
        recorded.append({name: float(value) for name, value in metrics.items()})
    return Run(first, states, recorded)


@functools.cache
def whole_path(task: str) -> Run:
    return follow(lassonet(K, until=0, **OPTIONS), task)


@pytest.fixture(params=TASKS)
def recorded_run(request) -> tuple[str, Run]:
    """The path to its end."""
    return request.param, whole_path(request.param)


@pytest.mark.slow
def test_whole_path_equals_numpy(recorded_run: tuple[str, Run]) -> None:
    task, run = recorded_run
    lambdas = [recorded["train/lambda"] for recorded in run.recorded]
    reference = Reference(run.first, task, path_start=min(lam for lam in lambdas if lam))
    epochs = 0
    for epochs, (lam, count) in enumerate(reference.run(until=0), start=1):
        state, recorded = run.states[epochs - 1], run.recorded[epochs - 1]
        assert recorded["train/lambda"] == pytest.approx(lam, rel=1e-5)
        assert recorded["train/num_selected"] == count
        for name, expected in zip(("skip", "kernel", "bias"), reference.weights, strict=False):
            np.testing.assert_allclose(state.params[name], expected, rtol=1e-3, atol=1e-4)
    assert epochs == len(run.states) > 60
    # Both ends of a lambda occur: by patience and by the number of epochs.
    lengths = [lambdas.count(lam) for lam in sorted(set(lambdas))][1:]
    assert min(lengths) < OPTIONS["path_epochs"] == max(lengths)


@slow_ids("classification")
def test_constraint_holds_after_every_epoch(recorded_run: tuple[str, Run]) -> None:
    for state in recorded_run[1].states:
        largest = np.abs(state.params["kernel"]).max(axis=1)
        assert (largest <= OPTIONS["hierarchy"] * skip_norms(state.params) * (1 + 1e-5)).all()


def test_importances_and_scores_are_those_of_the_path(recorded_run: tuple[str, Run]) -> None:
    _, run = recorded_run
    inside = np.array([skip_norms(state.params) > 0 for state in run.states])
    lambdas = np.array([recorded["train/lambda"] for recorded in run.recorded])
    counts = np.array([recorded["train/num_selected"] for recorded in run.recorded])
    np.testing.assert_array_equal(counts, inside.sum(axis=1))
    select = jax.jit(lassonet(K, until=0, **OPTIONS).select)
    for epoch in (0, 5, 40, 60, len(run.states) - 1):
        found = np.asarray(importances(run.states[epoch]))
        for feature in range(D - 1):
            last = np.flatnonzero(inside[: epoch + 1, feature]).max()
            expected = np.inf if last == epoch else lambdas[last + 1]
            assert found[feature] == np.float32(expected)
        assert found[-1] == 0
        # The order is that of the importances; among those still in, that of the norms.
        scores = np.asarray(select(run.states[epoch]).scores)
        chex.assert_tree_all_finite(scores)
        keys = [(found[f], skip_norms(run.states[epoch].params)[f]) for f in range(D)]
        ordered = sorted(range(D), key=lambda f, keys=keys: keys[f])
        for low, high in zip(ordered[:-1], ordered[1:], strict=True):
            if keys[low][0] < keys[high][0] or np.isinf(keys[low][0]):
                assert scores[low] < scores[high]
    assert counts[0] == D - 1 and counts[-1] == 0
    assert np.isfinite(found).all()


def test_network_of_at_most_k_features_is_kept(recorded_run: tuple[str, Run]) -> None:
    _, run = recorded_run
    method = lassonet(K, until=0, **OPTIONS)
    kept = at_kept(method, run.states[-1])
    # The counter of epochs starts anew after the last epoch of each lambda.
    ends = [s for s in run.states[:-1] if s.log.started and s.log.epochs == 0][1:]
    few = [s for s in ends if 0 < (skip_norms(s.params) > 0).sum() <= K]
    chex.assert_trees_all_equal(kept.params, few[0].params)
    assert kept.best.epoch == few[0].epoch
    # The last network has no feature, and the path goes on in the log.
    assert not skip_norms(run.states[-1].params).any()
    chex.assert_trees_all_equal(kept.log, run.states[-1].log)


def test_path_down_to_k() -> None:
    """It is the start of the whole path, and carries no copy of the network."""
    run, short = whole_path("regression"), follow(lassonet(K, **OPTIONS), "regression")
    length = len(short.states)
    for name in ("train/lambda", "train/num_selected", "valid/loss"):
        values, others = ([r[name] for r in rs] for rs in (short.recorded, run.recorded))
        np.testing.assert_allclose(values, others[:length], rtol=1e-5)
    last = short.states[-1]
    assert last.best.params == () and bool(last.done)
    assert 0 < (skip_norms(last.params) > 0).sum() <= K
    full_path = at_kept(lassonet(K, until=0, **OPTIONS), run.states[-1])
    chex.assert_trees_all_close(last.params, full_path.params, rtol=1e-5, atol=1e-6)
    finished = [recorded["train/path_finished"] for recorded in short.recorded]
    assert finished[0] == 0.0 and finished[-1] == 1.0


@jax.jit
def at_rest(skip: jax.Array, kernel: jax.Array, strength: float) -> jax.Array:
    """The skip weights after the proximal step alone was repeated."""

    def goes_on(carry: tuple) -> jax.Array:
        return ~carry[2] & (carry[3] < 10_000)

    def shrink(carry: tuple) -> tuple:
        v, u, _, steps = carry
        new_v, u = hier_prox(v, u, strength, OPTIONS["hierarchy"])
        rests = jnp.max(jnp.abs(new_v - v)) < 1e-5
        return jnp.where(rests, v, new_v), u, rests, steps + 1

    return jax.lax.while_loop(goes_on, shrink, (skip, kernel, jnp.array(False), 0))[0]


def first_strength(skip: np.ndarray, kernel: np.ndarray) -> float:
    """The automatic start by its definition: upwards, without shortcuts."""
    strength = 1e-6
    while np.asarray(at_rest(jnp.asarray(skip), jnp.asarray(kernel), 2 * strength)).any(1).all():
        strength *= 2
    return strength


@pytest.mark.parametrize("scale", [0.0, 0.01, 3.0])
def test_automatic_start_is_the_definition(scale: float) -> None:
    rng = np.random.default_rng(0)
    kernel = np.float32(rng.normal(size=(D, H)))
    skip = np.float32(scale * rng.normal(size=(D, 2)))
    expected = first_strength(skip, kernel)
    # A feature that may not be selected does not count.
    skip, kernel = (np.concatenate([a, 0 * a[:1]]) for a in (skip, kernel))
    strength = jax.jit(automatic_start)(skip, kernel, 2.0, jnp.arange(D + 1) < D, True)
    assert float(strength) == pytest.approx(expected)


def test_path_begins_at_the_automatic_start(recorded_run: tuple[str, Run]) -> None:
    _, run = recorded_run
    dense = [s for s, r in zip(run.states, run.recorded, strict=True) if r["train/lambda"] == 0][-1]
    skip, kernel = (dense.params[name][:-1] for name in ("skip", "kernel"))
    expected = first_strength(skip, kernel)
    expected /= 10 * OPTIONS["path_learning_rate"]
    assert dense.log.penalty == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("rows, share", [(1, 1.0), (2, 0.1)])
def test_path_of_few_rows_begins_where_columns_can_leave(rows: int, share: float) -> None:
    columns = WIDE_TABLE
    spec = spec_of("classification", num_columns=columns, num_rows=rows)
    params = {"skip": jnp.ones((columns, 2)), "kernel": jnp.ones((columns, H))}
    state = create_state(spec, params)
    strength = automatic_start(*params.values(), 2.0, state.feature_mask, True)
    found = first_lambda(state, jnp.bool_(True), 2.0, 0.5)
    assert float(found) == pytest.approx(float(strength) * share / 0.5)


@pytest.mark.parametrize(
    ("objective", "best", "expected"),
    [
        (5, np.inf, 1),
        (9.8, 10, 1),
        (9.95, 10, 0),
        (-9.95, -10, 0),
        (-10.05, -10, 0),
        (-10.2, -10, 1),
    ],
)
def test_an_objective_improves_by_one_percent_whatever_its_sign(objective, best, expected) -> None:
    assert bool(improves(jnp.float32(objective), jnp.float32(best), 0.99)) == bool(expected)
