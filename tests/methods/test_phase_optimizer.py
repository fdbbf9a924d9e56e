"""The optimiser of two phases against those of Optax."""

from __future__ import annotations

import chex
import jax
import jax.numpy as jnp
import numpy as np
import optax

from fsjax.methods.shared.phase_optimizer import adam_then_sgd, to_sgd


def test_optimizer_is_adam_and_then_sgd_with_fresh_momentum() -> None:
    rng = np.random.default_rng(0)
    params = {"a": jnp.asarray(rng.normal(size=(3, 2))), "b": jnp.ones(4)}
    mine, adam, sgd = adam_then_sgd(0.1, 0.05, 0.8), optax.adam(0.1), optax.sgd(0.05, 0.8)
    state, theirs = mine.init(params), adam.init(params)
    update, of_adam, of_sgd = (jax.jit(of.update) for of in (mine, adam, sgd))
    for step in range(8):
        if step == 4:
            state = to_sgd(state, jnp.array(True))
            theirs = sgd.init(params)
        grads = jax.tree.map(lambda p: jnp.asarray(rng.normal(size=p.shape)), params)
        updates, state = update(grads, state)
        expected, theirs = (of_adam if step < 4 else of_sgd)(grads, theirs)
        chex.assert_trees_all_close(updates, expected, rtol=1e-4)
    chex.assert_trees_all_equal(to_sgd(state, jnp.array(False)), state)
