"""The benchmark of growth: its exponents, its picture, and what the page says of it."""

from __future__ import annotations

import numpy as np
import pytest
from launcher import ROOT

from experiments.artifacts.markdown import read_table
from experiments.benchmarks.growth import METHODS, SIZES, draw, exponent


@pytest.mark.parametrize("power", [0.0, 1.0, 1.5])
def test_the_exponent_is_that_of_the_largest_sizes(power: float) -> None:
    sizes = SIZES["D"]
    costs = 0.3 * np.array(sizes, float) ** power
    costs[:2] *= 7.0
    assert exponent(sizes, costs) == pytest.approx(power, abs=1e-9)


def test_the_page_and_the_picture_have_all_rows() -> None:
    table = read_table(ROOT / "docs" / "tables" / "growth.md")
    assert list(table.iloc[:, 0]) == [f"{method}, {axis}" for method in METHODS for axis in SIZES]
    panels = draw(table).axes
    assert [len(panel.lines) for panel in panels[:5]] == [len(METHODS)] * 5
    page = (ROOT / "BENCHMARKS.md").read_text()
    for first in range(0, len(table), len(SIZES)):
        rows = table.iloc[first : first + len(SIZES)]
        exponents = [
            exponent(
                [float(number) for number in sizes.split(",")],
                [float(number) for number in costs.split(",")],
            )
            for sizes, costs in zip(rows.iloc[:, 1], rows.iloc[:, 2], strict=True)
        ]
        assert np.allclose(exponents, rows["exponent"].astype(float), atol=0.006)
        assert f"| {' | '.join(rows['exponent'])} |" in page
