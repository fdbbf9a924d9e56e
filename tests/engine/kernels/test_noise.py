"""Fused Gaussian noise is that of jax.random."""

from __future__ import annotations

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import erfinv

from fsjax.engine.kernels.noise import _erf_inv, normal


@pytest.mark.parametrize("shape", [(4, 3, 5), (2, 7), (1,), (300, 70)])
def test_noise_equals_jax_random(shape: tuple[int, ...]) -> None:
    both = jax.jit(lambda a, b: (normal(a, shape), jax.random.normal(b, shape)))
    for seed in (0, 7, 2**31):
        found, expected = both(jax.random.key(seed), jax.random.key(seed))
        chex.assert_trees_all_close(found, expected, rtol=1e-5, atol=1e-6)
    assert jnp.isfinite(found).all()


def test_seeds_have_their_own_noise() -> None:
    keys = jax.random.split(jax.random.key(1), 3)
    draw = jax.jit(lambda key: jax.random.normal(key, (40, 50)))
    expected = np.stack([draw(key) for key in keys])
    found = jax.jit(jax.vmap(lambda key: normal(key, (40, 50))))(jax.random.clone(keys))
    chex.assert_trees_all_close(found, expected, rtol=1e-5, atol=1e-6)


def test_accelerators_draw_as_jax_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    found = normal(jax.random.key(0), (3, 4))
    chex.assert_trees_all_equal(found, jax.random.normal(jax.random.key(0), (3, 4)))


def test_the_inverse_error_function_is_exact_to_rounding() -> None:
    inside = 1.0 - np.logspace(-7, 0, 4000, dtype=np.float32)
    x = np.concatenate([inside, -inside, np.float32([1e-30, -1e-6])])
    np.testing.assert_allclose(_erf_inv(jnp.asarray(x)), erfinv(x.astype(float)), rtol=6e-7)
