"""Mean weight norms by their definition."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from experiments.studies.regularize import mean_weight_norms


def test_known_norms() -> None:
    weights = {"a": {"kernel": np.array([[3.0, 0.0], [0.0, 0.0]])}, "b": np.full((1, 4), -1.0)}
    assert mean_weight_norms(weights) == pytest.approx(
        {"l0": 5 / 8, "l1": 7 / 8, "l2": np.sqrt(13 / 8)}
    )


@given(arrays(np.float32, (3, 5), elements=st.floats(-10, 10, width=32)), st.integers(1, 4))
def test_means_do_not_depend_on_size_or_order(kernel: np.ndarray, copies: int) -> None:
    norms = mean_weight_norms(kernel)
    assert 0.0 <= norms["l0"] <= 1.0
    assert 0.0 <= norms["l1"] <= norms["l2"] * (1 + 1e-6)
    assert norms["l2"] <= np.abs(kernel).max() * (1 + 1e-6)
    repeated = [kernel.T[::-1]] * copies
    assert mean_weight_norms(repeated) == pytest.approx(norms, rel=1e-6)


def test_float32_sums_do_not_lose_small_weights() -> None:
    kernel = jnp.full((2000, 1000), 1e-3)
    kernel = kernel.at[0, 0].set(1e3)
    norms = mean_weight_norms(kernel)
    assert norms["l1"] == pytest.approx(1e-3 + 1e3 / 2e6, rel=1e-4)
    assert norms["l2"] == pytest.approx(np.sqrt(1e-6 + 1e6 / 2e6), rel=1e-6)
    assert jax.tree.leaves(norms) == [norms["l0"], norms["l1"], norms["l2"]]
