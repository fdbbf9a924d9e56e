"""Products of open columns alone are the plain ones, and so are the methods that use them."""

from __future__ import annotations

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fsjax.engine.kernels import gated
from fsjax.engine.kernels.gated import COLUMNS_PER_ROW, gated_product
from fsjax.engine.loop import init_state
from fsjax.method import Batch, Spec
from fsjax.methods import METHODS
from fsjax.methods.shared import network
from fsjax.nets import skip_network

B, D, H = 2, 96, 5


def factors(open_columns: int, seed: int = 0) -> tuple[jax.Array, jax.Array, jax.Array]:
    rng = np.random.default_rng(seed)
    gates = np.zeros(D)
    gates[rng.choice(D, open_columns, replace=False)] = rng.normal(size=open_columns)
    arrays = rng.normal(size=(B, D)), rng.normal(size=(D, H)), gates
    return tuple(jnp.asarray(array, jnp.float32) for array in arrays)  # type: ignore[return-value]


@settings(max_examples=6, deadline=None)
@given(st.sampled_from([0, 1, 3, 4, 11, 12, 13, 95, D]), st.integers(0, 99))
def test_value_and_gradients_are_those_of_the_product(open_columns: int, seed: int) -> None:
    arrays = factors(open_columns, seed)
    value, pull = jax.vjp(gated_product, *arrays)
    expected, expected_pull = jax.vjp(lambda x, w, gates: x @ (gates[:, None] * w), *arrays)
    chex.assert_trees_all_close(value, expected, rtol=1e-4, atol=1e-5)
    slope = jnp.cos(expected)
    chex.assert_trees_all_close(pull(slope), expected_pull(slope), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("open_columns, read", [(D // 8, False), (D // 8 + 1, True)])
def test_closed_columns_are_not_read_if_few_are_open(open_columns: int, read: bool) -> None:
    x, kernel, gates = factors(open_columns)
    product = gated_product(jnp.where(gates == 0, jnp.nan, x), kernel, gates)
    assert bool(jnp.isnan(product).any()) == read


@pytest.mark.parametrize("name", ["binmask", "lassonet"])
@pytest.mark.parametrize("rows", [D // COLUMNS_PER_ROW, D // COLUMNS_PER_ROW + 1])
def test_methods_have_the_same_slopes(
    monkeypatch: pytest.MonkeyPatch, name: str, rows: int
) -> None:
    method = METHODS[name](num_features=2, hidden=(H,))
    spec = Spec(D, 2, "classification", rows, rows, num_epochs=2, steps_per_epoch=1)
    rng = np.random.default_rng(0)
    x = jnp.asarray(rng.normal(size=(rows, D)), jnp.float32)
    batch = Batch(x, jnp.arange(rows) % 2, jnp.ones(rows))
    state = init_state(method, spec, jnp.uint32(0), batch, jnp.ones(D, bool))
    closed = jnp.arange(D) >= 9
    if name == "binmask":
        latents = jnp.where(closed, -0.1, state.params.latents["inputs"])
        params = state.params._replace(latents={"inputs": latents})
    else:
        outside = {part: jnp.where(closed[:, None], 0.0, state.params[part]) for part in WEIGHTS}
        params = {**state.params, **outside}
    slopes = jax.value_and_grad(method.training_loss, has_aux=True)
    used = []

    def found() -> tuple[jax.Array, chex.ArrayTree]:
        with monkeypatch.context() as patch:
            real = gated.product_of_open
            for module in (gated, skip_network):
                patch.setattr(module, "product_of_open", lambda *a: used.append(1) or real(*a))
            (value, _), gradient = slopes(params, state, batch, jax.random.key(0))
        return value, gradient

    few = found()
    assert bool(used) == (rows * COLUMNS_PER_ROW <= D)
    for module in (network, skip_network):
        monkeypatch.setattr(module, "takes_open_columns", lambda x: False)
    chex.assert_trees_all_close(few, found(), rtol=1e-4, atol=1e-5)


#: The weights of a column in LassoNet.
WEIGHTS = ("skip", "kernel")
