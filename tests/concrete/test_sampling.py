"""Gumbel-Softmax sampling and the selector layer against NumPy versions of eq. 1 and 2."""

from __future__ import annotations

import chex
import jax
import jax.numpy as jnp
import jax.test_util
import numpy as np
import pytest

from fsjax.concrete import sampling
from fsjax.engine.kernels.random import key_words

B, K, D = 5, 3, 7

gumbel_softmax = jax.jit(sampling.gumbel_softmax)
select = jax.jit(sampling.select, static_argnums=4)


def numpy_samples(logits: np.ndarray, noise: np.ndarray, temperature: float) -> np.ndarray:
    """Eq. 1, element by element, in float64."""
    samples = np.zeros(noise.shape)
    for index in np.ndindex(noise.shape[:-1]):
        k = index[-1]
        powers = np.exp((np.float64(logits[k]) + noise[index]) / temperature)
        samples[index] = powers / powers.sum()
    return samples


@pytest.fixture
def inputs() -> tuple[jax.Array, jax.Array]:
    rng = np.random.default_rng(0)
    return jnp.asarray(rng.normal(size=(K, D)), jnp.float32), jnp.asarray(
        rng.normal(size=(B, D)), jnp.float32
    )


@pytest.mark.parametrize("temperature", [0.3, 1.0, 10.0])
def test_gumbel_softmax_is_equation_1(key: jax.Array, inputs, temperature: float) -> None:
    logits, _ = inputs
    samples = gumbel_softmax(key, logits, temperature)
    noise = np.asarray(jax.random.gumbel(jax.random.clone(key), (K, D)))
    chex.assert_trees_all_close(
        np.asarray(samples, np.float64), numpy_samples(logits, noise, temperature), rtol=1e-4
    )


@pytest.mark.parametrize("temperature", [0.3, 1.0, 10.0])
def test_noise_per_row_is_equations_1_and_2(key: jax.Array, inputs, temperature: float) -> None:
    logits, x = inputs
    selected = select(key, logits, x, jnp.float32(temperature), "row")
    noise = np.asarray(jax.random.gumbel(jax.random.clone(key), (B, K, D)))
    samples = numpy_samples(logits, noise, temperature)
    expected = np.einsum("bkd,bd->bk", samples, np.asarray(x, np.float64))
    chex.assert_trees_all_close(np.asarray(selected, np.float64), expected, rtol=1e-4, atol=1e-6)


def test_samples_of_float32_logits_are_float32_where_64_bits_are_enabled(inputs) -> None:
    with jax.enable_x64(True):
        assert sampling.gumbel_softmax(jax.random.key(0), inputs[0], 0.5).dtype == jnp.float32


def test_unknown_noise_is_refused(key: jax.Array, inputs) -> None:
    with pytest.raises(ValueError, match="row, batch"):
        sampling.select(key, *inputs, 1.0, "column")


def test_temperature_towards_0_gives_one_hot_and_towards_infinity_uniform(
    key: jax.Array, inputs
) -> None:
    logits, _ = inputs
    noise = jax.random.gumbel(jax.random.clone(key), (K, D))
    cold = gumbel_softmax(key, logits, 1e-4)
    chex.assert_trees_all_close(cold, jax.nn.one_hot(jnp.argmax(logits + noise, -1), D), atol=1e-6)
    hot = gumbel_softmax(jax.random.clone(key), logits, 1e6)
    chex.assert_trees_all_close(hot, jnp.full((K, D), 1 / D), atol=1e-5)


def test_frequency_of_the_cold_choice_is_the_softmax_of_the_logits(inputs) -> None:
    # The Gumbel-max property; a wrong sign or a missing log fails it.
    logits, _ = inputs
    keys = jax.random.split(jax.random.key(1), 4000)
    samples = jax.jit(jax.vmap(lambda k: sampling.gumbel_softmax(k, logits, 1e-3)))(keys)
    chex.assert_trees_all_close(samples.mean(0), jax.nn.softmax(logits), atol=0.03)


def naive(words: jax.Array, logits: jax.Array, x: jax.Array, temperature: jax.Array) -> jax.Array:
    noise = jax.random.gumbel(jax.random.wrap_key_data(words), (x.shape[0], *logits.shape))
    samples = jax.nn.softmax((logits + noise) / temperature, axis=-1)
    return jnp.einsum("bkd,bd->bk", samples, x)


@pytest.mark.parametrize("keep", [True, False], ids=["kept", "drawn again"])
@pytest.mark.parametrize("backend", ["cpu", "gpu"])
def test_gradients_equal_those_of_the_plain_formula(
    key: jax.Array, inputs, monkeypatch: pytest.MonkeyPatch, keep: bool, backend: str
) -> None:
    monkeypatch.setattr(sampling, "KEEP_LIMIT", 2**26 if keep else 0)
    monkeypatch.setattr(jax, "default_backend", lambda: backend)
    logits, x = inputs
    words, temperature = key_words(key), jnp.float32(0.8)
    weights = jnp.arange(B * K, dtype=jnp.float32).reshape(B, K) - 4.0

    def objective(function):
        return lambda logits, x: jnp.sum(weights * jnp.sin(function(words, logits, x, temperature)))

    gradients = jax.grad(objective(sampling.select_per_row), argnums=(0, 1))(logits, x)
    expected = jax.grad(objective(naive), argnums=(0, 1))(logits, x)
    chex.assert_trees_all_close(gradients, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("keep", [True, False])
def test_gradients_have_the_types_of_logits_and_rows(
    key: jax.Array, inputs, keep: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sampling, "KEEP_LIMIT", 2**26 if keep else 0)
    words = key_words(key)

    def gradients(*types: type) -> tuple[jax.Array, ...]:
        def total(logits: jax.Array, x: jax.Array) -> jax.Array:
            return sampling.select_per_row(words, logits, x, jnp.float32(0.7)).sum()

        arrays = [array.astype(kind) for array, kind in zip(inputs, types, strict=True)]
        return jax.jit(jax.grad(total, (0, 1)))(*arrays)

    expected = gradients(jnp.float32, jnp.float32)
    for types in [(jnp.bfloat16, jnp.float32), (jnp.float32, jnp.bfloat16)]:
        found = gradients(*types)
        assert [gradient.dtype for gradient in found] == [jnp.dtype(kind) for kind in types]
        chex.assert_trees_all_close(
            [gradient.astype(jnp.float32) for gradient in found], list(expected), atol=0.03
        )


def test_vmapped_seeds_have_their_own_noise(inputs) -> None:
    logits, x = inputs
    keys = jax.random.split(jax.random.key(3), 4)
    words = jax.vmap(key_words)(keys)

    def value_and_grad(words: jax.Array) -> tuple[jax.Array, jax.Array]:
        z, pull = jax.vjp(
            lambda logits: sampling.select_per_row(words, logits, x, jnp.float32(1.0)), logits
        )
        return z, pull(jnp.ones_like(z))[0]

    together = jax.vmap(value_and_grad)(words)
    alone = [value_and_grad(w) for w in words]
    chex.assert_trees_all_close(
        together, jax.tree.map(lambda *leaves: jnp.stack(leaves), *alone), rtol=1e-5, atol=1e-6
    )
    assert len({float(z[0, 0]) for z in together[0]}) == 4


def test_discrete_selection_feeds_duplicates_twice() -> None:
    logits = jnp.array([[0.0, 2.0, 1.0], [3.0, 0.0, 1.0], [0.0, 9.0, 1.0]])
    x = jnp.array([[1.0, 2.0, 3.0]])
    chex.assert_trees_all_equal(sampling.select_discrete(logits, x), jnp.array([[2.0, 1.0, 2.0]]))
