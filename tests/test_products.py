"""Products in the form that is fastest are the plain ones."""

from __future__ import annotations

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fsjax.products import few_rows_times

sizes = st.integers(1, 9)


def factors(*shape: int) -> tuple[jax.Array, jax.Array]:
    rng = np.random.default_rng(shape)
    left, right = rng.normal(size=shape[:2]), rng.normal(size=shape[1:])
    return jnp.asarray(left, jnp.float32), jnp.asarray(right, jnp.float32)


@settings(max_examples=10, deadline=None)
@given(sizes, sizes, sizes)
def test_value_and_gradients_are_those_of_the_product(k: int, p: int, d: int) -> None:
    left, right = factors(k, p, d)
    value, pull = jax.vjp(few_rows_times, left, right)
    chex.assert_trees_all_close(value, left @ right, rtol=1e-4, atol=1e-5)
    grad = jnp.cos(value)
    expected = grad @ right.T, left.T @ grad
    chex.assert_trees_all_close(pull(grad), expected, rtol=1e-4, atol=1e-5)


def test_over_seeds() -> None:
    left, right = (jnp.stack([x, -2 * x, 3 + x]) for x in factors(3, 4, 5))
    found = jax.vmap(few_rows_times)(left, right)
    chex.assert_trees_all_close(found, left @ right, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("backend, plain", [("cpu", False), ("gpu", True)])
def test_the_form_is_kept_by_the_compiler_on_cpus_only(
    monkeypatch: pytest.MonkeyPatch, backend: str, plain: bool
) -> None:
    monkeypatch.setattr(jax, "default_backend", lambda: backend)
    compiled = jax.jit(lambda *both: few_rows_times(*both)).lower(*factors(50, 64, 70)).compile()
    assert ("lhs_contracting_dims={1}" in compiled.as_text()) == plain
