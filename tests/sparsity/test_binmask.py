"""BinMask on the parameters of any network, compared with Algorithm 1 in NumPy."""

from __future__ import annotations

import math

import chex
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import linen as nn
from hypothesis import given, settings
from hypothesis import strategies as st

from fsjax import sparsity
from fsjax.errors import ConfigError
from fsjax.sparsity.schedules import active_between, clip_params, cosine_by_epoch


@settings(deadline=None, max_examples=30)
@given(st.lists(st.floats(-2, 2, width=32, allow_subnormal=False), min_size=6, max_size=6))
def test_quantize_is_a_step_with_the_gradient_of_the_identity(values: list[float]) -> None:
    latents = jnp.array(values, jnp.float32)
    weights = jnp.arange(1.0, len(values) + 1)
    mask, gradient = jax.value_and_grad(lambda b: jnp.sum(weights * sparsity.quantize(b)))(latents)
    expected = (np.array(values) >= 0).astype(np.float32)
    chex.assert_trees_all_close(mask, np.sum(weights * expected), rtol=1e-6)
    chex.assert_trees_all_equal(gradient, weights)
    chex.assert_trees_all_equal(sparsity.quantize(latents), expected)


def test_quantize_under_vmap_and_jit() -> None:
    latents = jnp.array([[0.0, -0.1], [0.2, -1e-30]])
    gradient = jax.jit(jax.vmap(jax.grad(lambda b: jnp.sum(3.0 * sparsity.quantize(b)))))(latents)
    chex.assert_trees_all_equal(gradient, jnp.full((2, 2), 3.0))


def small_network() -> tuple[nn.Module, sparsity.Masked]:
    model = nn.Sequential([nn.Conv(3, (2, 2)), lambda x: x.reshape(len(x), -1), nn.Dense(2)])
    params = model.init(jax.random.key(0), jnp.ones((1, 4, 4, 1)))["params"]
    return model, sparsity.init_binmask(params, initial=0.2)


def test_masks_only_what_was_chosen() -> None:
    _, params = small_network()
    assert sorted(params.latents) == ["layers_0/kernel", "layers_2/kernel"]
    chex.assert_trees_all_equal(sparsity.masked_weights(params), params.weights)
    closed = params._replace(latents=jax.tree.map(lambda b: b - 1, params.latents))
    masked = sparsity.masked_weights(closed)
    assert not np.any(masked["layers_0"]["kernel"])
    chex.assert_trees_all_equal(masked["layers_2"]["bias"], params.weights["layers_2"]["bias"])
    assert sparsity.layer_sparsity(closed.latents) == dict.fromkeys(params.latents, 1.0)

    only = sparsity.init_binmask(params.weights, lambda path, leaf: path[0] == "layers_2")
    assert sorted(only.latents) == ["layers_2/bias", "layers_2/kernel"]
    with pytest.raises(ConfigError, match="chooses no parameter; there are layers_0/bias"):
        sparsity.init_binmask(params.weights, lambda path, leaf: False)
    with pytest.raises(ConfigError, match="initial=-0.1; choose a value from 0"):
        sparsity.init_binmask(params.weights, initial=-0.1)


def test_gradients_of_masks_and_weights() -> None:
    weights = {"kernel": jnp.array([[2.0, -3.0]]), "bias": jnp.array([1.0, 1.0])}
    params = sparsity.Masked(weights, {"kernel": jnp.array([[0.5, -0.5]])})
    upstream = jnp.array([[10.0, 20.0]])

    def loss(params: sparsity.Masked) -> jax.Array:
        masked = sparsity.masked_weights(params)
        return jnp.sum(upstream * masked["kernel"]) + 0.25 * sparsity.mask_penalty(params.latents)

    grads = jax.grad(loss)(params)
    # Weights get the masked gradient; masks get weight times gradient, and open ones lambda too.
    chex.assert_trees_all_close(grads.weights["kernel"], jnp.array([[10.0, 0.0]]))
    chex.assert_trees_all_close(
        grads.latents["kernel"], jnp.array([[2.0 * 10.0 + 0.25, -3.0 * 20.0]])
    )
    chex.assert_trees_all_close(sparsity.mask_penalty(params.latents), 0.5)


def algorithm_1(
    gradients: np.ndarray, epochs: int, steps: int, initial: float, clip: float
) -> np.ndarray:
    """Latent values after each step of lines 14 to 31, from the gradients of one mask."""
    frozen = int(0.1 * epochs)
    b, m, v, count, path = initial, 0.0, 0.0, 0, []
    for epoch in range(epochs):
        for step in range(steps):
            if epoch >= frozen:
                way = (epoch - frozen) / (epochs - frozen - 1)
                rate = 1e-5 + (1e-3 - 1e-5) / 2 * (math.cos(math.pi * way) + 1)
                g = gradients[epoch * steps + step]
                count += 1
                m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
                b -= rate * (m / (1 - 0.9**count)) / (math.sqrt(v / (1 - 0.999**count)) + 1e-8)
                b = min(max(b, -clip), clip)
            path.append(b)
    return np.array(path)


def test_optimizer_follows_algorithm_1() -> None:
    epochs, steps, clip = 20, 12, 0.03
    gradients = np.random.default_rng(0).normal(0.8, 1.0, epochs * steps)
    tx = sparsity.binmask_optimizer(
        optax.sgd(0.5), num_epochs=epochs, steps_per_epoch=steps, clip=clip
    )
    params = sparsity.Masked({"kernel": jnp.ones((1, 1))}, {"kernel": jnp.full((1, 1), 0.02)})
    state, path, weights = tx.init(params), [], []
    update = jax.jit(tx.update)
    for gradient in gradients:
        grads = jax.tree.map(lambda leaf, g=gradient: jnp.full_like(leaf, g), params)
        updates, state = update(grads, state, params)
        params = optax.apply_updates(params, updates)
        path.append(float(params.latents["kernel"][0, 0]))
        weights.append(float(params.weights["kernel"][0, 0]))
    expected = algorithm_1(gradients, epochs, steps, 0.02, clip)
    np.testing.assert_allclose(path, expected, rtol=1e-3, atol=1e-6)
    assert min(path) < -clip + 1e-4 and max(map(abs, path)) <= clip + 1e-6
    # The optimiser of the weights does not see the masks.
    np.testing.assert_allclose(weights, 1.0 - 0.5 * np.cumsum(gradients), rtol=1e-4)


def test_masks_are_frozen_for_the_share_of_the_epochs() -> None:
    """Whole ones, though 0.29 x 100 is below 29 in floats."""
    tx = sparsity.binmask_optimizer(optax.sgd(0.5), num_epochs=100, steps_per_epoch=1, warmup=0.29)
    params = sparsity.Masked({"w": jnp.ones((1, 1))}, {"w": jnp.ones((1, 1))})
    state, update = tx.init(params), jax.jit(tx.update)
    moves = []
    for _ in range(30):
        updates, state = update(params, state, params)
        moves.append(float(updates.latents["w"][0, 0]))
    assert not any(moves[:29]) and moves[29]


def test_rates_fall_from_epoch_to_epoch() -> None:
    schedule = cosine_by_epoch(1e-3, 1e-5, 5, 3)
    rates = np.array([schedule(step) for step in range(18)])
    np.testing.assert_allclose(rates[[0, 14, 17]], [1e-3, 1e-5, 1e-5], rtol=1e-5)
    assert np.all(np.diff(rates[::3][:5]) < 0)
    assert np.all(rates[0:3] == rates[0])


def test_masks_rest_at_the_end_for_fine_tuning() -> None:
    tx = active_between(optax.adam(0.1), 2, 4)
    params, gradient = jnp.zeros(()), jnp.ones(())
    state, seen = tx.init(params), []
    for _ in range(6):
        updates, state = tx.update(gradient, state, params)
        params = optax.apply_updates(params, updates)
        seen.append(float(params))
    np.testing.assert_allclose(seen, [0, 0, -0.1, -0.2, -0.2, -0.2], atol=1e-5)


@settings(deadline=None, max_examples=30)
@given(st.floats(-5, 5, width=32), st.floats(-5, 5, width=32))
def test_clipped_parameters_stay_in_their_box(value: float, update: float) -> None:
    params = jnp.clip(jnp.float32(value), -1, 1)
    tx = clip_params(1.0)
    moves, _ = tx.update(jnp.float32(update), tx.init(params), params)
    expected = np.clip(np.float32(params) + np.float32(update), -1, 1)
    np.testing.assert_allclose(params + moves, expected, atol=1e-6)


@pytest.mark.parametrize(
    ("options", "message"),
    [({"warmup": 1.0}, "warmup=1.0"), ({"clip": 0.0}, "clip=0.0")],
)
def test_options_out_of_range(options: dict[str, float], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        sparsity.binmask_optimizer(optax.sgd(0.1), num_epochs=2, steps_per_epoch=1, **options)
