"""The benchmark of growth: its exponents and its picture."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from experiments.benchmarks.growth import METHODS, SIZES, draw, exponent


@pytest.mark.parametrize("power", [0.0, 1.0, 1.5])
def test_the_exponent_is_that_of_the_largest_sizes(power: float) -> None:
    sizes = SIZES["D"]
    costs = 0.3 * np.array(sizes, float) ** power
    costs[:2] *= 7.0
    assert exponent(sizes, costs) == pytest.approx(power, abs=1e-9)


def test_the_picture_has_a_line_for_every_row() -> None:
    costs = "1, 2, 4, 8"
    rows = [
        (f"{method}, {axis}", ", ".join(map(str, sizes[:4])), costs, "1.00")
        for method in METHODS
        for axis, sizes in SIZES.items()
    ]
    columns = ["method and what grows", "sizes", "CPU ms of an epoch", "exponent"]
    panels = draw(pd.DataFrame(rows, columns=columns)).axes
    for panel, sizes in zip(panels, SIZES.values(), strict=False):
        assert [line.get_label() for line in panel.lines] == list(METHODS)
        assert panel.lines[0].get_xdata().tolist() == list(sizes[:4])
