"""LassoNet's path against a plain NumPy version, and what it finds on data with known truth."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import fsjax
from fsjax.engine.loop import Arrays, train_epoch
from fsjax.errors import ConfigError
from fsjax.method import Method, Spec, TrainState
from fsjax.methods.lassonet import (
    Path,
    adam_then_sgd,
    automatic_start,
    importances,
    lassonet,
    skip_norms,
    to_sgd,
)
from fsjax.sparsity import hier_prox

N, D, H, C, K = 48, 7, 5, 3, 3
#: Paths of about two hundred epochs.
OPTIONS: dict[str, Any] = dict(
    hidden=(H,),
    hierarchy=2.0,
    dense_epochs=40,
    dense_patience=6,
    path_epochs=9,
    path_patience=3,
    learning_rate=0.02,
    path_learning_rate=0.03,
    path_multiplier=1.7,
    tolerance=0.995,
)
TASKS = ("classification", "regression")


def table(task: str) -> Arrays:
    """Rows of which the first two columns tell the target; the last one is constant."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(N, D))
    x[:, -1] = 1.5
    hidden = x[:, 0] + np.abs(x[:, 1])
    y = np.digitize(hidden, np.quantile(hidden, [0.33, 0.66]))
    if task == "regression":
        y = np.stack([hidden, -x[:, 0]], axis=1).astype(np.float32)
    else:
        y = y.astype(np.int32)
    x = x.astype(np.float32)
    train, valid = slice(0, 36), slice(36, N)
    parts = (x[train], y[train], np.ones(36), x[valid], y[valid], x[:0], y[:0])
    return Arrays(*(jnp.asarray(a, jnp.int32 if a.dtype == np.int32 else None) for a in parts))


class Run(NamedTuple):
    """The initial state, and the state and what was recorded after every epoch."""

    first: TrainState
    states: list[TrainState]
    recorded: list[dict[str, float]]


def spec_of(task: str, **changes: Any) -> Spec:
    outputs = C if task == "classification" else 2
    spec = Spec(D, outputs, task, 36, 36, 400, shuffle=False, best_by="last")
    return spec._replace(**changes)


def follow(method: Method, task: str, most: int = 400) -> Run:
    """Trains epoch by epoch until the method has finished."""
    spec, arrays = spec_of(task), table(task)
    first = method.init(jax.random.key(2), spec).replace(feature_mask=jnp.arange(D) < D - 1)
    epoch = jax.jit(lambda state: train_epoch(method, state, arrays))
    state, states, recorded = first, [], []
    while len(states) < most and not (states and method.finished(state)):
        state, metrics = epoch(state)
        states.append(jax.tree.map(np.asarray, state.replace(key=None)))
        recorded.append({name: float(value) for name, value in metrics.items()})
    return Run(first, states, recorded)


@functools.cache
def whole_path(task: str) -> Run:
    return follow(lassonet(K, until=0, **OPTIONS), task)


@pytest.fixture(params=TASKS)
def whole(request) -> tuple[str, Run]:
    """The path to its end."""
    return request.param, whole_path(request.param)


def prox(v: np.ndarray, u: np.ndarray, strength: float, hierarchy: float) -> None:
    """The step for every feature, in place, by the sort of the paper's algorithm 2."""
    for row in range(len(v)):
        norm = np.sqrt((v[row] ** 2).sum())
        if norm == 0:
            u[row] = 0
            continue
        falling = np.append(-np.sort(-np.abs(u[row])), 0)
        for s in range(len(falling)):
            factor = max(1 - (strength - hierarchy * falling[:s].sum()) / norm, 0)
            factor /= 1 + s * hierarchy**2
            if falling[s] <= hierarchy * factor * norm:
                break
        v[row] *= factor
        u[row] = np.clip(u[row], -hierarchy * factor * norm, hierarchy * factor * norm)


class Reference:
    """The whole method in NumPy and float64: loops over lambdas and epochs, as it is told."""

    def __init__(self, state: TrainState, task: str, path_start: float) -> None:
        rest = state.params["MLP_0"]["FanInDense_0"]["Dense_0"]
        leaves = [state.params[name] for name in ("skip", "kernel", "bias")]
        self.weights = [np.array(w, np.float64) for w in (*leaves, rest["kernel"], rest["bias"])]
        arrays = [np.asarray(a) for a in table(task)]
        self.x, self.y, _, self.x_valid, self.y_valid = arrays[:5]
        self.task, self.path_start, self.allowed = task, path_start, np.arange(D) < D - 1

    def forward(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        skip, kernel, bias, out, out_bias = self.weights
        hidden = np.maximum(x @ kernel + bias, 0)
        return hidden, x @ skip + hidden @ out + out_bias

    def loss(self, outputs: np.ndarray, y: np.ndarray) -> tuple[float, np.ndarray]:
        """The mean loss and its slope by the outputs."""
        if self.task == "regression":
            return ((outputs - y) ** 2).mean(), 2 * (outputs - y) / y.size
        shares = np.exp(outputs - outputs.max(1, keepdims=True))
        shares /= shares.sum(1, keepdims=True)
        rows = np.arange(len(y))
        value = -np.log(shares[rows, y]).mean()
        shares[rows, y] -= 1
        return value, shares / len(y)

    def slopes(self) -> list[np.ndarray]:
        hidden, outputs = self.forward(self.x)
        _, slope = self.loss(outputs, self.y)
        back = slope @ self.weights[3].T * (hidden > 0)
        x = self.x
        return [x.T @ slope, x.T @ back, back.sum(0), hidden.T @ slope, slope.sum(0)]

    def norms(self) -> np.ndarray:
        return np.sqrt((self.weights[0] ** 2).sum(1))

    def epochs(self, step, lam: float, rate: float, most: int, patience: int, best: float):
        """One lambda: epochs until the objective has not improved for a while."""
        waited = 0
        for _ in range(most):
            step(self.slopes())
            self.weights[0][~self.allowed] = 0
            prox(self.weights[0], self.weights[1], lam * rate, OPTIONS["hierarchy"])
            yield lam, int((self.norms() > 0).sum())
            value = self.objective(lam)
            waited = 0 if value < OPTIONS["tolerance"] * best else waited + 1
            best = value if waited == 0 else best
            if waited == patience:
                return

    def objective(self, lam: float) -> float:
        value, _ = self.loss(self.forward(self.x_valid)[1], self.y_valid)
        return value + lam * self.norms().sum()

    def run(self, until: int) -> Iterator[tuple[float, int]]:
        """Lambda and number of selected features after every epoch."""
        moments = [(np.zeros_like(w), np.zeros_like(w)) for w in self.weights]
        count = 0

        def adam(slopes: list[np.ndarray]) -> None:
            nonlocal count
            count += 1
            for w, (m, s), g in zip(self.weights, moments, slopes, strict=True):
                m += 0.1 * (g - m)
                s += 0.001 * (g**2 - s)
                away = np.sqrt(s / (1 - 0.999**count)) + 1e-8
                w -= OPTIONS["learning_rate"] * m / (1 - 0.9**count) / away

        buffers = [np.zeros_like(w) for w in self.weights]

        def descend(slopes: list[np.ndarray]) -> None:
            for w, b, g in zip(self.weights, buffers, slopes, strict=True):
                b *= 0.9
                b += g
                w -= OPTIONS["path_learning_rate"] * b

        patience, most = OPTIONS["dense_patience"], OPTIONS["dense_epochs"]
        yield from self.epochs(adam, 0.0, 1.0, most, patience, np.inf)
        lam = self.path_start
        while True:
            rate, best = OPTIONS["path_learning_rate"], self.objective(lam)
            patience, most = OPTIONS["path_patience"], OPTIONS["path_epochs"]
            yield from self.epochs(descend, lam, rate, most, patience, best)
            if (self.norms() > 0).sum() <= until:
                return
            lam *= OPTIONS["path_multiplier"]


def test_whole_path_equals_numpy(whole: tuple[str, Run]) -> None:
    task, run = whole
    lambdas = [recorded["train/lambda"] for recorded in run.recorded]
    reference = Reference(run.first, task, path_start=min(lam for lam in lambdas if lam))
    epochs = 0
    for epochs, (lam, count) in enumerate(reference.run(until=0), start=1):
        state, recorded = run.states[epochs - 1], run.recorded[epochs - 1]
        assert recorded["train/lambda"] == pytest.approx(lam, rel=1e-5)
        assert recorded["train/num_selected"] == count
        if state.extra.finished:
            # The weights kept earlier are back.
            continue
        for name, expected in zip(("skip", "kernel", "bias"), reference.weights, strict=False):
            np.testing.assert_allclose(state.params[name], expected, rtol=1e-3, atol=1e-4)
    assert epochs == len(run.states) > 60
    # Both ends of a lambda occur: by patience and by the number of epochs.
    lengths = [lambdas.count(lam) for lam in sorted(set(lambdas))][1:]
    assert min(lengths) < OPTIONS["path_epochs"] == max(lengths)


def test_constraint_holds_after_every_epoch(whole: tuple[str, Run]) -> None:
    for state in whole[1].states:
        largest = np.abs(state.params["kernel"]).max(axis=1)
        assert (largest <= OPTIONS["hierarchy"] * skip_norms(state.params) * (1 + 1e-5)).all()


def test_importances_and_scores_are_those_of_the_path(whole: tuple[str, Run]) -> None:
    _, run = whole
    inside = np.array([skip_norms(state.params) > 0 for state in run.states])
    # The weights kept earlier are back.
    inside[-1] = False
    lambdas = np.array([recorded["train/lambda"] for recorded in run.recorded])
    counts = np.array([recorded["train/num_selected"] for recorded in run.recorded])
    np.testing.assert_array_equal(counts, inside.sum(axis=1))
    score = jax.jit(lassonet(K, until=0, **OPTIONS).score)
    for epoch in (0, 5, 40, 60, len(run.states) - 1):
        found = np.asarray(importances(run.states[epoch]))
        for feature in range(D - 1):
            last = np.flatnonzero(inside[: epoch + 1, feature]).max()
            expected = np.inf if last == epoch else lambdas[last + 1]
            assert found[feature] == np.float32(expected)
        assert found[-1] == 0
        # The order is that of the importances; among those still in, that of the norms.
        scores = np.asarray(score(run.states[epoch]))
        chex.assert_tree_all_finite(scores)
        keys = [(found[f], skip_norms(run.states[epoch].params)[f]) for f in range(D)]
        ordered = sorted(range(D), key=lambda f, keys=keys: keys[f])
        for low, high in zip(ordered[:-1], ordered[1:], strict=True):
            if keys[low][0] < keys[high][0] or np.isinf(keys[low][0]):
                assert scores[low] < scores[high]
    assert counts[0] == D - 1 and counts[-1] == 0
    assert np.isfinite(found).all()


def test_network_of_at_most_k_features_is_kept(whole: tuple[str, Run]) -> None:
    _, run = whole
    last = run.states[-1]
    # The counter of epochs starts anew after the last epoch of each lambda.
    ends = [s for s in run.states[:-1] if s.extra.started and s.extra.epochs == 0][1:]
    few = [s for s in ends if 0 < (skip_norms(s.params) > 0).sum() <= K]
    chex.assert_trees_all_equal(last.params, few[0].params)
    before = run.states[-2]
    assert not skip_norms(before.params).all()
    assert [bool(s.extra.has_chosen) for s in ends].index(True) == ends.index(few[0])


def test_path_down_to_k() -> None:
    """It is the start of the whole path, and carries no copy of the network."""
    run, short = whole_path("regression"), follow(lassonet(K, **OPTIONS), "regression")
    length = len(short.states)
    for name in ("train/lambda", "train/num_selected", "valid/loss"):
        values, others = ([r[name] for r in rs] for rs in (short.recorded, run.recorded))
        np.testing.assert_allclose(values, others[:length], rtol=1e-5)
    last = short.states[-1]
    assert last.extra.chosen == () and bool(last.extra.finished)
    assert 0 < (skip_norms(last.params) > 0).sum() <= K
    chex.assert_trees_all_close(last.params, run.states[-1].params, rtol=1e-5, atol=1e-6)
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
    found = jax.jit(automatic_start)(skip, kernel, 2.0, jnp.arange(D + 1) < D, True)
    assert float(found) == pytest.approx(expected)


def test_path_begins_at_the_automatic_start(whole: tuple[str, Run]) -> None:
    _, run = whole
    dense = [s for s, r in zip(run.states, run.recorded, strict=True) if r["train/lambda"] == 0][-1]
    skip, kernel = (dense.params[name][:-1] for name in ("skip", "kernel"))
    expected = first_strength(skip, kernel)
    expected /= 10 * OPTIONS["path_learning_rate"]
    assert dense.extra.penalty == pytest.approx(expected, rel=1e-5)


def test_optimizer_is_adam_and_then_sgd_with_fresh_momentum() -> None:
    rng = np.random.default_rng(0)
    params = {"a": jnp.asarray(rng.normal(size=(3, 2))), "b": jnp.ones(4)}
    mine, adam, sgd = adam_then_sgd(0.1, 0.8), optax.adam(0.1), optax.sgd(0.05, 0.8)
    state, theirs = mine.init(params), adam.init(params)
    for step in range(8):
        if step == 4:
            state = to_sgd(state, jnp.float32(0.05), jnp.array(True))
            theirs = sgd.init(params)
        grads = jax.tree.map(lambda p: jnp.asarray(rng.normal(size=p.shape)), params)
        found, state = mine.update(grads, state)
        expected, theirs = (adam if step < 4 else sgd).update(grads, theirs)
        chex.assert_trees_all_close(found, expected, rtol=1e-4)
        assert state.hyperparams["learning_rate"] == np.float32(0.1 if step < 4 else 0.05)
    chex.assert_trees_all_equal(to_sgd(state, jnp.float32(9.0), jnp.array(False)), state)


SEEDS = (0, 1)
INFORMATIVE = (3, 8, 14, 19)
FINDER: dict[str, Any] = dict(
    hidden=(12,),
    dense_epochs=60,
    dense_patience=20,
    path_epochs=10,
    path_patience=3,
    learning_rate=1e-2,
    path_learning_rate=1e-2,
    path_start=0.1,
    path_multiplier=1.15,
)


def columns(shuffled: bool) -> tuple[np.ndarray, np.ndarray]:
    """300 rows of 24 columns, of which 4 tell the class, one of them by its square."""
    rng = np.random.default_rng(5)
    x = rng.normal(size=(300, 24))
    a, b, c, d = (x[:, column] for column in INFORMATIVE)
    y = (a + b - c + 1.5 * (d**2 - 1) > 0).astype(int)
    # A constant that the network would use as a bias.
    x[:, 6] = 3.0
    return x, rng.permutation(y) if shuffled else y


def fit(data: tuple[np.ndarray, np.ndarray], **options: Any) -> fsjax.FitResult:
    given = dict(
        seeds=SEEDS,
        num_epochs=2000,
        batch_size=10**6,
        shuffle=False,
        best_by="last",
        scaling="none",
        split="random",
        seed_axis="map",
    )
    return fsjax.fit(lassonet(4, **FINDER), data, **{**given, **options})


@pytest.fixture(scope="module")
def found() -> fsjax.FitResult:
    return fit(columns(shuffled=False))


def test_path_finds_the_informative_columns(found: fsjax.FitResult) -> None:
    assert all(set(row) == set(INFORMATIVE) for row in found.selected.tolist())
    assert found.metrics["embedded_accuracy"].min() > 80
    control = fit(columns(shuffled=True))
    assert np.isin(control.selected, INFORMATIVE).mean() <= 0.5
    assert control.metrics["embedded_accuracy"].max() < 60
    for result in (found, control):
        assert not np.isin(result.selected, 6).any()
        counts, done = (result.history[f"train/{n}"] for n in ("num_selected", "path_finished"))
        for row in range(len(SEEDS)):
            ran = ~np.isnan(counts[row])
            assert counts[row][ran][0] == 23 and counts[row][ran][-1] <= 4
            assert done[row][ran][0] == 0 and done[row][ran][-1] == 1
        at_end = jax.vmap(importances)(result.states)
        assert (np.isinf(at_end).sum(axis=1) <= 4).all()
        for scores, lambdas in zip(result.scores, np.asarray(at_end), strict=True):
            ordered = lambdas[np.argsort(scores, kind="stable")]
            assert (ordered[:-1] <= ordered[1:]).all()


def test_seeds_alone_and_together_are_equal(found: fsjax.FitResult) -> None:
    data = columns(shuffled=False)
    alone = fit(data, seeds=SEEDS[1:])
    vmapped = fit(data, seed_axis="vmap")
    for other, row in ((alone, 0), (vmapped, 1)):
        ran = ~np.isnan(other.history["train/lambda"][row])
        length = ran.sum()
        for name in ("train/lambda", "train/num_selected"):
            mine = found.history[name][1]
            np.testing.assert_allclose(mine[:length], other.history[name][row][ran], rtol=1e-5)
            assert np.isnan(mine[length:]).all()
        mine, theirs = (
            jax.tree.map(lambda leaf, at=at: leaf[at], result.states.params)
            for result, at in ((found, 1), (other, row))
        )
        chex.assert_trees_all_close(mine, theirs, rtol=1e-3, atol=1e-4)
        np.testing.assert_array_equal(found.selected[1], other.selected[row])


def test_minibatches() -> None:
    result = fit(columns(shuffled=False), batch_size=32, shuffle=True, seeds=(0,))
    assert set(result.selected[0].tolist()) == set(INFORMATIVE)
    assert result.metrics["embedded_accuracy"][0] > 75
    lambdas = np.unique(result.history["train/lambda"])
    expected = 0.1 * FINDER["path_multiplier"] ** np.arange(len(lambdas) - 1)
    np.testing.assert_allclose(lambdas[1:], expected, rtol=1e-4)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (dict(num_features=0), "num_features=0; choose a whole number, at least 1"),
        (dict(until=-1), "until=-1; choose a whole number, at least 0"),
        (dict(until=5), "until=5 but num_features=4"),
        (dict(hidden=()), "hidden is empty"),
        (dict(hidden=(0,)), "a width of hidden=0"),
        (dict(hierarchy=-1.0), "hierarchy=-1.0; choose 0 or more"),
        (dict(dense_epochs=0), "dense_epochs=0"),
        (dict(dense_patience=0), "dense_patience=0"),
        (dict(path_epochs=1.5), "path_epochs=1.5"),
        (dict(path_patience=0), "path_patience=0"),
        (dict(learning_rate=0.0), "learning_rate=0.0; choose a value above 0"),
        (dict(path_learning_rate=float("nan")), "path_learning_rate=nan"),
        (dict(path_start=0.0), "path_start=0.0; choose a value above 0"),
        (dict(momentum=1.0), "momentum=1.0"),
        (dict(path_multiplier=1.0), "path_multiplier=1.0; choose a value above 1"),
        (dict(tolerance=1.1), "tolerance=1.1"),
    ],
)
def test_bad_settings_are_named(options: dict, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        lassonet(**{"num_features": 4, **options})


def test_validation_has_to_be_by_the_loss() -> None:
    with pytest.raises(ConfigError, match="use best_by='last' in place of 'accuracy'"):
        lassonet(K).init(jax.random.key(0), spec_of("classification", best_by="accuracy"))


def test_no_more_is_carried_than_needed() -> None:
    state = lassonet(K).init(jax.random.key(0), spec_of("classification"))
    assert isinstance(state.extra, Path) and state.extra.chosen == ()
    kept = lassonet(K, until=0).init(jax.random.key(0), spec_of("classification"))
    chex.assert_trees_all_equal(kept.extra.chosen, kept.params)
