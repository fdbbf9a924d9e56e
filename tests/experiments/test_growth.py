"""The benchmark of growth: its exponents and its picture."""

from __future__ import annotations

import numpy as np
import pytest

from experiments.benchmarks.growth import SIZES, exponent


@pytest.mark.parametrize("power", [0.0, 1.0, 1.5])
def test_the_exponent_is_that_of_the_largest_sizes(power: float) -> None:
    sizes = SIZES["D"]
    costs = 0.3 * np.array(sizes, float) ** power
    costs[:2] *= 7.0
    assert exponent(sizes, costs) == pytest.approx(power, abs=1e-9)
