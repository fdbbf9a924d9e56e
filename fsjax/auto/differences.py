"""Paired comparisons over the same folds: differences of scores, their intervals and verdicts."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from scipy import stats

#: Confidence of the intervals.
CONFIDENCE: Final = 0.95

#: Scores that differ by less, relatively or absolutely, are equal.
_SAME: Final = 1e-9

#: Verdicts of an interval.
BETTER, WORSE, ALIKE, UNCLEAR = "better", "worse", "as good", "no difference shown"


class Difference(NamedTuple):
    """Mean difference of two cross-validated scores.

    Attributes:
      mean: of the first minus the second, in units of the metric.
      low, high: its 95 % confidence interval; infinite with fewer than two folds.
      folds: number of folds on which both ran.
    """

    mean: float
    low: float
    high: float
    folds: int

    def verdict(self, margin: float) -> str:
        """What the interval shows about the first score: one of the four constants of this module.

        Args:
          margin: a difference that hardly matters, in units of the metric; infinite if unknown.
        """
        if self.low > 0:
            return BETTER
        if self.high < 0:
            return WORSE
        alike = -margin <= self.low and self.high <= margin and np.isfinite(margin)
        return ALIKE if alike else UNCLEAR


def interval(values: np.ndarray, share: float) -> tuple[float, float, float]:
    """Mean of scores or differences over folds, and its confidence interval.

    Args:
      values: ``(F,)``; NaN where a fold did not run.
      share: test rows per training row, as for :func:`corrected_error`.
    """
    known = values[~np.isnan(values)]
    if not len(known):
        return float("nan"), -np.inf, np.inf
    mean = float(known.mean())
    if len(known) < 2:
        return mean, -np.inf, np.inf
    reach = float(stats.t.ppf(0.5 + CONFIDENCE / 2, len(known) - 1) * corrected_error(known, share))
    return mean, mean - reach, mean + reach


def corrected_error(values: np.ndarray, share: float) -> np.float64:
    """Standard error of a mean over folds that share training rows (Nadeau and Bengio 2003).

    The variance of the mean is ``(1 / F + share) * var``.

    Args:
      values: ``(F,)`` scores or differences, F at least 2, none missing.
      share: test rows per training row.
    """
    return np.sqrt((1.0 / len(values) + share) * values.var(ddof=1))


def difference(first: np.ndarray, second: np.ndarray, share: float) -> Difference:
    """The paired difference of two series of scores ``(F,)`` over the same folds."""
    both = first - second
    return Difference(*interval(both, share), int((~np.isnan(both)).sum()))


def above_chance(scores: np.ndarray, chance: np.ndarray, share: float) -> float:
    """One-sided p-value of the hypothesis that a cross-validated score is not above chance.

    A t test with the error of :func:`corrected_error`.

    Args:
      scores: ``(F,)`` of folds; NaN where one did not run.
      chance: ``(F,)`` scores there without any column.
      share: test rows per training row.
    """
    gain = _gains(scores, chance)
    if len(gain) < 2 or not gain.any():
        return 1.0
    error = corrected_error(gain, share)
    if error == 0:
        return 0.0 if gain.mean() > 0 else 1.0
    return float(stats.t.sf(gain.mean() / error, len(gain) - 1))


def mean_gain(scores: np.ndarray, chance: np.ndarray) -> float:
    """Mean of cross-validated scores ``(F,)`` minus scores without any column; 0 if none ran."""
    gain = _gains(scores, chance)
    return float(gain.mean()) if len(gain) else 0.0


def _gains(scores: np.ndarray, chance: np.ndarray) -> np.ndarray:
    """Differences where both are known; exactly 0 where they are equal up to rounding errors."""
    known = ~np.isnan(scores - chance)
    scores, chance = scores[known], chance[known]
    return np.where(np.isclose(scores, chance, rtol=_SAME, atol=_SAME), 0.0, scores - chance)
