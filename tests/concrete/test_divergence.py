"""GJSD against a NumPy version written from eq. 10, and its bounds.

Covers ``fsjax.concrete.divergence``.
"""

from __future__ import annotations

import chex
import jax
import jax.numpy as jnp
import jax.test_util
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from fsjax.concrete import gjsd


def numpy_gjsd(logits: np.ndarray) -> float:
    """Sum over i of w_i KL(p_i || sum_j w_j p_j), w = 1/K, term by term."""
    logits = np.asarray(logits, np.float64)
    k, d = logits.shape
    p = np.exp(logits - logits.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    mixture = [sum(p[j, c] for j in range(k)) / k for c in range(d)]
    total = 0.0
    for i in range(k):
        for c in range(d):
            if p[i, c] > 0:
                total += p[i, c] * np.log(p[i, c] / mixture[c]) / k
    return total


#: One program instead of one per operation.
divergence = jax.jit(gjsd)

#: Few shapes, as each one is compiled.
SHAPES = [(1, 1), (1, 5), (6, 1), (3, 3), (2, 6)]
MATRICES = hnp.arrays(np.float32, st.sampled_from(SHAPES), elements=st.floats(-20, 20, width=32))


@settings(max_examples=30, deadline=None)
@given(MATRICES)
def test_equals_numpy_and_stays_in_its_bounds(logits: np.ndarray) -> None:
    value = float(divergence(jnp.asarray(logits)))
    assert abs(value - numpy_gjsd(logits)) < 1e-5
    assert -1e-5 <= value <= np.log(len(logits)) + 1e-5


def test_limits() -> None:
    same = jnp.tile(jnp.array([[0.3, -2.0, 1.0]]), (4, 1))
    assert abs(float(divergence(same))) < 1e-6
    apart = 100.0 * jnp.eye(4)
    assert abs(float(divergence(apart)) - np.log(4)) < 1e-6


def test_ruled_out_columns_do_not_break_it() -> None:
    logits = jnp.array([[1.0, 0.0, -1e9], [0.0, 1.0, -1e9]])
    chex.assert_trees_all_close(divergence(logits), divergence(logits[:, :2]), atol=1e-6)
    assert np.isfinite(np.asarray(jax.jit(jax.grad(gjsd))(logits))).all()
