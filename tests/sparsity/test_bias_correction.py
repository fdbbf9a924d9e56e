"""Steps of connections that were grown during the training, corrected by their age.

Covers ``fsjax.sparsity.connection_ages``.
"""

from __future__ import annotations

from typing import Any

import chex
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from bad_calls import bad_calls, refuses
from marks import slow_ids
from sparsity_trees import SMALL, noisy_gradient

from fsjax import sparsity

CHANGE = 8


def trained(inner: Any, recipe: Any, steps: int) -> tuple[list[Any], list[Any], list[Any]]:
    """Masks, gradients and updates of all steps."""
    tx = sparsity.sparse(inner, recipe, jax.random.key(0))
    state = tx.init(SMALL)
    params, update = sparsity.mask_params(SMALL, state), jax.jit(tx.update)
    masks, gradients, moves = [], [], []
    for step in range(steps):
        gradients.append(noisy_gradient(params, step)["dense"]["kernel"])
        updates, state = update(noisy_gradient(params, step), state, params)
        params = optax.apply_updates(params, updates)
        masks.append(np.asarray(sparsity.masks_of(state)["dense"]["kernel"]))
        moves.append(np.asarray(updates["dense"]["kernel"]))
        assert (np.asarray(params["dense"]["kernel"])[~masks[-1]] == 0).all()
    assert update._cache_size() == 1
    return masks, gradients, moves


@slow_ids("rigl")
@slow_ids("evolutionary")
@pytest.mark.parametrize("name", ["rigl", "evolutionary"])
def test_grown_connections_move_as_in_a_new_adam(name: str) -> None:
    recipe = getattr(sparsity, name)(0.3, every=CHANGE, fraction=0.5)
    inner = optax.chain(optax.adam(0.01, eps=1e-12), sparsity.bias_correction())
    masks, gradients, moves = trained(inner, recipe, 2 * CHANGE - 1)
    grown = masks[CHANGE - 1] & ~masks[CHANGE - 2]
    assert grown.sum() > 4
    new = optax.adam(0.01, eps=1e-12)
    state = new.init(gradients[0])
    for step in range(CHANGE, 2 * CHANGE - 1):
        expected, state = new.update(gradients[step], state)
        np.testing.assert_allclose(moves[step][grown], expected[grown], rtol=2e-4)


def test_updates_of_new_connections_warm_up() -> None:
    recipe = sparsity.rigl(0.3, every=CHANGE, fraction=0.5)
    inner = optax.chain(optax.sgd(0.01), sparsity.bias_correction(0, 0, warm_up=4))
    masks, gradients, moves = trained(inner, recipe, CHANGE + 6)
    grown = masks[CHANGE - 1] & ~masks[CHANGE - 2]
    for age in range(1, 7):
        step = CHANGE + age - 1
        expected = -0.01 * gradients[step] * min(age / 4, 1)
        np.testing.assert_allclose(moves[step][grown], expected[grown], rtol=1e-5)


def test_nothing_changes_where_nothing_is_grown() -> None:
    gradient = {"w": jnp.asarray([0.0, 1.0, -2.0], jnp.bfloat16)}
    corrected = optax.chain(optax.adam(0.1), sparsity.bias_correction())
    plain = optax.adam(0.1)
    states = [corrected.init(gradient), plain.init(gradient)]
    for _ in range(3):
        first, states[0] = jax.jit(corrected.update)(gradient, states[0])
        second, states[1] = jax.jit(plain.update)(gradient, states[1])
        chex.assert_trees_all_equal(first, second)
        assert first["w"].dtype == second["w"].dtype


@bad_calls(({"b1": 1.0}, "b1=1.0", "below 1"), ({"b2": -0.1}, "b2"), ({"warm_up": 0.5}, "whole"))
def test_bad_values_are_refused(bad: tuple) -> None:
    refuses(lambda: sparsity.bias_correction(**bad[0]), *bad[1:])
