"""Ranks and paired comparison of the selection study."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from experiments.studies.selection.held_out_pages import (
    paired,
    rank_rows,
    score_table,
    summary,
)


def test_paired_difference_has_the_interval_of_student() -> None:
    compared = paired(np.array([3.0, 4.0, 5.0, 6.0]), np.array([1.0, 3.0, 2.0, 4.0]))
    # Differences 2, 1, 3, 2: t(3) = 3.182 times sqrt(2/3) / 2.
    assert compared.mean == 2.0
    assert compared.high - compared.mean == pytest.approx(3.1824 * np.sqrt(2 / 3) / 2, abs=1e-3)
    assert compared.p_value == pytest.approx(0.125)


def runs() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Runs on three tables: five columns, all columns, nothing."""
    answers = pd.DataFrame(
        {
            "table": ["one", "two", "three"],
            "seed": 0,
            "budget": 60,
            "seconds": 61.0,
            "peak_mib": 1024.0,
            "verdict": ["something", "something", "nothing"],
            "method": ["l1", "all", "l1"],
            "claimed": [92.0, 99.0, 60.0],
        }
    )
    rows = [
        ("one", "select", 5, 60, 90.0, 91.0),
        ("one", "RFE", 5, 0, 80.0, np.nan),
        ("one", "RFE", 9, 0, 99.0, np.nan),
        ("two", "select", 8, 60, 95.0, 95.0),
        ("two", "RFE", 8, 0, 95.0, np.nan),
        ("three", "select", 0, 60, 55.0, 55.0),
        ("three", "RFE", 2, 0, 75.0, np.nan),
        ("three", "RFE", 10, 0, 65.0, np.nan),
    ]
    scores = pd.DataFrame(rows, columns=["table", "selector", "k", "budget", "mean", "own_judge"])
    return answers, scores.assign(seed=0)


def test_selectors_are_compared_at_the_same_number_of_columns() -> None:
    table = score_table(*runs())
    # Runs that keep all columns tie; "nothing" counts with its score.
    assert list(table.index) == [("one", 0), ("three", 0)]
    assert table["select"].tolist() == [90.0, 55.0]
    assert table["RFE"].tolist() == [80.0, 65.0]
    line = rank_rows(table).set_index("selector").loc["RFE"]
    assert (line["mean rank"], line["select minus it"]) == ("1.50", "+0.0")


def test_claims_are_compared_with_rows_set_aside() -> None:
    answers, scores = runs()
    said = summary(answers, scores, score_table(answers, scores)).set_index("figure")["value"]
    assert said["claimed minus held out, mean"] == "+3.3"
    assert said["of these, nothing"] == "1"
    assert said["of these, all columns"] == "1"
