"""Rank tests of single columns: p-values, q-values over all columns, and associations.

Classes: Kruskal-Wallis test (for two classes, Mann-Whitney without continuity correction).
Numbers: Spearman's rank correlation with Student's t. Both assume that rows are independent. Where
groups of rows are given, only groups are: a t test of the groups' contributions to the covariance
of the ranks replaces them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import stats
from scipy.sparse import csr_array
from scipy.special import gammaln

from fsjax.auto.contest.rankers import targets
from fsjax.auto.contest.rankers.parts import standardise
from fsjax.auto.reading.column_operations import Columns, densify, means_and_deviations, ranks

#: With fewer groups of rows, columns of noise often have small p-values by group.
MIN_GROUPS = 8

#: Deviations that are smaller than this share of the mean are rounding errors.
_SAME = 1e-9

#: Columns that are tested by groups of rows at a time.
_COLUMNS = 1000


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


def column_tests(
    X: Columns, y: np.ndarray, task: str, row_groups: np.ndarray | None = None
) -> ColumnTests:
    """Tests every column of ``(N, D)`` rows without missing values.

    Args:
      X: dense or sparse.
      y: classes ``(N,)`` from 0, numbers ``(N,)`` or ``(N, C)``, labels of 0 and 1 ``(N, C)``, or
        time and event ``(N, 2)``, whose martingale residuals are tested.
      row_groups: ``(N,)`` numbers of groups of dependent rows, or ``None`` if rows are independent.
    """
    tests = _by_row(X, y, task)
    if row_groups is None:
        return tests
    outputs = np.stack(targets(y, task, split=True), axis=-1)
    return tests._replace(p_values=_by_group(ranks(X), ranks(outputs), row_groups))


def _by_row(X: Columns, y: np.ndarray, task: str) -> ColumnTests:
    if task == "classification":
        return _by_class(ranks(X), y)
    outputs = np.stack(targets(y, task, split=False), axis=-1)
    correlation = np.clip(rank_correlations(X, outputs).T, -1.0, 1.0)
    freedom = max(X.shape[0] - 2, 1)
    with np.errstate(divide="ignore"):
        statistic = np.abs(correlation) * np.sqrt(freedom / (1.0 - correlation**2))
    p_values = 2.0 * stats.t.sf(statistic, freedom).min(axis=0)
    # Of N! orders of the rows at least two are as extreme.
    least = 2.0 * np.exp(-gammaln(X.shape[0] + 1))
    p_values = np.maximum(p_values, min(least, 1.0))
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
    mean, deviation = means_and_deviations(ranked)
    class_mean = (ranked.T @ member.T).T / size
    scale = np.where(deviation > 0, deviation, np.inf)
    between = (size * np.square((class_mean - mean) / scale)).sum(axis=0)
    # Dividing by the variance of the ranks corrects the statistic for ties.
    p_values = stats.chi2.sf(between * (rows - 1) / rows, len(labels) - 1)
    # The share of one of the assignments of the rows to classes of these sizes.
    p_values = np.maximum(p_values, np.exp(gammaln(size + 1).sum() - gammaln(rows + 1)))
    rest_mean = (rows * mean - size * class_mean) / (rows - size)
    return ColumnTests(p_values, 0.5 + (class_mean - rest_mean) / rows)


def _by_group(ranked: Columns, outputs: np.ndarray, row_groups: np.ndarray) -> np.ndarray:
    """p-values ``(D,)`` of covariances of columns ``(N, D)`` with outputs ``(N, C)``, of ranks.

    The sums over the rows of a group of the products of both ranks, centred, have mean 0 without a
    relation, and are independent between groups: Student's t. The smallest over the outputs,
    multiplied by their number.
    """
    groups, numbers = np.unique(row_groups, return_inverse=True)
    member = csr_array((np.ones(len(numbers)), (numbers, np.arange(len(numbers)))))
    columns, (centred,) = standardise(ranked)[0], standardise(outputs)
    mean = np.asarray(columns.mean(axis=0)).ravel()
    smallest = np.ones(columns.shape[1])
    for first in range(0, columns.shape[1], _COLUMNS):
        part = slice(first, first + _COLUMNS)
        block = densify(columns[:, part]) - mean[part]
        for output in centred.T:
            sums = member @ (block * output[:, None])
            error = sums.std(axis=0, ddof=1) / np.sqrt(len(groups))
            size = np.abs(sums.mean(axis=0))
            statistic = size / np.where(error > _SAME * size, error, np.inf)
            p_values = 2.0 * stats.t.sf(statistic, len(groups) - 1)
            smallest[part] = np.minimum(smallest[part], p_values)
    return np.minimum(smallest * centred.shape[1], 1.0)


def unit_p_values(p_values: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """p-values ``(G,)`` of units from those of their columns ``(D,)``, by Bonferroni."""
    smallest = np.ones(int(groups.max()) + 1)
    np.minimum.at(smallest, groups, p_values)
    return np.minimum(smallest * np.bincount(groups), 1.0)
