"""Products of wide batches by open columns alone are the plain ones, also within methods."""

from __future__ import annotations

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fsjax.engine.kernels import products
from fsjax.engine.kernels.products import WIDE_TABLE, input_product, is_wide
from fsjax.engine.loop import init_state
from fsjax.method import Batch, Spec
from fsjax.methods import METHODS
from fsjax.methods.shared import network

B, D, H = 2, 96, 5

#: The weights of a column in LassoNet.
WEIGHTS = ("skip", "kernel")


def factors(open_columns: int, seed: int = 0) -> tuple[jax.Array, jax.Array]:
    rng = np.random.default_rng(seed)
    weights = np.zeros((D, H), np.float32)
    # The last columns are open, which places after the end of the table must not read.
    places = D - 1 - np.arange(open_columns)
    weights[places] = rng.normal(size=(open_columns, H))
    return jnp.asarray(rng.normal(size=(B, D)), jnp.float32), jnp.asarray(weights)


@settings(max_examples=6, deadline=None)
@given(st.sampled_from([0, 1, 3, 4, 11, 12, 13, 95, D]), st.integers(0, 99))
def test_value_and_gradients_are_those_of_the_product(open_columns: int, seed: int) -> None:
    x, weights = factors(open_columns, seed)
    assert is_wide(x)
    value, pull = jax.vjp(input_product, x, weights)
    chex.assert_trees_all_close(value, x @ weights, rtol=1e-4, atol=1e-5)
    slope = jnp.cos(value)
    expected = slope @ weights.T, x.T @ slope
    chex.assert_trees_all_close(pull(slope), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("open_columns, read", [(D // 8, False), (D // 8 + 1, True)])
def test_closed_columns_are_not_read_if_few_are_open(open_columns: int, read: bool) -> None:
    x, weights = factors(open_columns)
    product = input_product(jnp.where(weights[:, 0] == 0, jnp.nan, x), weights)
    assert bool(jnp.isnan(product).any()) == read


@pytest.mark.parametrize("name", ["binmask", "lassonet"])
def test_methods_have_the_slopes_of_the_plain_product(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    method = METHODS[name](num_features=2, hidden=(H,))
    rows = D // WIDE_TABLE
    spec = Spec(D, 2, "classification", rows, rows, num_epochs=2, steps_per_epoch=1)
    x = jnp.asarray(np.random.default_rng(0).normal(size=(rows, D)), jnp.float32)
    batch = Batch(x, jnp.arange(rows) % 2, jnp.ones(rows))
    state = init_state(method, spec, jnp.uint32(0), batch, jnp.ones(D, bool))
    closed = jnp.arange(D) < D - 9
    if name == "binmask":
        latents = jnp.where(closed, -0.1, state.params.latents["inputs"])
        params = state.params._replace(latents={"inputs": latents})
    else:
        outside = {part: jnp.where(closed[:, None], 0.0, state.params[part]) for part in WEIGHTS}
        params = {**state.params, **outside}

    def slopes() -> tuple[str, chex.ArrayTree]:
        slopes = jax.value_and_grad(lambda *a: method.training_loss(*a)[0])
        arguments = params, state, batch, jax.random.key(0)
        return str(jax.make_jaxpr(slopes)(*arguments)), slopes(*arguments)

    program, found = slopes()
    for module in (products, network):
        monkeypatch.setattr(module, "is_wide", lambda x: False)
    plain, expected = slopes()
    assert " cond[" in program and " cond[" not in plain
    chex.assert_trees_all_close(found, expected, rtol=1e-4, atol=1e-5)
