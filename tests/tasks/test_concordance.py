"""The concordance index against a loop over pairs of rows, and what it refuses."""

from __future__ import annotations

import numpy as np
from bad_calls import bad_calls, refuses

from fsjax.tasks import output_metrics
from fsjax.tasks.concordance import concordance_index


@bad_calls(
    ([1, 2], [1, 1], [1, 2, 3], "(2,), (2,), (3,)"),
    ([1, np.nan], [1, 1], [1, 2], "NaN or infinite"),
    ([1, 2, 3], [2, 1, 2], [1, 2, 3], "event has the values [1. 2.]"),
    ([1, 2], [0, 0], [1, 2], "no two rows are comparable"),
    ([2, 2], [1, 1], [1, 2], "no two rows are comparable"),
)
def test_rows_that_cannot_be_compared(bad: tuple) -> None:
    refuses(lambda: concordance_index(*bad[:3]), bad[3])


def test_negative_weights_are_refused() -> None:
    refuses(lambda: concordance_index([1, 2], [1, 1], [2, 1], [-1, 2]), "sample_weight holds -1.0")


def test_a_part_without_comparable_rows_has_no_index() -> None:
    y = np.array([[1.0, 0.0], [2.0, 0.0]])
    assert np.isnan(output_metrics.survival_metrics(np.zeros((2, 1)), y)["concordance_index"])
