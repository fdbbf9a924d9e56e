"""The parts that all figures of trials share."""

import numpy as np
import pytest
from binmask_trials import SIX

from experiments.artifacts.figures.marks import apart, looks, shifts, short_number


def test_methods_look_different():
    method_looks = looks(f"method {number % 40}" for number in range(80))
    assert len(method_looks) == len(set(method_looks.values())) == 40
    assert len({look.color for look in looks(SIX).values()}) == 6


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


def test_ticks_keep_their_distance():
    assert apart([10, 9, 5, 1], 10, 0.2) == [1, 5, 10]
    assert apart([], 1.0, 0.1) == []


def test_lines_move_little():
    for number in (1, 2, 6, 12):
        offsets = shifts(number)
        assert offsets.shape == (number,) and np.ptp(offsets) <= 0.03 + 1e-12
        np.testing.assert_allclose(offsets.sum(), 0.0, atol=1e-12)
    assert shifts(0).size == 0
    np.testing.assert_allclose(np.diff(shifts(3)), 0.007)
