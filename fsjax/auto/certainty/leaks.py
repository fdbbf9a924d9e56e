"""Columns that give the target away, and columns that could replace one another."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.special import gammaln

from fsjax.auto.certainty.univariate_tests import column_tests, rank_correlations
from fsjax.auto.contest.rankers.parts import standardise
from fsjax.auto.reading.column_operations import (
    Columns,
    dense_columns,
    limits,
    ranks,
    with_column_means,
)
from fsjax.auto.reading.columns import MISSING, Design
from fsjax.auto.reading.notes import Note
from fsjax.auto.reading.target import Names

#: Absolute rank correlation from which a column can replace another.
ALIKE = 0.8

#: Number of units that all others are compared with, the most important ones.
LEADERS = 200

#: Rank correlation with a numeric target from which a column is a likely leak, and with a leak from
#: which a column that nearly gives the target away too is one.
_SAME, _COPY = 0.9999, 0.95

#: Area under the ROC curve from which missing values, and a copy of a leak, give a class away.
_MISSING_AUC, _COPY_AUC = 0.98, 0.95

#: With a greater probability than this, some column separates the classes by chance.
_CHANCE = 1e-3

#: In fewer rows nothing is a likely leak. With fewer rows (or groups) of a class, a good honest
#: predictor separates the classes too, except by a gap of at least this share of its range.
_FEW_ROWS, _FEW_OF_CLASS, _GAP = 20, 15, 0.2

#: Rows per category from which categories that determine the target cannot do so by chance.
_ROWS_PER_CATEGORY = 10

#: What to do about a likely leak.
CHECK = "check that its values are known before the target is"


class Goals(NamedTuple):
    """What a leak may give away, each ``(N,)``, by a name that is empty if the target has one part.

    Attributes:
      classes: the classes, each label of several, or whether there was an event.
      numbers: each numeric output, or the time.
    """

    classes: dict[str, np.ndarray]
    numbers: dict[str, np.ndarray]


def goals_of(y: np.ndarray, task: str, names: Names = None) -> Goals:
    """The classes and numbers in a target ``(N,)`` or ``(N, C)``; outputs of one value are none.

    Args:
      names: of several outputs, by default their numbers.
    """
    outputs = y.reshape(len(y), -1).T
    called = [""] * len(outputs)
    if task == "survival":
        called = ["the time", "an event"]
    elif task != "classification" and y.ndim > 1:
        word = "label" if task == "multilabel" else "output"
        called = [f"{word} {number}" for number in range(len(outputs))]
        called = called if names is None else list(map(repr, names))
    pairs = zip(called, outputs, strict=True)
    varying = {name: output for name, output in pairs if (output != output[0]).any()}
    if task in ("classification", "multilabel"):
        return Goals(varying, {})
    return Goals({name: varying.pop(name) for name in {"an event"} & set(varying)}, varying)


def leaks(
    design: Design, y: np.ndarray, task: str, groups: np.ndarray | None = None, names: Names = None
) -> list[Note]:
    """Notes on columns that determine the target by themselves, and on near copies of these.

    Such a column orders the rows as the target does, separates all classes by thresholds, has
    categories in each of which the target is constant, or is missing almost exactly in one class.
    Of several labels or outputs, one that it gives away is enough.

    Args:
      y: classes from 0, ``(N,)`` or ``(N, C)`` numbers.
      groups: ``(N,)`` numbers of groups of dependent rows.
      names: of several outputs.
    """
    if len(y) < _FEW_ROWS:
        return []
    X, goals = with_column_means(design.X), goals_of(y, task, names)
    outputs, reasons = {**goals.classes, **goals.numbers}, dict[int, str]()
    certain = dict(outputs)
    for name, classes in goals.classes.items():
        independent = _rows_of_groups(classes, groups)
        if _chance_to_separate(independent, X.shape[1] * len(goals.classes)) > _CHANCE:
            del certain[name]
        else:
            few = np.unique(independent, return_counts=True)[1].min() < _FEW_OF_CLASS
            which = f"the rows with and without {name}" if name else "the classes"
            for column in np.flatnonzero(_gaps(X, classes) > (_GAP if few else 0.0)).tolist():
                reasons.setdefault(column, f"separates {which} by itself (AUC of 1)")
        where = f"in the rows with or without {name}" if name else "where a class is"
        for column in missing_columns(design).tolist():
            if np.bincount(classes.astype(int)).min() >= _ROWS_PER_CATEGORY and (
                _aucs(X[:, [column]], classes).max() >= _MISSING_AUC
            ):
                reasons.setdefault(column, f"is missing almost exactly {where}")
    if task != "classification" and outputs:
        same = np.abs(rank_correlations(X, np.stack(list(outputs.values()), axis=1))) >= _SAME
        for column, output in np.argwhere(same).tolist():
            name = list(outputs)[output] or "the target"
            reasons.setdefault(column, f"orders the rows as {name} does")
    for column, name in _determining_categories(design, certain).items():
        reasons.setdefault(column, f"has categories that determine {name or 'the target'}")
    for column, leak in _copies(X, goals, list(reasons)).items():
        reasons[column] = (
            f"nearly gives the target away, and is nearly the same as {design.names[leak]!r}"
        )
    by_unit = {int(design.groups[column]): reason for column, reason in reversed(reasons.items())}
    return [
        Note(design.units[unit], "leak", f"{by_unit[unit]}: a likely leak; {CHECK}")
        for unit in sorted(by_unit)
    ]


def missing_columns(design: Design) -> np.ndarray:
    """The columns that say where values are missing: indicators, and the category of these."""
    names = [
        name == f"{design.units[unit]}={MISSING}"
        for name, unit in zip(design.names, design.groups, strict=True)
    ]
    return np.flatnonzero(design.indicators | np.array(names, bool))


def _rows_of_groups(classes: np.ndarray, row_groups: np.ndarray | None) -> np.ndarray:
    """The classes, one for each group of rows and class in it."""
    if row_groups is None:
        return classes
    return np.unique(np.column_stack([row_groups, classes]), axis=0)[:, 1]


def _chance_to_separate(classes: np.ndarray, columns: int) -> float:
    """Probability, at most, that any of some random columns separates the classes."""
    counts = np.unique(classes, return_counts=True)[1]
    orders = gammaln(counts.sum() + 1) - gammaln(counts + 1).sum()
    return float(np.exp(min(np.log(columns) + gammaln(len(counts) + 1) - orders, 0.0)))


def _aucs(X: Columns, classes: np.ndarray) -> np.ndarray:
    """``(D,)`` area under the ROC curve, at least 0.5, for the class best shown."""
    association = column_tests(X, classes.astype(int), "classification").association
    return 0.5 + np.abs(association - 0.5).max(axis=0)


def _determining_categories(design: Design, outputs: dict[str, np.ndarray]) -> dict[int, str]:
    """Names of outputs that are constant in each of a unit's categories, by its first column."""
    determining: dict[int, str] = {}
    if not isinstance(design.X, np.ndarray) or not outputs:
        return determining
    sizes = np.bincount(design.groups, minlength=design.num_units)
    for unit in np.flatnonzero(sizes > 1).tolist():
        columns = design.columns_of([unit])
        values = design.X[:, columns]
        if not np.isin(values, (0.0, 1.0)).all():
            continue
        category = np.unique(values, axis=0, return_inverse=True)[1].ravel()
        frame = pd.DataFrame(outputs).groupby(category)
        constant = (frame.max() == frame.min()).all()
        if category.max() + 1 <= len(values) / _ROWS_PER_CATEGORY and constant.any():
            determining[int(columns[0])] = str(constant.idxmax())
    return determining


def _copies(X: Columns, goals: Goals, leaking: list[int]) -> dict[int, int]:
    """Near copies of leaking columns, and of their copies, with the column that each copies."""
    copies: dict[int, int] = {}
    if not leaking:
        return copies
    tells = np.zeros(X.shape[1], bool)
    for classes in goals.classes.values():
        tells |= _aucs(X, classes) >= _COPY_AUC
    if goals.numbers:
        correlation = np.abs(rank_correlations(X, np.stack(list(goals.numbers.values()), axis=1)))
        tells |= (correlation >= _COPY).any(axis=1)
    tells[leaking] = False
    new = leaking
    while new and tells.any():
        likeness = np.abs(rank_correlations(X, dense_columns(X, np.array(new))))
        likeness[~tells] = 0.0
        nearly_same = np.flatnonzero(likeness.max(axis=1) >= _COPY).tolist()
        copies |= {column: new[int(likeness[column].argmax())] for column in nearly_same}
        tells[nearly_same] = False
        new = nearly_same
    return copies


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


def _gaps(X: Columns, y: np.ndarray) -> np.ndarray:
    """``(D,)`` smallest gap between classes as a share of the range; up to 0 where they overlap."""
    low, high = np.stack([limits(X[y == label]) for label in np.unique(y)], axis=1)
    order = np.argsort(low, axis=0)
    low = np.take_along_axis(low, order, axis=0)
    high = np.take_along_axis(high, order, axis=0)
    # Halves, because differences of large numbers may overflow.
    extent = high.max(axis=0) / 2 - low.min(axis=0) / 2
    gap = (low[1:] / 2 - high[:-1] / 2).min(axis=0)
    return np.divide(gap, extent, out=np.zeros_like(gap), where=extent > 0)
