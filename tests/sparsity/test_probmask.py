"""ProbMask's projection, samples and schedule: brute force, statistics, finite differences."""

from __future__ import annotations

import itertools
from functools import partial

import chex
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from bad_calls import bad_calls, refuses
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from fsjax.sparsity.probmask import (
    Probable,
    density_at,
    draw_thresholds,
    init_probmask,
    layer_sparsity,
    likely_masks,
    mask_sparsity,
    masks_below,
    num_probabilities,
    probmask_optimizer,
    project,
    relaxed_masks,
    times_masks,
)

N = 4
few = settings(max_examples=60, deadline=None, derandomize=True)
jitted = jax.jit(project)
sampled = jax.jit(relaxed_masks)
schedule = jax.jit(density_at)
#: Round numbers, so that many draws have ties and entries that sit on a bound.
POINTS = hnp.arrays(
    np.float32,
    N,
    elements=st.one_of(
        st.integers(-4, 8).map(lambda n: np.float32(n / 4)),
        # XLA treats subnormal numbers as 0.
        st.floats(-1, 2, width=32, allow_subnormal=False),
    ),
)
BUDGETS = st.one_of(st.sampled_from([0.0, 0.5, 1.0, 2.0, 4.0]), st.floats(0, N))


def two_arrays(point: np.ndarray) -> dict[str, jax.Array]:
    return {"a/kernel": jnp.asarray(point[:2, None]), "b/kernel": jnp.asarray(point[2:])}


def one_array(values: dict[str, jax.Array]) -> np.ndarray:
    return np.concatenate([np.ravel(leaf) for leaf in values.values()]).astype(np.float64)


def by_active_sets(point: np.ndarray, budget: float) -> np.ndarray:
    """The nearest feasible point over all sets of active bounds."""
    point = point.astype(np.float64)
    best, smallest = None, np.inf
    for kinds in itertools.product((0.0, 1.0, None), repeat=len(point)):
        free = np.array([kind is None for kind in kinds])
        fixed = np.array([kind or 0.0 for kind in kinds])
        shifts = [0.0]
        if free.any():
            shifts.append((point[free].sum() + fixed.sum() - budget) / free.sum())
        for shift in shifts:
            candidate = np.where(free, point - shift, fixed)
            inside = (candidate > -1e-9).all() and (candidate < 1 + 1e-9).all()
            distance = ((candidate - point) ** 2).sum()
            if inside and candidate.sum() < budget + 1e-9 and distance < smallest:
                best, smallest = candidate, distance
    return best


@few
@given(POINTS, BUDGETS)
def test_projection_is_the_nearest_feasible_point(point: np.ndarray, budget: float) -> None:
    projected = one_array(jitted(two_arrays(point), budget))
    np.testing.assert_allclose(projected, by_active_sets(point, budget), atol=2e-6)


@few
@given(POINTS, BUDGETS)
def test_projection_keeps_the_budget_and_what_is_feasible(point: np.ndarray, budget: float) -> None:
    once = jitted(two_arrays(point), budget)
    reachable = min(budget, np.clip(point, 0, 1).astype(np.float64).sum())
    assert one_array(once).sum() == pytest.approx(reachable, abs=1e-6)
    assert all(((leaf >= 0) & (leaf <= 1)).all() for leaf in once.values())
    chex.assert_trees_all_close(jitted(once, budget), once, atol=1e-6)
    inside = two_arrays(np.clip(point, 0, 1))
    chex.assert_trees_all_equal(jitted(inside, float(N)), inside)


@pytest.mark.parametrize("density", [0.001, 0.03, 0.9])
def test_budget_of_a_large_network_is_met(density: float) -> None:
    rng = np.random.default_rng(1)
    values = {str(i): jnp.asarray(rng.beta(0.1, 1, (300, 500)), jnp.float32) + 0.3 for i in "ab"}
    budget = density * num_probabilities(values)
    projected = jitted(values, budget)
    expected = min(budget, np.clip(one_array(values), 0, 1).sum())
    assert one_array(projected).sum() == pytest.approx(expected, rel=1e-5)
    assert 1 - float(mask_sparsity(projected)) == pytest.approx(expected / 300_000, abs=1e-5)
    by_layer = layer_sparsity(projected)
    assert np.mean(list(by_layer.values())) == pytest.approx(
        float(mask_sparsity(projected)), abs=1e-5
    )


def test_projection_is_the_same_under_vmap() -> None:
    rng = np.random.default_rng(2)
    values = {"a": jnp.asarray(rng.normal(size=(3, 5, 4)), jnp.float32)}
    budgets = jnp.array([1.0, 5.0, 30.0])
    together = jax.vmap(project)(values, budgets)
    for row in range(3):
        alone = jitted(jax.tree.map(lambda leaf, row=row: leaf[row], values), budgets[row])
        chex.assert_trees_all_close(together["a"][row], alone["a"], atol=1e-6)


def test_samples_are_open_as_often_as_their_probability() -> None:
    s = {"a": jnp.array([0.0, 0.03, 0.3, 0.5]), "b": jnp.array([[0.9, 1.0]])}
    draws = 20_000
    many = {path: jnp.broadcast_to(values, (draws, *values.shape)) for path, values in s.items()}
    soft, sharp = sampled(jax.random.key(0), many, 1.0), sampled(jax.random.key(1), many, 0.1)
    drawn = jax.jit(lambda key: masks_below(draw_thresholds(key, many), many))(jax.random.key(2))
    for path, values in s.items():
        probability = np.asarray(values)
        margin = 4 * np.sqrt(probability * (1 - probability) / draws) + 1e-7
        assert set(np.unique(drawn[path])) == {0.0, 1.0}
        for sample in (drawn[path], soft[path], sharp[path]):
            share = np.mean(np.asarray(sample) > 0.5, axis=0)
            assert (abs(share - probability) <= margin).all()
        # Sharp samples are nearly 0 or 1, so their mean is close too; at temperature 1 it is not.
        assert (abs(np.mean(sharp[path], axis=0) - probability) <= 0.01).all()
    assert np.mean(soft["a"][:, 1]) > 0.06


def test_arrays_are_sampled_independently() -> None:
    s = {"a": jnp.full((400,), 0.5), "b": jnp.full((400,), 0.5)}
    for sample in (
        sampled(jax.random.key(0), s, 1.0),
        draw_thresholds(jax.random.key(0), s),
    ):
        assert abs(np.corrcoef(sample["a"], sample["b"])[0, 1]) < 0.2


@pytest.mark.parametrize("temperature", [1.0, 0.4])
def test_gradient_of_a_sample_against_differences(temperature: float) -> None:
    s = jnp.linspace(0.1, 0.9, 30)
    key = jax.random.key(3)

    def sample(s: jax.Array) -> jax.Array:
        return sampled(jax.random.clone(key), {"a": s}, temperature)["a"]

    step = 1e-3
    expected = (sample(s + step) - sample(s - step)) / (2 * step)
    gradient = jax.grad(lambda s: jnp.sum(sample(s)))(s)
    assert np.ptp(expected) > 0.5
    np.testing.assert_allclose(gradient, expected, rtol=0.02, atol=2e-3)


def test_certain_and_nearly_certain_weights() -> None:
    s = {"a": jnp.array([0.0, 1.0, 1e-38, 1e-12, 1 - 6e-8])}

    def sample(s: dict[str, jax.Array]) -> jax.Array:
        return sampled(jax.random.key(1), s, 0.03)["a"]

    np.testing.assert_allclose(sample(s), [0, 1, 0, 0, 1], atol=1e-6)
    slope = jax.grad(lambda s: jnp.sum(sample(s)))(s)["a"]
    assert np.isfinite(slope).all() and not slope[:3].any()


def test_likely_masks_are_the_largest_of_all_arrays() -> None:
    s = {"a": jnp.array([[0.9, 0.1], [0.4, 0.0]]), "b": jnp.array([0.35, 1.0])}
    masks = jax.jit(likely_masks)(s)
    # The sum is 2.75, so 3 stay open.
    chex.assert_trees_all_equal(
        masks, {"a": jnp.array([[1.0, 0.0], [1.0, 0.0]]), "b": jnp.array([0.0, 1.0])}
    )
    chex.assert_trees_all_equal(likely_masks(masks), masks)


@few
@given(st.floats(0.001, 1), st.floats(0, 0.99), st.floats(0, 0.99), st.sampled_from([1.0, 30.0]))
def test_density_falls_from_one(density: float, one: float, other: float, unit: float) -> None:
    start, end = sorted((one * unit, other * unit))
    ways = np.linspace(0, unit, 101)
    shares = np.asarray(schedule(ways, density, start, end))
    assert (np.diff(shares) <= 1e-6).all()
    # Away from rounding of the progress to float32.
    assert shares[ways < start - 1e-4 * unit] == pytest.approx(1.0, abs=1e-6)
    assert shares[ways > end + 1e-4 * unit] == pytest.approx(density, abs=1e-6)


@pytest.mark.slow
def test_masks_by_path_and_an_optimizer_for_each_part() -> None:
    weights = {"dense": {"kernel": jnp.ones((3, 2)), "bias": jnp.ones(2)}}
    params = init_probmask(weights, initial=0.5)
    assert set(params.probabilities) == {"dense/kernel"}
    masks = {"dense/kernel": jnp.zeros((3, 2))}
    masked = times_masks(params.weights, masks)
    assert not masked["dense"]["kernel"].any() and masked["dense"]["bias"].all()

    tx = probmask_optimizer(
        optax.sgd(1.0), num_epochs=2, steps_per_epoch=1, learning_rate=0.1, end_epoch=2
    )
    state, moves = tx.init(params), []
    for _ in range(3):
        grads = jax.tree.map(lambda leaf: jnp.full(leaf.shape, 10.0), params)
        updates, state = tx.update(grads, state, params)
        moves.append(updates)
    # 14 gradients of 10 are scaled down to a norm of 3; Adam's step equals its learning rate.
    np.testing.assert_allclose(moves[0].weights["dense"]["bias"], -3 / np.sqrt(14), rtol=1e-5)
    rates = [-float(move.probabilities["dense/kernel"][0, 0]) for move in moves]
    assert rates == pytest.approx([0.1, 0.05, 0.0], abs=1e-6)
    assert isinstance(updates, Probable)


@bad_calls(
    (lambda weights: init_probmask(weights, initial=0), "initial=0"),
    (lambda weights: init_probmask(weights, where=lambda *_: False), "there are kernel"),
    (lambda _: optimizer(learning_rate=0.0), "learning_rate"),
    (lambda _: optimizer(max_norm=-1.0), "max_norm"),
)
def test_mistakes_are_named(bad: tuple) -> None:
    refuses(lambda: bad[0]({"kernel": jnp.ones((2, 2))}), bad[1])


optimizer = partial(probmask_optimizer, optax.sgd(1.0), num_epochs=1, steps_per_epoch=1)
