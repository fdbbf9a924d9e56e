"""How exactly a score can be known from so many rows, events or groups, whatever the folds say.

The spread over a few folds is itself known from a few numbers; the numbers of rows bound the width
of any honest interval from below.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from fsjax.auto.contest.problem import Problem
from fsjax.auto.contest.scoring import RANKED, Metric
from fsjax.auto.reading.target import Names

#: Quantile of the normal distribution of a 95 % interval.
_Z = 1.959964

#: Half-width, as a share of a metric from 0 to 1, from which rows are few, and the one to aim at.
WIDE, NARROW = 0.1, 0.05

#: Fewer rows of a class, labels or events than this are few, and fewer rows.
_FEW, _FEW_ROWS = 20, 30

#: Largest factor of the rows that is tried.
_MAX_FACTOR = 1e5


class RowCounts(NamedTuple):
    """Numbers of independent rows.

    Attributes:
      rows: in all; groups of rows if the target is the same within each.
      fewest: of the smallest class, of the scarcer value of a label, or events; ``rows`` for
        numbers.
      scarce: what the fewest are, in words: ``class 'yes'``, ``events``, or empty for numbers.
      unit: ``row`` or ``group``.
    """

    rows: int
    fewest: int
    scarce: str
    unit: str


def counts_of(problem: Problem, classes: Names = None) -> RowCounts:
    """The numbers of independent rows on which methods were compared.

    Args:
      classes: names of the classes, or of several labels.
    """
    y, unit = _independent(problem)
    if problem.task == "classification":
        sizes = np.bincount(y.astype(int))
        label = int(np.where(sizes > 0, sizes, len(y) + 1).argmin())
        name = repr(classes[label]) if classes is not None else str(label)
        return RowCounts(len(y), int(sizes[label]), f"of class {name}", unit)
    if problem.task == "survival":
        return RowCounts(len(y), int(y[:, 1].sum()), "with an event", unit)
    if problem.task == "multilabel":
        positive = y.reshape(len(y), -1).sum(axis=0)
        scarcer = np.minimum(positive, len(y) - positive)
        label = int(scarcer.argmin())
        word = "with" if positive[label] <= len(y) / 2 else "without"
        name = f"label {label}" if classes is None else repr(classes[label])
        return RowCounts(len(y), int(scarcer[label]), f"{word} {name}", unit)
    return RowCounts(len(y), len(y), "", unit)


def bounds_of(score: float, metric: Metric, counts: RowCounts, factor: float = 1.0) -> tuple | None:
    """The 95 % interval of a score from the numbers of rows alone; None for unknown metrics.

    Shares are Wilson's interval, areas too, with the number of rows that has Hanley and McNeil's
    variance (1982); R2 is the square of a correlation with Fisher's interval.

    Args:
      factor: by which all numbers of rows are multiplied.
    """
    rows = counts.rows * factor
    if not np.isfinite(score):
        return None
    if metric.in_percent:
        low, high = _wilson(score / 100.0, rows)
        return 100.0 * low, 100.0 * high
    if metric.name in ("auc", "concordance_index"):
        fewest = max(counts.fewest * factor, 1.0)
        return _wilson(score, _rows_of_area(score, fewest, max(rows - fewest, fewest)))
    if metric.name in ("r2", RANKED, "d2"):
        return _squared_correlation(score, rows)
    return None


def widened(
    score: tuple[float, float, float], metric: Metric, counts: RowCounts
) -> tuple[float, float, float]:
    """A score with its interval over the folds, at least as wide as the rows allow."""
    mean, low, high = score
    bounds = bounds_of(mean, metric, counts)
    if bounds is None or not np.isfinite([low, high]).all():
        return score
    return mean, min(low, bounds[0]), max(high, bounds[1])


def few_rows(score: float, metric: Metric, counts: RowCounts, better: bool) -> str | None:
    """What cannot be decided with so few rows, and how many would do; None if there are enough.

    Args:
      better: whether the target is predicted better than chance.
    """
    scale = 100.0 if metric.in_percent else 1.0
    half = _half_width(score, metric, counts, 1.0) / scale
    area = metric.name in ("auc", "concordance_index")
    rare = area or counts.fewest < counts.rows / 4
    scarce = counts.scarce != "" and counts.fewest < _FEW and rare
    if not scarce and counts.rows >= _FEW_ROWS and not half > WIDE:
        return None
    units = f"{counts.unit}s" if counts.rows != 1 else counts.unit
    if counts.scarce and (scarce or area):
        verb = "is" if counts.fewest == 1 else "are"
        number = f"only {counts.fewest:,} of the {counts.rows:,} {units} {verb} {counts.scarce}"
    else:
        number = f"there are only {counts.rows:,} {units}"
    # The accuracy over all rows may be well known where that of one class is not.
    of_class = metric.in_percent and scarce
    if not better:
        consequence = "too few to see more than a strong relation"
    elif of_class and not half > WIDE:
        consequence = "too few to say how well these are predicted"
    else:
        consequence = "too few to say how well the target can be predicted"
    known = f"; the {metric.short} is known to \N{PLUS-MINUS SIGN} {_width(half, metric)} at best"
    remedy = ""
    reached = not of_class and round(half, 2) <= NARROW
    if not reached and (needed := _needed(score, metric, counts, scarce)):
        such = "such " if number.startswith("only") else ""
        purpose = "to know their share of correct predictions to" if of_class else "for"
        remedy = (
            f"; about {needed:,} {such}{counts.unit}s would be needed {purpose} "
            f"\N{PLUS-MINUS SIGN} {_width(NARROW, metric)}"
        )
    return f"{number}, {consequence}{known if half > 0 else ''}{remedy}"


def _width(half: float, metric: Metric) -> str:
    return f"{100 * half:.0f} points" if metric.in_percent else f"{half:.2f}"


def _needed(score: float, metric: Metric, counts: RowCounts, scarce: bool) -> int | None:
    """Rows (of the smallest class, or events) for the aimed half-width, to two digits."""
    bounds = bounds_of(max(score, 0.0), metric, counts)
    if bounds is None:
        return None
    # The score is not known; the middle of what it may be asks for more rows than a lucky score.
    score = sum(bounds) / 2
    if metric.in_percent and scarce:
        # As many as show the share of this class that is recognised.
        counts, number = counts._replace(rows=counts.fewest), counts.fewest
    else:
        of_fewest = metric.name in ("auc", "concordance_index")
        number = counts.fewest if of_fewest else counts.rows
    scale = 100.0 if metric.in_percent else 1.0
    low, high = 1.0, 2.0
    while _half_width(score, metric, counts, high) / scale > NARROW:
        low, high = high, 2.0 * high
        if high > _MAX_FACTOR:
            return None
    for _ in range(30):
        middle = (low + high) / 2
        if _half_width(score, metric, counts, middle) / scale > NARROW:
            low = middle
        else:
            high = middle
    needed = math.ceil(number * high)
    digits = 10 ** max(len(str(needed)) - 2, 0)
    return -(-needed // digits) * digits


def _half_width(score: float, metric: Metric, counts: RowCounts, factor: float) -> float:
    # Below 0, R2 is the same as 0 here.
    bounds = bounds_of(max(score, 0.0), metric, counts, factor)
    return float("nan") if bounds is None else (bounds[1] - bounds[0]) / 2


def _independent(problem: Problem) -> tuple[np.ndarray, str]:
    """The targets of independent rows: one of each group if it has one target only."""
    y, groups = problem.y, problem.row_groups
    if groups is None:
        return y, "row"
    first, group = np.unique(groups, return_index=True, return_inverse=True)[1:]
    if len(first) < len(y) and (y == y[first[group]]).all():
        return y[first], "group"
    return y, "row"


def _wilson(share: float, rows: float) -> tuple[float, float]:
    """Wilson's 95 % interval of a share in [0, 1]."""
    share, rows = min(max(share, 0.0), 1.0), max(rows, 1.0)
    middle = (share + _Z**2 / (2 * rows)) / (1 + _Z**2 / rows)
    half = _Z * math.sqrt(share * (1 - share) / rows + (_Z / (2 * rows)) ** 2) / (1 + _Z**2 / rows)
    return max(middle - half, 0.0), min(middle + half, 1.0)


def _rows_of_area(area: float, positive: float, negative: float) -> float:
    """Rows of a share that has the variance of an area under the ROC curve."""
    area = min(max(area, 1.0 - area, 0.5), 1.0 - 1e-6)
    first, second = area / (2 - area), 2 * area**2 / (1 + area)
    variance = area * (1 - area) + (positive - 1) * (first - area**2)
    variance += (negative - 1) * (second - area**2)
    return area * (1 - area) * positive * negative / max(variance, 1e-12)


def _squared_correlation(score: float, rows: float) -> tuple[float, float] | None:
    if rows <= 4:
        return None
    middle = math.atanh(min(math.sqrt(max(score, 0.0)), 1.0 - 1e-9))
    half = _Z / math.sqrt(rows - 3)
    low, high = math.tanh(max(middle - half, 0.0)) ** 2, math.tanh(middle + half) ** 2
    return min(low, score), max(high, score)
