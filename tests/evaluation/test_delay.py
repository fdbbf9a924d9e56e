"""Training delay by its formula."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from fsjax.errors import ConfigError
from fsjax.evaluation import training_delay


def test_first_epoch_that_reaches_the_threshold() -> None:
    accuracy = np.array(
        [
            [10.0, 90.0, 95.0, 100.0],  # exactly the threshold counts
            [95.0, 20.0, 20.0, 20.0],  # reached once is reached
            [10.0, 20.0, 30.0, 91.0],
            [10.0, 20.0, 30.0, 89.0],  # never
            [np.nan, np.nan, 99.0, np.nan],
        ]
    )
    found = training_delay(accuracy, best=100.0)
    np.testing.assert_array_equal(found, [50.0, 25.0, 100.0, np.nan, 75.0])


def test_one_seed_and_other_thresholds() -> None:
    curve = np.array([50.0, 70.0, 80.0, 80.0, 79.0])
    np.testing.assert_array_equal(training_delay(curve, 80.0, 1.0), [60.0])
    np.testing.assert_array_equal(training_delay(curve, 80.0, 0.5), [20.0])


@given(
    arrays(float, (3, 7), elements=st.floats(0, 100)),
    st.floats(0, 100),
    st.floats(0.01, 1),
)
def test_matches_a_plain_search(accuracy: np.ndarray, best: float, threshold: float) -> None:
    for curve, found in zip(accuracy, training_delay(accuracy, best, threshold), strict=True):
        epochs = [i for i, value in enumerate(curve, start=1) if value >= threshold * best]
        assert found == 100 * epochs[0] / 7 if epochs else np.isnan(found)


@pytest.mark.parametrize(
    ("shape", "best", "threshold", "message"),
    [
        ((2, 0), 90.0, 0.9, "at least one epoch"),
        ((), 90.0, 0.9, r"shape \(\)"),
        ((1, 2, 3), 90.0, 0.9, r"shape \(1, 2, 3\)"),
        ((2, 3), np.nan, 0.9, "best=nan"),
        ((2, 3), np.inf, 0.9, "best=inf"),
        ((2, 3), -1.0, 0.9, "best=-1.0"),
        ((2, 3), 90.0, 0.0, "threshold=0.0; choose above 0, at most 1"),
        ((2, 3), 90.0, 1.1, "threshold=1.1"),
        ((2, 3), 90.0, np.nan, "threshold=nan"),
    ],
)
def test_mistakes(shape: tuple, best: float, threshold: float, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        training_delay(np.zeros(shape), best, threshold)
