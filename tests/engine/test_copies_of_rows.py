"""Batches that hold the rows of a small table more than once, and what their weights mean."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from marks import slow_ids

import fsjax
from fsjax.engine.loop import init_state
from fsjax.engine.rows import batch_at, batch_indices
from fsjax.method import About, Batch, Spec
from fsjax.methods import METHODS

N, D, B, STEPS = 5, 8, 12, 3
SPEC = Spec(D, 2, "classification", N, B, num_epochs=2, steps_per_epoch=STEPS, repeats=7)
MERGING = About(merges_copies=True)

#: Settings with which rows of a batch affect each other in other ways than by the loss.
OTHERS = ({"dropout": 0.5}, {"batch_norm": True})


def table() -> Batch:
    rng = np.random.default_rng(0)
    x = jnp.asarray(rng.normal(size=(N, D)), jnp.float32)
    # The last row is padding.
    weight = jnp.asarray([1.0, 2.0, 0.5, 1.0, 0.0])
    return Batch(x, jnp.asarray([0, 1, 1, 0, 0]), weight)


@settings(max_examples=8, deadline=None)
@given(st.integers(0, 10_000))
def test_a_merged_batch_has_the_rows_of_the_other(seed: int) -> None:
    rows, real = batch_indices(SPEC, jax.random.key(seed), jnp.int32(N - 1))
    for step in range(STEPS):
        merged, full = (
            batch_at(about, SPEC, table(), rows[step], real[step]) for about in (MERGING, About())
        )
        assert merged.x.shape == (N, D) and full.x.shape == (B, D)
        expected = [full.weight[rows[step] == row].sum() for row in range(N)]
        np.testing.assert_allclose(merged.weight, expected, rtol=1e-6)
        np.testing.assert_allclose(
            merged.weight @ merged.x, full.weight @ full.x, rtol=1e-4, atol=1e-5
        )


def test_only_small_tables_and_known_losses_are_merged() -> None:
    rows, real = (part[0] for part in batch_indices(SPEC, jax.random.key(0), jnp.int32(N - 1)))
    for spec in (
        SPEC._replace(num_rows=B),
        SPEC._replace(loss=lambda outputs, y, weight: jnp.sum(outputs)),
        SPEC._replace(registered_task=fsjax.tasks.TABLE["classification"]),
    ):
        assert len(batch_at(MERGING, spec, table(), rows, real).x) == B


@slow_ids("deep_lasso", "entryprune")
@slow_ids("binmask", "stg")
@pytest.mark.parametrize("name", ["binmask", "deep_lasso", "entryprune", "neural_network", "stg"])
def test_a_weight_has_the_effect_of_copies(name: str) -> None:
    small = {**METHODS[name].registration.small, "batch_norm": False, "dropout": 0.0}
    method = METHODS[name](**small)
    assert method.about.merges_copies
    for others in OTHERS:
        assert not METHODS[name](**small | others).about.merges_copies
    few = table()._replace(weight=jnp.asarray([1.0, 3.0, 2.0, 1.0, 0.0]))
    copies = few.take(jnp.repeat(jnp.arange(N), jnp.asarray([1, 3, 2, 1, 0])))
    copies = copies._replace(weight=jnp.ones(7))

    def after(batch: Batch) -> object:
        """The gradients of a batch, and the state after one step with them."""
        state = init_state(method, SPEC, jnp.uint32(0), few, jnp.ones(D, bool))
        loss = jax.grad(method.training_loss, has_aux=True)
        grads, aux = loss(state.params, state, batch, jax.random.key(1))
        return grads, method.after_step(state, grads, aux, batch, jax.random.key(2))

    merged, full = map(jax.jit(after), (few, copies))
    for one, other in zip(*map(jax.tree.leaves, (merged, full)), strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-4, atol=1e-6)
