"""Whether two results of a cell are the same: an interval of their difference against a margin.

The interval holds the difference of the two true means with 90 % confidence, so that *agrees* and
*differs* are each wrong in at most one of twenty cells: it lies within the margin (two one-sided
tests at 5 %), or outside. Otherwise the cell is *undecided*. The interval assumes that

- the values of the seeds are independent and normal, and the split is the same on both sides;
- a standard deviation, ours or printed, is that of the values themselves (``ddof=0``);
- the spreads of the two sides are alike or not: the interval is the wider of Student's, which pools
  them, and Welch's, which does not. With two seeds against fifteen, and a spread of half to twice
  the other, it misses the true difference in at most 11 of 100 simulated cases, where Welch's
  misses 16 and Student's 33;
- three seeds or more, of both sides together, are needed to show that a cell agrees. Two alone (the
  paper prints no standard deviation) may only show that it differs;
- counts, and methods that train nothing and gave one value for every seed, have no spread. A number
  that the paper prints without a standard deviation counts as exact too.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from scipy import stats

from experiments.papers.cells import COUNTS, Cell, trains

#: The confidence of the interval; its two ends are one-sided bounds of 95 %.
CONFIDENCE = 0.9

VERDICTS = ("agrees", "differs", "undecided")

#: The least number of seeds, of both sides together, that a spread is taken from.
LEAST = 3

#: Margins: points of accuracy, points of all epochs, and a share of errors, counts and speed-ups.
ACCURACY, DELAY, RELATIVE = 1.5, 3.0, 0.05

#: Units in which counts are printed; a count that rounds to the printed one is equal.
PRINTED = {"connections": 50.0, "density_pct": 0.05}

#: Standard deviations below this share of the mean are rounding errors.
ROUNDING = 1e-9


class Side(NamedTuple):
    """A result: the mean and the standard deviation over its seeds.

    Attributes:
      mean: the mean, in units of the metric.
      std: the standard deviation of the values, with ``ddof=0``.
      seeds: their number; 0 for a value that no seed changes.
    """

    mean: float
    std: float
    seeds: int


class Comparison(NamedTuple):
    """A difference with its interval; ``low`` and ``high`` are NaN if there is none."""

    difference: float
    low: float
    high: float
    verdict: str  # agrees, differs or undecided


def margin(metric: str, value: float) -> float:
    """The largest difference from ``value`` that does not matter, in units of the metric."""
    if metric.endswith("accuracy"):
        return ACCURACY
    if metric == "training_delay_pct":
        return DELAY
    return max(RELATIVE * abs(value), PRINTED.get(metric, 0.0))


def truncated(metric: str, value: float) -> float:
    """By how much the printed ``value`` may be less than what was truncated to it; 0 if rounded."""
    if metric != "train_flops":
        return 0.0
    # Printed in units of 10^12 and truncated to two decimals, or three for small values.
    return 1e10 if value >= 1e10 else 1e9


def side(method: str, metric: str, row: Mapping[str, Any]) -> Side:
    """A row of ``results.csv`` or ``reference.csv`` as one side of a comparison."""
    std = row["std"] if row["std"] > ROUNDING * abs(row["mean"]) else 0.0
    exact = std == 0.0 and (metric in COUNTS or not trains(method))
    return Side(row["mean"], std, 0 if exact else int(row["seeds"]))


def published_side(cell: Cell) -> Side:
    """The published value of a cell as one side of a comparison."""
    row = cell.row
    known = row.std is not None and row.n_repeats is not None
    return Side(row.mean, row.std or 0.0, (row.n_repeats or 0) if known else 0)


def compare(ours: Side, other: Side, within: float, above: float = 0.0) -> Comparison:
    """Compares two results by the rule of this module; ``within`` is the margin.

    Differences from 0 to less than ``above`` do not matter either, see :func:`truncated`.
    """
    difference, (half, known) = ours.mean - other.mean, _half_width(ours, other)
    if not math.isfinite(half):
        return Comparison(difference, math.nan, math.nan, "undecided")
    low, high = difference - half, difference + half
    least, most = -within * (1 + 1e-9), max(within * (1 + 1e-9), above * (1 - 1e-9))
    if low > most or high < least:
        verdict = "differs"
    else:
        verdict = "agrees" if known and least <= low and high <= most else "undecided"
    return Comparison(difference, low, high, verdict)


def _half_width(ours: Side, other: Side) -> tuple[float, bool]:
    """Half of the interval, and whether :data:`LEAST` seeds or more tell the spread."""
    sides = [s for s in (ours, other) if s.seeds]
    freedoms = [s.seeds - 1 for s in sides]
    enough = not sides or sum(freedoms) >= LEAST - 1
    errors = [s.std**2 / f for s, f in zip(sides, freedoms, strict=True) if f]
    if len(errors) < len(sides) or (not enough and sum(errors) == 0.0):
        return math.inf, False
    if sum(errors) == 0.0:
        return 0.0, enough
    welch = sum(errors) ** 2 / sum(e**2 / f for e, f in zip(errors, freedoms, strict=True))
    pooled = (
        sum(s.seeds * s.std**2 for s in sides) / sum(freedoms) * sum(1 / s.seeds for s in sides)
    )
    quantile = 0.5 + CONFIDENCE / 2
    return float(
        max(
            stats.t.ppf(quantile, welch) * math.sqrt(sum(errors)),
            stats.t.ppf(quantile, sum(freedoms)) * math.sqrt(pooled),
        )
    ), enough
