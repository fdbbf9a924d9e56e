"""Paired comparisons over the same folds: differences of scores, their intervals and verdicts."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from scipy import stats

#: Confidence of the intervals.
CONFIDENCE: Final = 0.95

#: Scores that differ by less, relatively or absolutely, are equal.
_SAME: Final = 1e-9

#: Fewest degrees of freedom with which an interval over rows is known.
_LEAST_FREEDOM: Final = 1.0

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


def row_difference(
    values: np.ndarray, clusters: np.ndarray, folds: np.ndarray, share: float
) -> Difference:
    """The mean of the differences of two models on test rows, with the spread between clusters.

    Models of other training rows would differ by more or less. The variance of that is the one by
    which the means of folds vary beyond their test rows, times ``share``, as folds have most of
    their training rows in common (as in :func:`corrected_error`). The interval is too narrow where
    selections vary a lot; ``experiments.studies.selection.comparisons`` measures by how much.

    The interval is Student's. Its degrees of freedom are the number of clusters, had all the same
    share in the difference (Satterthwaite): where two models differ on a few rows only, or by a few
    large values, these are few.

    Args:
      values: ``(n,)`` differences of rows, each the mean over the rounds; NaN where none ran.
      clusters: ``(n,)`` numbers of groups of dependent rows.
      folds: ``(F,)`` the mean difference of each fold on which both ran.
      share: test rows per training row.
    """
    known = ~np.isnan(values)
    values, numbers = values[known], np.unique(clusters[known], return_inverse=True)[1]
    if not len(values):
        return Difference(float("nan"), -np.inf, np.inf, 0)
    mean = float(values.mean())
    if np.abs(values).max() <= _SAME:
        return Difference(0.0, 0.0, 0.0, len(folds))
    size = np.bincount(numbers)
    sums = np.bincount(numbers, values) / len(values)
    freedom = np.square(sums).sum() ** 2 / np.power(sums, 4).sum() - 1.0
    if len(size) < 2 or freedom <= _LEAST_FREEDOM:
        return Difference(mean, -np.inf, np.inf, len(folds))
    spread = np.square(sums - size * mean / len(values)).sum() * len(size) / (len(size) - 1)
    by_training = 0.0
    if len(folds) > 1:
        by_test_rows = (1.0 + 1.0 / share) * spread
        by_training = max(folds.var(ddof=1) - by_test_rows, 0.0)
    error = np.sqrt(spread + share * by_training)
    reach = float(stats.t.ppf(0.5 + CONFIDENCE / 2, min(freedom, len(size) - 1)) * error)
    return Difference(mean, mean - reach, mean + reach, len(folds))


def above_chance(scores: np.ndarray, chance: np.ndarray, share: float) -> float:
    """One-sided p-value of the hypothesis that a cross-validated score is not above chance.

    A t test with the error of :func:`corrected_error`. Equal gains on all F folds have no spread to
    test with; a sign test of the folds gives ``2 ** -F``.

    Args:
      scores: ``(F,)`` of folds; NaN where one did not run.
      chance: ``(F,)`` scores there without any column.
      share: test rows per training row.
    """
    gain = _gains(scores, chance)
    if len(gain) < 2 or not gain.any():
        return 1.0
    error = corrected_error(gain, share)
    if error <= _SAME * np.abs(gain).max():
        return float(0.5 ** len(gain)) if gain.mean() > 0 else 1.0
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
