"""Exactly K distinct columns, and the unique percentage."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fsjax.engine.kernels.distinct_columns import distinct_top_k, unique_percentage


@pytest.mark.slow
@settings(max_examples=50, deadline=None)
@given(st.data())
def test_exactly_k_distinct_in_order_of_importance(data: st.DataObject) -> None:
    d = data.draw(st.integers(1, 12))
    k = data.draw(st.integers(1, d))
    values = st.sampled_from([0.0, 0.5, 1.0, -1.0, np.inf, -np.inf, np.nan])
    scores = np.array(data.draw(st.lists(values, min_size=d, max_size=d)), np.float32)
    picks = np.array(data.draw(st.lists(st.integers(0, d - 1), min_size=k, max_size=k)))
    mask = np.array(data.draw(st.lists(st.booleans(), min_size=d, max_size=d)))
    chosen = np.asarray(
        distinct_top_k(jnp.asarray(scores), k, jnp.asarray(picks), jnp.asarray(mask))
    )
    assert len(set(chosen.tolist())) == k
    # An independent ordering by (ruled out, not picked, lower score, index).
    filled = np.where(np.isnan(scores), -np.inf, scores)
    expected = sorted(
        range(d), key=lambda i: (not mask[i], mask[i] and i not in picks, -filled[i], i)
    )[:k]
    assert chosen.tolist() == expected


def test_without_picks_it_is_the_top_k() -> None:
    chosen = distinct_top_k(jnp.array([0.1, 0.9, 0.5, 0.9]), 3)
    assert chosen.tolist() == [1, 3, 2]


def test_constant_columns_come_last() -> None:
    mask = jnp.array([True, False, True])
    assert distinct_top_k(jnp.array([0.1, 0.9, 0.5]), 3, feature_mask=mask).tolist() == [2, 0, 1]


@pytest.mark.parametrize(
    ("picks", "expected"), [([0, 1, 2, 3], 100.0), ([1, 1, 1, 1], 25.0), ([0, 0, 5, 5], 50.0)]
)
def test_unique_percentage(picks: list[int], expected: float) -> None:
    assert float(unique_percentage(jnp.asarray(picks), 6)) == expected


def test_distinct_picks_are_exactly_100_percent_in_a_compiled_program() -> None:
    found = [jax.jit(unique_percentage, static_argnums=1)(jnp.arange(k), 9) for k in (3, 6, 7)]
    assert np.array(found).tolist() == [100.0] * 3
