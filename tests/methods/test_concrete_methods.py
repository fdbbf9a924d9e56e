"""The concrete selectors on data with known truth, compared with controls; and their options.

Covers ``fsjax.methods.shared.concrete``.
"""

from __future__ import annotations

import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from marks import slow_ids

import fsjax
from fsjax.data import load
from fsjax.errors import ConfigError
from fsjax.method import Spec


def easy_madelon():
    return load(
        "madelon_like",
        num_samples=600,
        num_features=50,
        num_informative=4,
        num_redundant=2,
        num_clusters_per_class=1,
        flip_y=0.0,
    )


@functools.cache
def fitted(name: str, shuffled: bool = False) -> fsjax.FitResult:
    """A fit to the table, or to the table with shuffled labels."""
    data = easy_madelon()
    y = np.random.default_rng(0).permutation(data.y) if shuffled else data.y
    method = getattr(fsjax.methods, name)(6, hidden=(32,))
    return fsjax.fit(method, (data.X, y), seeds=(0, 1, 2), num_epochs=60, batch_size=32)


def recovered(result: fsjax.FitResult) -> float:
    """Mean share of the selected columns that carry signal."""
    truth = easy_madelon().informative
    return float(np.isin(result.selected, truth).mean())


@slow_ids("cae", "gjsd")
@pytest.mark.parametrize("name", ["cae", "gjsd", "ip_cae"])
def test_finds_the_informative_columns(name: str) -> None:
    result, shuffled = fitted(name), fitted("ip_cae", True)
    assert recovered(result) >= 0.6
    assert recovered(shuffled) <= 0.4
    assert result.metrics["embedded_accuracy"].mean() >= 75
    assert shuffled.metrics["embedded_accuracy"].mean() < 65


@pytest.mark.slow
def test_random_columns_are_worse() -> None:
    result, control = fitted("ip_cae"), fitted("random_selection")
    assert recovered(control) <= 0.35
    accuracy, by_chance = (r.metrics["embedded_accuracy"].mean() for r in (result, control))
    assert accuracy >= by_chance + 10


#: Many seeds at once, as one in five or so ends with a column twice.
MANY = dict(seeds=tuple(range(12)), num_epochs=60, batch_size=32, seed_axis="vmap")


def number_of(result: fsjax.FitResult, columns: set[int]) -> int:
    """Seeds that selected exactly these."""
    return sum(set(row) == columns for row in result.selected.tolist())


@pytest.mark.slow
def test_order_of_the_columns_does_not_change_the_answer() -> None:
    rng = np.random.default_rng(1)
    x = rng.normal(size=(300, 20)).astype(np.float32)
    y = (x[:, 4] + x[:, 11] > 0).astype(int) + 2 * (x[:, 17] > 0)
    order = rng.permutation(20)
    place = np.argsort(order)
    method = fsjax.methods.ip_cae(3, hidden=(16,), learning_rate=3e-3)
    plain = fsjax.fit(method, (x, y), **MANY)
    permuted = fsjax.fit(method, (x[:, order], y), **MANY)
    assert number_of(plain, {4, 11, 17}) >= 8
    assert number_of(permuted, set(place[[4, 11, 17]].tolist())) >= 8


@pytest.mark.slow
def test_regression_and_reconstruction_learn() -> None:
    rng = np.random.default_rng(2)
    x = rng.normal(size=(300, 12)).astype(np.float32)
    y = 2 * x[:, 3] - x[:, 8]
    method = fsjax.methods.ip_cae(2, hidden=(16,), learning_rate=1e-2)
    result = fsjax.fit(method, (x, y), task="regression", **MANY)
    # By chance it is a sixty-sixth of them.
    assert number_of(result, {3, 8}) >= 6 and (result.selected == 3).mean() > 0.4
    is_exact = [set(row) == {3, 8} for row in result.selected.tolist()]
    assert result.metrics["r2"][is_exact].min() > 0.9

    # Ten columns that are copies of two: two columns are enough to rebuild all.
    copies = np.repeat(x[:, :2], 5, axis=1) + 0.01 * x[:, :10]
    result = fsjax.fit(method, (copies, None), task="reconstruction", **MANY)
    assert result.metrics["mse"].max() < 0.05
    assert all({c // 5 for c in row} == {0, 1} for row in result.selected.tolist())


def five_rows() -> fsjax.Batch:
    x = jax.random.normal(jax.random.key(1), (5, 8))
    return fsjax.Batch(x, jnp.array([0, 1, 2, 0, 1]), jnp.ones(5))


@pytest.mark.slow
def test_identity_map_trains_like_cae_when_it_is_frozen() -> None:
    # W = I and no bias make the logits of IP-CAE those of CAE, so the losses are equal too.
    spec = Spec(8, 3, "classification", 20, 5, 2, steps_per_epoch=4)
    direct = fsjax.methods.cae(3, hidden=(4,), noise="row")
    indirect = fsjax.methods.ip_cae(3, hidden=(4,), noise="row", bias=False)
    batch = five_rows()
    state, other = (m.init(jax.random.key(0), spec, batch) for m in (direct, indirect))
    selector = {"psi": state.params["selector"]["logits"], "kernel": jnp.eye(8)}
    other = other.replace(params={**state.params, "selector": selector})
    losses = [
        method.loss(s.params, s, batch, jax.random.key(2))[0]
        for method, s in ((direct, state), (indirect, other))
    ]
    chex.assert_trees_all_equal(*losses)
    chex.assert_trees_all_equal(direct.predict(state, batch.x), indirect.predict(other, batch.x))


def test_a_large_epsilon_shortens_the_steps_of_small_gradients() -> None:
    # The first step of Adam is the rate times g / (g + epsilon).
    optimizer = fsjax.methods.cae(2, learning_rate=0.1, adam_epsilon=3e-3).optimizer
    gradient = jnp.array(1e-3)
    step, _ = optimizer.update(gradient, optimizer.init(gradient))
    assert float(step) == pytest.approx(-0.1 / 4, rel=1e-4)


@pytest.mark.slow
def test_gjsd_lowers_the_loss_by_lambda_times_the_divergence() -> None:
    spec = Spec(8, 3, "classification", 20, 5, 2, steps_per_epoch=4)
    batch = five_rows()
    plain, regular = fsjax.methods.cae(3), fsjax.methods.cae(3, gjsd_weight=0.3)
    states = [method.init(jax.random.key(0), spec, batch) for method in (plain, regular)]
    logits = 3 * jnp.eye(3, 8)
    states = [s.replace(params={**s.params, "selector": {"logits": logits}}) for s in states]
    losses = [
        method.loss(s.params, s, batch, jax.random.key(2))[0]
        for method, s in zip((plain, regular), states, strict=True)
    ]
    difference = float(losses[0] - losses[1])
    assert difference == pytest.approx(0.3 * float(fsjax.concrete.gjsd(logits)), rel=1e-4)


def test_unknown_method_is_named_with_the_nearest() -> None:
    with pytest.raises(ConfigError, match="did you mean 'ip_cae'"):
        fsjax.methods.get_method("ipcae")
