"""Compares many methods over many tables by their ranks (Demsar, JMLR 2006)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import friedmanchisquare, studentized_range

from fsjax.errors import DataError


class Ranks(NamedTuple):
    """Ranks of methods.

    Attributes:
      mean: mean rank over the tables by method, from 1, best first; ties share a rank.
      p_value: of Friedman's test, whose null hypothesis is that all methods are equally good.
      critical_difference: of two mean ranks, by Nemenyi's test at the given level.
      tables: their number.
    """

    mean: pd.Series
    p_value: float
    critical_difference: float
    tables: int


def rank(scores: pd.DataFrame, alpha: float = 0.05) -> Ranks:
    """Ranks methods by their scores.

    Args:
      scores: ``(tables, methods)``, higher is better, without missing values.
      alpha: level of Nemenyi's test, in (0, 1).

    Raises:
      DataError: for missing values, fewer than three methods or fewer than two tables.
    """
    tables, methods = scores.shape
    if methods < 3 or tables < 2 or scores.isna().to_numpy().any():
        raise DataError(
            f"scores of {methods} methods on {tables} tables, {int(scores.isna().sum().sum())} of "
            "them missing; give at least 3 methods on 2 tables, without missing values"
        )
    mean = scores.rank(axis=1, ascending=False).mean().sort_values(kind="stable")
    p_value = friedmanchisquare(*scores.to_numpy().T).pvalue
    return Ranks(mean, float(p_value), critical_difference(methods, tables, alpha), tables)


def critical_difference(methods: int, tables: int, alpha: float = 0.05) -> float:
    """The smallest significant difference of two mean ranks (Nemenyi; Demsar, 3.2.2)."""
    quantile = studentized_range.ppf(1 - alpha, methods, np.inf) / np.sqrt(2)
    return float(quantile * np.sqrt(methods * (methods + 1) / (6 * tables)))


def cliques(mean: pd.Series, difference: float) -> list[tuple[int, int]]:
    """Maximal groups of neighbouring methods that do not differ, as first and last index.

    Args:
      mean: mean ranks, ascending.
      difference: the critical difference.
    """
    values = mean.to_numpy()
    pairs: list[tuple[int, int]] = []
    for first in range(len(values)):
        last = int(np.searchsorted(values, values[first] + difference, side="right")) - 1
        if last > first and (not pairs or last > pairs[-1][1]):
            pairs.append((first, last))
    return pairs
