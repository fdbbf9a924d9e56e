"""Products in the form that is fastest are the plain ones.

Covers ``fsjax.engine.kernels.bfloat16``.
"""

from __future__ import annotations

from collections.abc import Callable

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fsjax
from fsjax.engine.kernels.products import WIDE_MAP, few_rows_times, product

sizes = st.integers(1, 9)


def factors(*shape: int) -> tuple[jax.Array, jax.Array]:
    rng = np.random.default_rng(shape)
    left, right = rng.normal(size=shape[:2]), rng.normal(size=shape[1:])
    return jnp.asarray(left, jnp.float32), jnp.asarray(right, jnp.float32)


@pytest.mark.slow
@settings(max_examples=10, deadline=None)
@given(sizes, sizes, sizes)
def test_value_and_gradients_are_those_of_the_product(k: int, p: int, d: int) -> None:
    left, right = factors(k, p, d)
    value, pull = jax.vjp(few_rows_times, left, right)
    chex.assert_trees_all_close(value, left @ right, rtol=1e-4, atol=1e-5)
    grad = jnp.cos(value)
    expected = grad @ right.T, left.T @ grad
    chex.assert_trees_all_close(pull(grad), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("p, wide", [(6, True), (7, False)])
def test_gradients_of_a_wide_factor(p: int, wide: bool) -> None:
    left, right = factors(3, p, 6 * WIDE_MAP)
    value, pull = jax.vjp(few_rows_times, left, right)
    expected = value @ right.T, left.T @ value
    chex.assert_trees_all_close(pull(value), expected, rtol=1e-4, atol=1e-4)
    assert str(jax.make_jaxpr(pull)(value)).count("optimization_barrier") == wide


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


@pytest.fixture
def rounding():
    with jax.default_matmul_precision("bfloat16"):
        yield


def rounded(x: jax.Array) -> np.ndarray:
    """The nearest numbers of 8 binary digits, ties to even, from the definition."""
    mantissa, exponent = np.frexp(np.asarray(x, np.float64))
    return np.ldexp(np.rint(mantissa * 256) / 256, exponent)


@pytest.mark.usefixtures("rounding")
@pytest.mark.parametrize("form", [product, few_rows_times])
@pytest.mark.parametrize("turned", [False, True], ids=["by rows", "by columns"])
@pytest.mark.parametrize("shape", [(7, 2, 3), (50, 64, 70), (1, 9, 1), (16, 33, 1)])
def test_factors_are_rounded_forwards_and_backwards(
    form: Callable[..., jax.Array], turned: bool, shape: tuple[int, int, int]
) -> None:
    left, right = factors(*shape)

    def value_and_gradients(left: jax.Array, right: jax.Array) -> tuple[jax.Array, ...]:
        # In memory the other way round, where XLA finds no kernel of its own accord.
        given = (left.T, right.T) if turned else (left, right)
        value, pull = jax.vjp(form, *given)
        return value, jnp.cos(value), *pull(jnp.cos(value))

    given = (left.T, right.T) if turned else (left, right)
    value, grad, *found = jax.jit(value_and_gradients)(*given)
    left, right, grad = map(rounded, (left, right, grad))
    chex.assert_trees_all_close(value, left @ right, rtol=1e-4, atol=1e-5)
    chex.assert_trees_all_close(found, [grad @ right.T, left.T @ grad], rtol=1e-4, atol=1e-5)
    assert np.abs(value - np.matmul(*factors(*shape))).max() > 1e-4


@pytest.mark.usefixtures("rounding")
@pytest.mark.parametrize("axes", [(0, 0), (None, 0), (0, None)])
def test_rounded_over_seeds(axes: tuple[int | None, int | None]) -> None:
    left, right = (
        x if axis is None else jnp.stack([x, -2 * x, 3 + x])
        for x, axis in zip(factors(7, 2, 3), axes, strict=True)
    )

    def slopes(left: jax.Array, right: jax.Array) -> tuple[jax.Array, jax.Array]:
        return jax.grad(lambda *pair: jnp.sum(product(*pair) ** 3), (0, 1))(left, right)

    together = jax.jit(jax.vmap(slopes, axes))(left, right)
    for seed in range(3):
        own = (x if axis is None else x[seed] for x, axis in zip((left, right), axes, strict=True))
        alone = jax.jit(slopes)(*own)
        chex.assert_trees_all_close([x[seed] for x in together], list(alone), rtol=1e-2)


@pytest.mark.usefixtures("rounding")
def test_rounded_products_have_second_derivatives() -> None:
    left, right = factors(4, 5, 3)

    def steepness(right: jax.Array) -> jax.Array:
        felt = jax.grad(lambda left: jnp.sum(jnp.tanh(product(left, right))))(left)
        return jnp.sum(felt**2)

    found = jax.jit(jax.grad(steepness))(right)
    with jax.default_matmul_precision("default"):
        expected = jax.jit(jax.grad(lambda right: steepness(right)))(right)
    chex.assert_trees_all_close(found, expected, rtol=0.1, atol=0.05)
    assert np.abs(found - expected).max() > 0


@pytest.mark.slow
def test_networks_train_with_rounded_products() -> None:
    method = fsjax.methods.stg(hidden=(6,), search=False)
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 120)
    x = rng.normal(size=(120, 12))
    x[:, 3] += 4 * y
    options = {"num_features": 2, "num_epochs": 4}
    plain = fsjax.fit(method, (x, y), seeds=(0, 1), **options)
    with jax.default_matmul_precision("bfloat16"):
        both = fsjax.fit(method, (x, y), seeds=(0, 1), **options)
        again = fsjax.fit(method, (x, y), seeds=(1,), **options)
    exact, found, alone = (result.history["train/loss"] for result in (plain, both, again))
    # Another program than the first one, near it, and the same for a seed alone.
    assert np.any(found != exact)
    np.testing.assert_allclose(found, exact, rtol=0.05)
    np.testing.assert_allclose(alone[0], found[1], rtol=1e-5)
