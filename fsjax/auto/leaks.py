"""Columns that give the target away, and columns that could stand for one another."""

from __future__ import annotations

import numpy as np

from fsjax.auto.columns import Design, Note
from fsjax.auto.rankers.parts import standardise
from fsjax.tables.columns import Columns, dense_columns, limits, ranks, with_column_means

#: Absolute rank correlation from which a column can stand for another.
ALIKE = 0.8

#: Units that others are compared with, the most important ones.
LEADERS = 200

#: Rank correlation with a numeric target that no honest column has.
_SAME = 0.9999

#: Fewer rows tell classes apart by chance when there are many columns.
_FEW_ROWS = 20


def leaks(design: Design, y: np.ndarray, task: str) -> list[Note]:
    """Columns that tell the target by themselves: a copy, or thresholds that separate all classes.

    Args:
      design: the columns.
      y: classes from 0, or ``(N,)`` or ``(N, C)`` numbers.
      task: what y is.
    """
    if len(y) < _FEW_ROWS:
        return []
    X = _filled(design)
    if task == "classification":
        found, told = _separates(X, y), "separates the classes by itself (AUC of 1)"
    else:
        numbers = ranks(y.reshape(len(y), -1))
        found = (np.abs(_correlations(X, numbers)) >= _SAME).any(axis=1)
        told = "orders the rows as the target does"
    units = dict.fromkeys(design.groups[found].tolist())
    text = f"{told}: a likely leak, is it known before the target is?"
    return [Note(design.units[unit], "leak", text) for unit in units]


def alike(design: Design, units: np.ndarray) -> np.ndarray:
    """How like some units all units are: ``(n, G)`` absolute rank correlations in [0, 1].

    Units are as like as any two of their columns, but for those that tell where values were
    missing: they may well be missing together.
    """
    values = ~design.indicators
    (ranked,) = standardise(ranks(_filled(design)))
    found = np.zeros((len(units), design.num_units))
    for row, unit in zip(found, units, strict=True):
        columns = dense_columns(ranked, np.flatnonzero((design.groups == unit) & values))
        # One side of a product that is centred is enough.
        correlation = ranked.T @ columns / ranked.shape[0]
        np.maximum.at(row, design.groups[values], np.abs(correlation).max(axis=1)[values])
    return np.minimum(found, 1.0)


def leaders(likeness: np.ndarray, units: np.ndarray) -> np.ndarray:
    """``(G,)`` for each unit the first of some units that it could stand for, or itself.

    Args:
      likeness: what :func:`alike` gives for these units.
      units: by importance, the best first; a unit that follows another leads no others.
    """
    leader = np.full(likeness.shape[1], -1)
    for row, unit in zip(likeness, units, strict=True):
        if leader[unit] < 0:
            leader[(row >= ALIKE) & (leader < 0)] = unit
            leader[unit] = unit
    return np.where(leader < 0, np.arange(len(leader)), leader)


def _filled(design: Design) -> Columns:
    """The columns with their means in place of gaps, which sparse ones do not have."""
    return with_column_means(design.X)


def _separates(X: Columns, y: np.ndarray) -> np.ndarray:
    """``(D,)`` whether thresholds of a column tell all classes apart."""
    low, high = np.stack([limits(X[y == label]) for label in np.unique(y)], axis=1)
    order = np.argsort(low, axis=0)
    low = np.take_along_axis(low, order, axis=0)
    high = np.take_along_axis(high, order, axis=0)
    return np.all(high[:-1] < low[1:], axis=0)


def _correlations(X: Columns, target: np.ndarray) -> np.ndarray:
    (columns,), (numbers,) = standardise(ranks(X)), standardise(target)
    return columns.T @ numbers / X.shape[0]
