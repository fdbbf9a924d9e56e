"""Paired comparisons over the same folds: differences of scores, their intervals and verdicts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from scipy import stats

#: Confidence of the intervals.
CONFIDENCE: Final = 0.95

#: Scores that differ by less are equal: relatively and, if their scale is known, absolutely.
_SAME: Final = 1e-9

#: Fewest degrees of freedom with which an interval over rows is known.
_MIN_FREEDOM: Final = 1.0

#: Verdicts of an interval.
BETTER, WORSE, ALIKE, UNCLEAR = "better", "worse", "as good", "no difference shown"


class Difference(NamedTuple):
    """Mean difference of two cross-validated scores.

    Attributes:
      mean: of the first minus the second, in units of the metric.
      low, high: its 95 % confidence interval; infinite with fewer than two pairs.
      pairs: number of folds, or of rows or groups of rows, that both scored.
      unit: what the pairs are, in the plural.
    """

    mean: float
    low: float
    high: float
    pairs: int
    unit: str = "folds"

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


class FoldGains(NamedTuple):
    """By how much the test rows of a fold score more with one prediction than with another.

    Attributes:
      rows: ``(n,)`` numbers of the rows.
      gains: ``(n,)`` differences, in units of the metric.
    """

    rows: np.ndarray
    gains: np.ndarray


def mean_difference(folds: Sequence[FoldGains], clusters: np.ndarray, unit: str) -> Difference:
    """The mean difference of two scores, from those of rows, and its confidence interval.

    A cross-validated score varies as the mean of its rows (Bayle et al. 2020), or of clusters of
    dependent rows. By how much the means of folds vary beyond that is the variance between training
    sets. The interval is Student's; where a few rows make the difference, its degrees of freedom
    are few (Satterthwaite).

    Args:
      folds: of one or several rounds of cross-validation.
      clusters: ``(N,)`` numbers of the clusters of all rows.
      unit: what clusters are, in the plural.
    """
    total, times = np.zeros(len(clusters)), np.zeros(len(clusters))
    for rows, gains in folds:
        total[rows] += gains
        times[rows] += 1
    known = times > 0
    gain_of_rows = total[known] / times[known]
    mean = float(gain_of_rows.mean())
    variance, count = _variance_of_mean(gain_of_rows, clusters[known])
    if count < 2:
        return Difference(mean, -np.inf, np.inf, count, unit)
    between = np.var([gains.mean() for _, gains in folds], ddof=1) if len(folds) > 1 else 0.0
    within = np.mean([_variance_of_mean(gains, clusters[rows])[0] for rows, gains in folds])
    training = max(between - within, 0.0)
    freedom = _freedom(gain_of_rows, clusters[known])
    if freedom <= _MIN_FREEDOM:
        return Difference(mean, -np.inf, np.inf, count, unit)
    error = np.sqrt(variance + training / len(folds))
    reach = float(stats.t.ppf(0.5 + CONFIDENCE / 2, min(freedom, count - 1)) * error)
    return Difference(mean, mean - reach, mean + reach, count, unit)


def _freedom(values: np.ndarray, clusters: np.ndarray) -> float:
    """Degrees of freedom of a sum of ``(n,)`` values: the clusters, if all have the same share."""
    _, numbers = np.unique(clusters, return_inverse=True)
    sums = np.bincount(numbers, weights=values)
    fourth = np.power(sums, 4).sum()
    # Without any difference the interval is 0.
    return float(np.square(sums).sum() ** 2 / fourth - 1.0) if fourth > 0 else float(len(sums))


def wider(first: Difference, second: Difference) -> Difference:
    """The first difference, with an interval that contains those of both."""
    return first._replace(low=min(first.low, second.low), high=max(first.high, second.high))


def _variance_of_mean(values: np.ndarray, clusters: np.ndarray) -> tuple[float, int]:
    """Variance of the mean of ``(n,)`` values, independent by cluster, and number of clusters."""
    _, numbers = np.unique(clusters, return_inverse=True)
    sums = np.bincount(numbers, weights=values - values.mean())
    count = len(sums)
    if count < 2:
        return 0.0, count
    return float(count / (count - 1) * np.square(sums).sum() / len(values) ** 2), count


def above_chance(
    scores: np.ndarray, chance: np.ndarray, share: float, known_scale: bool = True
) -> float:
    """One-sided p-value of the hypothesis that a cross-validated score is not above chance.

    A t test with the error of :func:`corrected_error`. Equal gains on all F folds have no spread to
    test with; a sign test of the folds gives ``2 ** -F``.

    Args:
      scores: ``(F,)`` of folds; NaN where one did not run.
      chance: ``(F,)`` scores there without any column.
      share: test rows per training row.
      known_scale: whether a difference of 1 is large; otherwise scores may be of any size.
    """
    gain = _gains(scores, chance, known_scale)
    if len(gain) < 2 or not gain.any():
        return 1.0
    error = corrected_error(gain, share)
    if error <= _SAME * np.abs(gain).max():
        return float(0.5 ** len(gain)) if gain.mean() > 0 else 1.0
    return float(stats.t.sf(gain.mean() / error, len(gain) - 1))


def mean_gain(scores: np.ndarray, chance: np.ndarray, known_scale: bool = True) -> float:
    """Mean of cross-validated scores ``(F,)`` minus scores without any column; NaN if none ran."""
    gain = _gains(scores, chance, known_scale)
    return float(gain.mean()) if len(gain) else float("nan")


def _gains(scores: np.ndarray, chance: np.ndarray, known_scale: bool) -> np.ndarray:
    """Differences where both are known; exactly 0 where they are equal up to rounding errors."""
    known = ~np.isnan(scores - chance)
    scores, chance = scores[known], chance[known]
    equal = np.isclose(scores, chance, rtol=_SAME, atol=_SAME if known_scale else 0.0)
    return np.where(equal, 0.0, scores - chance)
