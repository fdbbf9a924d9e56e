"""The parts that all figures of trials share."""

import numpy as np
import pytest

from experiments.artifacts.figures.marks import short_number


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.1, "0.1"),
        (50, "50"),
        (250, "250"),
        (0, "0"),
        (0.012, "0.012"),
        (8.23e-4, "8.2e-4"),
        (1e-5, "1e-5"),
        (9.99e-4, "1e-3"),
        (123456, "1.2e5"),
        (np.nan, "-"),
    ],
)
def test_short_numbers(value, text):
    assert short_number(value) == text
