"""Columns that give the target away, and columns that could replace one another."""

from __future__ import annotations

import numpy as np

from fsjax.auto.columns import Design
from fsjax.auto.notes import Note
from fsjax.auto.rankers.parts import standardise
from fsjax.auto.univariate_tests import rank_correlations
from fsjax.tables.columns import Columns, dense_columns, limits, ranks, with_column_means

#: Absolute rank correlation from which a column can replace another.
ALIKE = 0.8

#: Number of units that all others are compared with, the most important ones.
LEADERS = 200

#: Rank correlation with a numeric target from which a column is a likely leak.
_SAME = 0.9999

#: In fewer rows, a column may separate the classes by chance.
_FEW_ROWS = 20


def leaks(design: Design, y: np.ndarray, task: str) -> list[Note]:
    """Notes on columns that determine the target by themselves.

    Such a column orders the rows as the target does, or separates all classes by thresholds.

    Args:
      y: classes from 0, or ``(N,)`` or ``(N, C)`` numbers.
    """
    if len(y) < _FEW_ROWS:
        return []
    X = with_column_means(design.X)
    if task == "classification":
        leaking, reason = _separates(X, y), "separates the classes by itself (AUC of 1)"
    else:
        leaking = (np.abs(rank_correlations(X, y.reshape(len(y), -1))) >= _SAME).any(axis=1)
        reason = "orders the rows as the target does"
    units = dict.fromkeys(design.groups[leaking].tolist())
    text = f"{reason}: a likely leak; check that its values are known before the target is"
    return [Note(design.units[unit], "leak", text) for unit in units]


def alike(design: Design, units: np.ndarray) -> np.ndarray:
    """Absolute rank correlations ``(n, G)`` in [0, 1] of n units with all units.

    The correlation of two units is the largest of any two of their columns. Indicators of missing
    values do not count: values may well be missing together.
    """
    values = ~design.indicators
    (ranked,) = standardise(ranks(with_column_means(design.X)))
    correlations = np.zeros((len(units), design.num_units))
    for row, unit in zip(correlations, units, strict=True):
        columns = dense_columns(ranked, np.flatnonzero((design.groups == unit) & values))
        # It is enough that one factor of the product is centred.
        correlation = ranked.T @ columns / ranked.shape[0]
        np.maximum.at(row, design.groups[values], np.abs(correlation).max(axis=1)[values])
    return np.minimum(correlations, 1.0)


def leaders(likeness: np.ndarray, units: np.ndarray) -> np.ndarray:
    """``(G,)`` for each unit the first of the n units that it could replace, or itself.

    Args:
      likeness: ``(n, G)``, result of :func:`alike` for these units.
      units: ``(n,)`` by importance, the best first; a unit with a leader leads no others.
    """
    leader = np.full(likeness.shape[1], -1)
    for row, unit in zip(likeness, units, strict=True):
        if leader[unit] < 0:
            leader[(row >= ALIKE) & (leader < 0)] = unit
            leader[unit] = unit
    return np.where(leader < 0, np.arange(len(leader)), leader)


def _separates(X: Columns, y: np.ndarray) -> np.ndarray:
    """``(D,)`` whether thresholds on a column separate all classes."""
    low, high = np.stack([limits(X[y == label]) for label in np.unique(y)], axis=1)
    order = np.argsort(low, axis=0)
    low = np.take_along_axis(low, order, axis=0)
    high = np.take_along_axis(high, order, axis=0)
    return np.all(high[:-1] < low[1:], axis=0)
