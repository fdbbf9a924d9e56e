"""The rule for method and number of columns: the fewest that are not worse than the best.

Breiman et al. (1984), section 3.4.3: the simplest model whose cross-validated score is within one
standard error of the best one. The error is that of the paired difference over the same folds, so
that folds which are hard for all methods do not count, and it accounts for folds that share
training rows (Nadeau and Bengio 2003). With few rows this error is large, so that the rule gives up
at most a small margin for fewer columns, however large the error; and a quarter of that margin is
always given up, however small the error.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from fsjax.auto.contest.differences import corrected_error

#: Share of the margin that is always given up for fewer columns.
_NOTHING = 0.25

#: Scores that differ by less than this share of them are equal.
_SAME = 1e-9

#: Name of the merged rankings of the simple methods among the methods.
CONSENSUS = "consensus"

#: A method, and how many columns it selects.
Key = tuple[str, int]

#: Scores of each fold ``(F,)`` by method and number of columns; NaN where it did not run.
FoldScores = Mapping[Key, np.ndarray]

#: Costs of the columns of each fold, likewise; ``None`` if their number counts.
Costs = FoldScores | None


class Choice(NamedTuple):
    """The choice of the rule.

    Attributes:
      method, size: the chosen method and number of columns.
      mean: their cross-validated score.
      best_method, best_size: those of the best score.
      best: the best score.
      error: its standard error.
    """

    method: str
    size: int
    mean: float
    best_method: str
    best_size: int
    best: float
    error: float


def standard_error(values: np.ndarray, folds: int) -> float:
    """Standard error of a cross-validated mean.

    Args:
      values: scores, or differences of scores, over the folds of all rounds.
      folds: number of folds in a round. Further rounds split the same rows again: they estimate the
        spread better and do not make the error smaller.
    """
    known = values[~np.isnan(values)]
    if len(known) < 2:
        return 0.0
    return float(known.std(ddof=1) / np.sqrt(min(folds, len(known))))


def choose(scores: FoldScores, folds: int, costs: Costs = None, margin: float = np.inf) -> Choice:
    """Chooses the fewest columns that are within one standard error of the best score.

    Random columns are not chosen. Among the methods with that number of columns the consensus is
    chosen, unless another is better by more than a standard error: what many selectors agree on
    holds on new rows more often than what won on a few folds. Otherwise the method with the best
    mean score from this number to twice as many columns is chosen, because scores of single numbers
    are noisy.

    Args:
      scores: by method and number of columns.
      folds: number of folds in a round.
      costs: of the columns, over the same folds; their mean is minimised instead of the number.
      margin: largest difference from the best score that is given up for fewer columns.
    """
    means = _without_last_bits(means_on_common_folds(scores))
    allowed = [key for key in means if key[0] != "random"] or list(means)
    top = max(allowed, key=lambda key: (means[key], -key[1]))
    cost = {key: _mean_cost(key, costs) for key in means}
    good = [key for key in allowed if not_worse(scores, key, top, folds, margin)]
    least = min(cost[key] for key in good)
    fewest = [key for key in good if cost[key] <= least]
    method, size = max(fewest, key=lambda key: (_around(means, key), means[key]))
    key = (CONSENSUS, size)
    near = key in allowed and all(not_worse(scores, key, other, folds) for other in fewest)
    if near and cost[key] <= least:
        method = CONSENSUS
    return Choice(
        method,
        size,
        means[method, size],
        *top,
        means[top],
        standard_error(scores[top], folds),
    )


def _mean_cost(key: Key, costs: Costs) -> float:
    """The mean cost of a selection over the folds in which it ran; its size without costs."""
    return float(key[1]) if costs is None else float(np.nanmean(costs[key]))


def _without_last_bits(means: Mapping[Key, float]) -> dict[Key, float]:
    """Mean scores where those are equal that differ by rounding errors only."""
    unit = _SAME * max(map(abs, means.values())) or 1.0
    return {key: round(mean / unit) * unit for key, mean in means.items()}


def not_worse(scores: FoldScores, key: Key, top: Key, folds: int, margin: float = np.inf) -> bool:
    """Whether ``key`` is within one standard error of ``top``, over the same folds."""
    behind = scores[top] - scores[key]
    known = behind[~np.isnan(behind)]
    reach = min(paired_error(known, folds), margin)
    if np.isfinite(margin):
        reach = max(reach, _NOTHING * margin)
    reach += _SAME * float(np.nanmax(np.abs(scores[top]), initial=0.0))
    return len(known) > 0 and float(known.mean()) <= reach


def paired_error(differences: np.ndarray, folds: int) -> float:
    """Standard error of a mean difference over folds that share training rows.

    Args:
      differences: of scores over the same folds of all rounds, none missing.
      folds: number of folds in a round.
    """
    if len(differences) < 2:
        return 0.0
    return float(corrected_error(differences, 1.0 / max(folds - 1, 1)))


def means_on_common_folds(scores: FoldScores) -> dict[Key, float]:
    """Mean scores that are comparable although some methods ran on only some of the folds.

    Each mean is that of the differences from the average of the methods that ran on most folds,
    plus the mean of this average.
    """
    ran = {key: values for key, values in scores.items() if not np.isnan(values).all()}
    most = max(int((~np.isnan(values)).sum()) for values in ran.values())
    complete = [values for values in ran.values() if int((~np.isnan(values)).sum()) == most]
    level = np.mean(complete, axis=0)
    return {
        key: float(np.nanmean(values - level) + np.nanmean(level))
        if not np.isnan(values - level).all()
        else float(np.nanmean(values))
        for key, values in ran.items()
    }


def nested_scores(
    scores: FoldScores, folds: int, margin: float = np.inf, costs: Costs = None
) -> np.ndarray:
    """The score on each fold of what the rule chooses from the other folds.

    The score of the choice itself is optimistic, as it is the best of many. Only the first round
    takes part: in further rounds the rows of each of its folds are test rows again, and these rows
    decided which methods take part in them.

    Args:
      scores: by method and number of columns, over the folds of all rounds, the first round first.
      folds: number of folds in a round.
      margin, costs: as for :func:`choose`.

    Returns:
      ``(folds,)`` scores, one for each fold of the first round.
    """
    first = {key: values[:folds] for key, values in scores.items()}
    first = {key: values for key, values in first.items() if not np.isnan(values).any()} or first
    honest = np.full(folds, np.nan)
    for fold, key in nested_choices(first, folds, margin, costs).items():
        honest[fold] = first[key][fold]
    return honest


def nested_choices(
    scores: FoldScores, folds: int, margin: float = np.inf, costs: Costs = None
) -> dict[int, Key]:
    """For each fold of a round what the rule chooses from its other folds, if they ran.

    Args:
      scores: by method and number of columns, over the folds of one round.
      folds, margin, costs: as for :func:`choose`; costs may be those of more folds after these.
    """
    choices: dict[int, Key] = {}
    for fold in range(folds):
        others = {key: np.delete(values, fold) for key, values in scores.items()}
        others = {key: values for key, values in others.items() if not np.isnan(values).all()}
        known = costs and {key: np.delete(costs[key][:folds], fold) for key in others}
        if others:
            choice = choose(others, folds, known, margin)
            choices[fold] = choice.method, choice.size
    return choices


def enough(
    scores: FoldScores, choice: Choice, folds: int, margin: float = np.inf, costs: Costs = None
) -> dict[str, int]:
    """The fewest (or cheapest) columns with which each method is not worse than the best."""
    fewest: dict[str, int] = {}
    for method, size in sorted(scores, key=lambda key: (_mean_cost(key, costs), key[1])):
        best = (choice.best_method, choice.best_size)
        if method not in fewest and not_worse(scores, (method, size), best, folds, margin):
            fewest[method] = size
    return fewest


def _around(means: Mapping[Key, float], key: Key) -> float:
    """Mean score of a method from this number of columns to twice as many."""
    method, size = key
    return float(
        np.mean([m for (name, k), m in means.items() if name == method and size <= k <= 2 * size])
    )
