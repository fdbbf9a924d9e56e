"""The annealing schedule against the published numbers."""

from __future__ import annotations

import jax.numpy as jnp
import pytest

from fsjax.concrete import exponential_temperature


@pytest.mark.parametrize(
    ("epoch", "expected"), [(0, 10.0), (100, 0.31623), (199, 0.01035), (200, 0.01), (300, 0.01)]
)
def test_exponential(epoch: int, expected: float) -> None:
    temperature = exponential_temperature(jnp.float32(epoch / 200), 10.0, 0.01)
    assert float(temperature) == pytest.approx(expected, rel=1e-3)
