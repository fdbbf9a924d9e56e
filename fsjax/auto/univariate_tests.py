"""Rank tests of single columns: p-values, q-values over all columns, and associations.

Classes: Kruskal-Wallis test (for two classes, Mann-Whitney without continuity correction).
Numbers: Spearman's rank correlation with Student's t. Rows are assumed to be independent.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import stats

from fsjax.auto.rankers import targets
from fsjax.auto.rankers.parts import standardise
from fsjax.tables.columns import Columns, moments, ranks


class ColumnTests(NamedTuple):
    """Tests of each of D columns by itself.

    Attributes:
      p_values: ``(D,)`` in [0, 1]; 1 for constant columns. With several outputs the smallest,
        multiplied by their number.
      association: ``(C, D)``. Classes: area under the ROC curve of each class against the rest, in
        [0, 1]. Numbers: rank correlation with each output, in [-1, 1].
    """

    p_values: np.ndarray
    association: np.ndarray


def column_tests(X: Columns, y: np.ndarray, task: str) -> ColumnTests:
    """Tests every column of ``(N, D)`` rows without missing values.

    Args:
      X: dense or sparse.
      y: classes ``(N,)`` from 0, numbers ``(N,)`` or ``(N, C)``, labels of 0 and 1 ``(N, C)``, or
        time and event ``(N, 2)``, whose martingale residuals are tested.
    """
    if task == "classification":
        return _by_class(ranks(X), y)
    outputs = np.stack(targets(y, task, split=False), axis=-1)
    correlation = np.clip(rank_correlations(X, outputs).T, -1.0, 1.0)
    freedom = max(X.shape[0] - 2, 1)
    with np.errstate(divide="ignore"):
        statistic = np.abs(correlation) * np.sqrt(freedom / (1.0 - correlation**2))
    p_values = 2.0 * stats.t.sf(statistic, freedom).min(axis=0)
    return ColumnTests(np.minimum(p_values * len(correlation), 1.0), correlation)


def rank_correlations(X: Columns, outputs: np.ndarray) -> np.ndarray:
    """Spearman's correlations ``(D, C)`` of columns ``(N, D)`` with outputs ``(N, C)``."""
    (columns,), (numbers,) = standardise(ranks(X)), standardise(ranks(outputs))
    # It is enough that one factor of the product is centred.
    return columns.T @ numbers / X.shape[0]


def _by_class(ranked: Columns, y: np.ndarray) -> ColumnTests:
    labels = np.unique(y)
    member = (y == labels[:, None]).astype(np.float64)
    size, rows = member.sum(axis=1)[:, None], len(y)
    mean, deviation = moments(ranked)
    class_mean = (ranked.T @ member.T).T / size
    scale = np.where(deviation > 0, deviation, np.inf)
    between = (size * np.square((class_mean - mean) / scale)).sum(axis=0)
    # Dividing by the variance of the ranks corrects the statistic for ties.
    p_values = stats.chi2.sf(between * (rows - 1) / rows, len(labels) - 1)
    rest_mean = (rows * mean - size * class_mean) / (rows - size)
    return ColumnTests(p_values, 0.5 + (class_mean - rest_mean) / rows)


def unit_p_values(p_values: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """p-values ``(G,)`` of units from those of their columns ``(D,)``, by Bonferroni."""
    smallest = np.ones(int(groups.max()) + 1)
    np.minimum.at(smallest, groups, p_values)
    return np.minimum(smallest * np.bincount(groups), 1.0)
