"""Compares selectors over tables by ranks and by paired differences with intervals."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import wilcoxon

from experiments.artifacts.statistics.trials import mean_interval


class Paired(NamedTuple):
    """Mean difference of paired scores, its 95 % interval, and p of Wilcoxon's signed-rank test."""

    mean: float
    low: float
    high: float
    p_value: float


def paired(scores: np.ndarray, others: np.ndarray) -> Paired:
    """Compares the scores of two selectors on the same tables, ``(T,)`` each.

    The interval is Student's. All but the mean are NaN for one table; p is 1 without differences.
    """
    difference = np.asarray(scores, np.float64) - np.asarray(others, np.float64)
    mean, half = mean_interval(difference)
    if len(difference) < 2:
        return Paired(mean, np.nan, np.nan, np.nan)
    p_value = float(wilcoxon(difference).pvalue) if difference.any() else 1.0
    return Paired(mean, mean - half, mean + half, p_value)


def mean_ranks(scores: pd.DataFrame, tolerance: float = 0.005) -> pd.Series:
    """Mean rank of each selector over the tables, 1 is best; sorted, best first.

    Args:
      scores: ``(tables, selectors)``, higher is better, without missing values.
      tolerance: scores that are equal after rounding to multiples of it share a rank.
    """
    rounded = (scores / tolerance).round()
    return rounded.rank(axis=1, ascending=False).mean().sort_values(kind="stable")
