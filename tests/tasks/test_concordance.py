"""The concordance index against a loop over pairs of rows, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest

from fsjax.errors import DataError
from fsjax.tasks import output_metrics
from fsjax.tasks.concordance import concordance_index


def by_pairs(time: np.ndarray, event: np.ndarray, risk: np.ndarray, weight: np.ndarray) -> float:
    """The share of comparable pairs in which the earlier event has the larger risk."""
    right = total = 0.0
    for first in range(len(time)):
        for second in range(len(time)):
            earlier = time[first] < time[second]
            tie = time[first] == time[second] and not event[second]
            if event[first] and first != second and (earlier or tie):
                pair = weight[first] * weight[second]
                total += pair
                right += pair * ((risk[first] > risk[second]) + (risk[first] == risk[second]) / 2)
    return right / total


@pytest.mark.parametrize("weighted", [False, True])
def test_equals_the_loop_over_pairs(weighted: bool) -> None:
    rng = np.random.default_rng(0)
    # Few different values, so that times and risks tie.
    time, risk = rng.integers(1, 9, 40), rng.integers(0, 6, 40)
    event = rng.integers(0, 2, 40)
    weight = rng.integers(0, 4, 40) if weighted else None
    expected = by_pairs(time, event, risk, np.ones(40) if weight is None else weight)
    assert concordance_index(time, event, risk, weight) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("time", "event", "risk", "message"),
    [
        ([1, 2], [1, 1], [1, 2, 3], r"have the shapes \(2,\), \(2,\), \(3,\)"),
        ([1, np.nan], [1, 1], [1, 2], "has NaN or infinite values"),
        ([1, 2], [0, 0], [1, 2], "no two rows are comparable"),
        ([2, 2], [1, 1], [1, 2], "no two rows are comparable"),
    ],
)
def test_rows_that_cannot_be_compared(time, event, risk, message: str) -> None:
    with pytest.raises(DataError, match=message):
        concordance_index(time, event, risk)


def test_a_part_without_comparable_rows_has_no_index() -> None:
    y = np.array([[1.0, 0.0], [2.0, 0.0]])
    assert np.isnan(output_metrics.survival_metrics(np.zeros((2, 1)), y)["concordance_index"])
