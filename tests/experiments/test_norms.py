"""Mean weight norms by their definition."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from experiments.studies.regularize import mean_weight_norms


def test_known_norms() -> None:
    weights = {"a": {"kernel": np.array([[3.0, 0.0], [0.0, 0.0]])}, "b": np.full((1, 4), -1.0)}
    assert mean_weight_norms(weights) == pytest.approx(
        {"l0": 5 / 8, "l1": 7 / 8, "l2": np.sqrt(13 / 8)}
    )


def test_float32_sums_do_not_lose_small_weights() -> None:
    kernel = jnp.full((2000, 1000), 1e-3)
    kernel = kernel.at[0, 0].set(1e3)
    norms = mean_weight_norms(kernel)
    assert norms["l1"] == pytest.approx(1e-3 + 1e3 / 2e6, rel=1e-4)
    assert norms["l2"] == pytest.approx(np.sqrt(1e-6 + 1e6 / 2e6), rel=1e-6)
    assert jax.tree.leaves(norms) == [norms["l0"], norms["l1"], norms["l2"]]
