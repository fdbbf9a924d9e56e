"""AutoNFS: its loss and gates against NumPy, and how many columns it opens."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fsjax
from fsjax.engine.loop import init_state, train_step
from fsjax.method import Batch, Method, Spec, TrainState
from fsjax.methods.auto_nfs import probability_of_any
from fsjax.methods.shared.network import first_kernel, with_kernel

N, D, STEPS, EPOCH = 8, 5, 4, 3
SPEC = Spec(D, 2, "classification", N, N, num_epochs=6, steps_per_epoch=STEPS)
LOGITS = np.array([2.0, -0.1, -0.8, -2.5, -9.0])


def begun(**options) -> tuple[Method, TrainState, Batch]:
    """A state whose logits are :data:`LOGITS`, in the middle of a run."""
    method = fsjax.methods.auto_nfs(hidden=(4,), embedding_dim=3, **options)
    x = np.random.default_rng(0).normal(size=(N, D)).astype(np.float32)
    batch = Batch(jnp.asarray(x), jnp.asarray(np.arange(N) % 2), jnp.ones(N))
    start = jax.jit(functools.partial(init_state, method, SPEC))
    state = start(np.uint32(0), batch, jnp.ones(D, bool))
    kernel = np.random.default_rng(1).normal(size=(3, D)).astype(np.float32)
    bias = LOGITS - np.asarray(state.extra["embedding"]) @ kernel
    mask = {"kernel": jnp.asarray(kernel), "bias": jnp.asarray(bias, jnp.float32)}
    params = {**state.params, "mask": mask}
    return method, state.replace(params=params, epoch=jnp.int32(EPOCH)), batch


def test_loss_against_numpy() -> None:
    options = {"strength": 0.7, "temperature": 1.5, "decay": 0.9}
    method, state, batch = begun(**options)
    key = jax.random.split(jax.random.key(5))[0]
    noise = np.asarray(jax.random.gumbel(key, (D,)), np.float64)
    mask = 1 / (1 + np.exp(-(LOGITS + noise) / (1.5 * 0.9**EPOCH)))
    loss, aux = jax.jit(method.loss)(state.params, state, batch, jax.random.key(5))
    # The same network without a mask, on masked rows; all of its columns are open.
    params = {**state.params, "mask": {"kernel": jnp.zeros((3, D)), "bias": jnp.full(D, 99.0)}}
    masked = jnp.asarray(np.asarray(batch.x) * mask, jnp.float32)
    outputs = method.predict(state.replace(params=params), masked)
    wanted = state.spec.loss_of(outputs, batch.y, batch.weight) + 0.7 * mask.mean()
    assert float(loss) == pytest.approx(float(wanted), rel=1e-5)
    assert "stats" in aux


def test_gradients_are_finite_however_low_the_temperature() -> None:
    method, state, batch = begun(decay=0.5)
    state = state.replace(epoch=jnp.int32(150))
    loss = jax.jit(jax.value_and_grad(method.loss, has_aux=True))
    slopes = loss(state.params, state, batch, jax.random.key(5))[1]
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(slopes))


@pytest.mark.parametrize(("opened", "number"), [("by_masks", 3), ("by_logit", 1)])
def test_predictions_use_the_open_columns(opened: str, number: int) -> None:
    """By four masks, a column is open if its logit is at least log(log(2) / 4) = -1.75."""
    method, state, batch = begun(opened=opened)
    selection = method.select(state)
    gates = np.asarray(selection.gates)
    assert (gates >= 0.5).tolist() == [i < number for i in range(D)]
    np.testing.assert_allclose(selection.scores, LOGITS, atol=1e-5)
    kernel = jnp.where((gates >= 0.5)[:, None], first_kernel(state.params["weights"]), 0.0)
    closed = {**state.params, "weights": with_kernel(state.params["weights"], kernel)}
    np.testing.assert_allclose(
        method.predict(state, batch.x), method.predict(state.replace(params=closed), batch.x)
    )
    other = batch.x.at[:, number:].add(3.0)
    np.testing.assert_array_equal(method.predict(state, batch.x), method.predict(state, other))
    assert (method.predict(state, batch.x) != method.predict(state, batch.x + 1.0)).any()


def test_probability_of_any_is_that_of_draws() -> None:
    noise = np.random.default_rng(0).gumbel(size=(20_000, STEPS, D))
    drawn = (LOGITS + noise > 0).any(axis=1).mean(axis=0)
    np.testing.assert_allclose(probability_of_any(jnp.asarray(LOGITS), STEPS), drawn, atol=0.01)


def test_mask_and_network_have_rates_of_their_own() -> None:
    method, state, batch = begun(mask_learning_rate=0.02, learning_rate=0.001)
    step = jax.jit(functools.partial(train_step, method))
    after, _ = step(state, batch, jax.random.key(0))
    updates = jax.tree.map(jnp.subtract, after.params, state.params)
    # The first step of Adam has the length of the rate.
    assert float(jnp.max(jnp.abs(updates["mask"]["kernel"]))) == pytest.approx(0.02, rel=1e-3)
    assert float(jnp.max(jnp.abs(first_kernel(updates["weights"])))) == pytest.approx(1e-3, rel=0.1)


@pytest.mark.slow
def test_the_number_of_columns_follows_from_the_data() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 15)).astype(np.float32)
    options = {"num_epochs": 60, "batch_size": 32, "seeds": (0, 1), "min_steps_per_epoch": 1}
    method = fsjax.methods.auto_nfs(learning_rate=3e-3)
    found = fsjax.fit(method, (x, (x[:, 2] - x[:, 9] > 0).astype(int)), **options)
    gates = found.gates >= 0.5
    assert gates[:, [2, 9]].all() and (gates.sum(axis=1) <= 4).all()
    assert found.num_features == 2
    chance = fsjax.fit(method, (x, rng.permutation(300) % 2), **options)
    assert not (chance.gates >= 0.5).all(axis=1).any()
    assert (chance.gates >= 0.5).sum() < gates.sum() + 4
