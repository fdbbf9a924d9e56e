"""The strengths that a search tries, on gates that follow a known law."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from fsjax.engine.search import misses, next_strengths, threshold_for, too_many

GATES = np.array([0.95, 0.9, 0.85, 0.6, 0.5, 0.3, 0.1, 0.05])


def test_threshold_is_reached_by_exactly_k_gates() -> None:
    for k in (3, 4, 5, 6):
        threshold = threshold_for(GATES, k)
        assert 0.2 <= threshold <= 0.8
        assert np.sum(GATES >= threshold) == k
    for k in (1, 2):
        assert threshold_for(GATES, k) is None
        assert too_many(GATES, k)
        assert misses(GATES, k) == 3 - k
    for k in (7, 8):
        assert threshold_for(GATES, k) is None
        assert not too_many(GATES, k)
        assert misses(GATES, k) == k - 6


def test_equal_gates_leave_no_threshold_between_them() -> None:
    gates = np.array([0.9, 0.5, 0.5, 0.5, 0.1])
    assert threshold_for(gates, 1) is not None
    assert threshold_for(gates, 2) is None and not too_many(gates, 2) == too_many(gates, 3)
    assert threshold_for(gates, 4) is not None


def gates_at(strength: float, power: float, scale: float, num_columns: int = 400) -> np.ndarray:
    """Gates with about ``scale * strength**-power`` open ones, a few of them undecided."""
    order = np.arange(num_columns) + 0.5
    return 1.0 / (1.0 + np.exp((order - scale * strength**-power) / 4.0))


@settings(deadline=None)
@given(st.floats(0.2, 2.0), st.floats(-2.0, 2.0), st.integers(1, 399), st.sampled_from([1, 2, 4]))
def test_search_ends_with_exactly_k(power: float, log_scale: float, k: int, width: int) -> None:
    def gates(strength: float) -> np.ndarray:
        return gates_at(strength, power, 40.0 * 10.0**log_scale)

    tried: dict[float, np.ndarray] = {}
    for _ in range(40):
        following = next_strengths(tried, k, 1e-3, width)
        if not following:
            break
        assert len(following) == width and all(strength > 0 for strength in following)
        tried |= {strength: gates(strength) for strength in following}
    assert any(threshold_for(found, k) is not None for found in tried.values())


def test_few_steps_where_the_law_is_as_expected() -> None:
    def steps(k: int) -> int:
        tried: dict[float, np.ndarray] = {}
        while following := next_strengths(tried, k, 1e-3):
            tried |= {s: gates_at(s, 0.6, 125 * 1e-3**0.6) for s in following}
        return len(tried)

    assert steps(125) == 1
    assert max(steps(k) for k in (100, 75, 50, 25)) <= 3
