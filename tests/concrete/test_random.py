"""The noise of one row is that of jax.random for the whole array."""

from __future__ import annotations

import chex
import jax
import jax.extend.random
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from marks import slow_ids
from scipy import stats

from fsjax.engine.kernels.random import generator, gumbel_row, key_words, threefry_2x32


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 3))
def test_threefry_equals_the_generator_of_jax(first: int, second: int, counter: int) -> None:
    key = jnp.array([first, second], jnp.uint32)
    counts = jnp.array([counter, counter + 1], jnp.uint32)
    expected = jax.extend.random.threefry_2x32(key, counts)
    words = threefry_2x32(key, counts[:1], counts[1:])
    chex.assert_trees_all_equal(jnp.concatenate(words), expected)


@pytest.mark.parametrize("width", [8, 32])
@pytest.mark.parametrize("shape", [(), (7,), (40, 50)])
def test_the_unrolled_generator_draws_what_jax_draws(width: int, shape: tuple[int, ...]) -> None:
    def draw(impl: object) -> tuple[jax.Array, jax.Array]:
        keys = jax.random.split(jax.random.key(2**32 - 1, impl=impl), 3)
        folded = jax.vmap(jax.random.fold_in)(keys, jnp.arange(3))
        words = jax.vmap(key_words)(jax.random.clone(folded))
        return jax.vmap(lambda key: jax.random.bits(key, shape, f"uint{width}"))(folded), words

    assert generator() != "threefry2x32"
    chex.assert_trees_all_equal(draw(generator()), draw("threefry2x32"))


@slow_ids("shape1")
@pytest.mark.parametrize("shape", [(4, 3, 5), (2, 7), (3, 1, 1)])
def test_rows_equal_jax_random_gumbel(key: jax.Array, shape: tuple[int, ...]) -> None:
    words = key_words(key)
    noise = jnp.stack([gumbel_row(words, jnp.asarray(i), shape[1:]) for i in range(shape[0])])
    chex.assert_trees_all_close(noise, jax.random.gumbel(jax.random.clone(key), shape), rtol=1e-6)


def test_noise_is_standard_gumbel(key: jax.Array) -> None:
    noise = np.asarray(gumbel_row(key_words(key), jnp.asarray(3), (200, 100))).ravel()
    assert np.isfinite(noise).all()
    assert stats.kstest(noise, stats.gumbel_r.cdf).pvalue > 1e-3
    # Rows are independent of each other.
    other = np.asarray(gumbel_row(key_words(jax.random.clone(key)), jnp.asarray(4), (200, 100)))
    assert abs(np.corrcoef(noise, other.ravel())[0, 1]) < 0.03


def test_keys_of_other_generators_are_accepted() -> None:
    words = key_words(jax.random.key(0, impl="rbg"))
    chex.assert_shape(words, (2,))
    assert words.dtype == jnp.uint32
