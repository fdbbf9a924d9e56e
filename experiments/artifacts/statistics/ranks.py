"""Comparing many methods over many tables by their ranks (Demsar, JMLR 2006)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import friedmanchisquare, studentized_range

from fsjax.errors import DataError


class Ranks(NamedTuple):
    """How methods rank.

    Attributes:
      mean: by method its mean rank over the tables, from 1, best first; ties share theirs.
      p_value: of Friedman's test that all methods do alike.
      critical_difference: of two mean ranks, by Nemenyi's test at the given level.
      tables: how many there were.
    """

    mean: pd.Series
    p_value: float
    critical_difference: float
    tables: int


def rank(scores: pd.DataFrame, alpha: float = 0.05) -> Ranks:
    """Ranks of methods by their scores.

    Args:
      scores: ``(tables, methods)``, higher is better, without gaps.
      alpha: level of Nemenyi's test, in (0, 1).

    Raises:
      DataError: for gaps, fewer than three methods or fewer than two tables.
    """
    tables, methods = scores.shape
    if methods < 3 or tables < 2 or scores.isna().to_numpy().any():
        raise DataError(
            f"scores of {methods} methods on {tables} tables, {int(scores.isna().sum().sum())} of "
            "them missing; give at least 3 methods on 2 tables, without gaps"
        )
    mean = scores.rank(axis=1, ascending=False).mean().sort_values(kind="stable")
    p_value = friedmanchisquare(*scores.to_numpy().T).pvalue
    return Ranks(mean, float(p_value), critical_difference(methods, tables, alpha), tables)


def critical_difference(methods: int, tables: int, alpha: float = 0.05) -> float:
    """The difference of two mean ranks from which on methods differ (Nemenyi; Demsar, 3.2.2)."""
    quantile = studentized_range.ppf(1 - alpha, methods, np.inf) / np.sqrt(2)
    return float(quantile * np.sqrt(methods * (methods + 1) / (6 * tables)))


def cliques(mean: pd.Series, difference: float) -> list[tuple[int, int]]:
    """Runs of methods, first and last place, that do not differ; none lies within another.

    Args:
      mean: mean ranks, ascending.
      difference: the critical one.
    """
    values = mean.to_numpy()
    pairs: list[tuple[int, int]] = []
    for first in range(len(values)):
        last = int(np.searchsorted(values, values[first] + difference, side="right")) - 1
        if last > first and (not pairs or last > pairs[-1][1]):
            pairs.append((first, last))
    return pairs
