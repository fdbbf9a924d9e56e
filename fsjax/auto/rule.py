"""Which method, and how many columns: the fewest that are not worse than the best.

Breiman et al. (1984), section 3.4.3: the simplest model whose cross-validated score is within one
standard error of the best one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

#: Scores of each fold ``(F,)`` by method and number of columns; NaN where it did not run.
Scores = Mapping[tuple[str, int], np.ndarray]


class Choice(NamedTuple):
    """What the rule says.

    Attributes:
      method, size: the choice.
      mean: its cross-validated score.
      best_method, best_size: the best by the mean alone.
      best: that mean.
      error: standard error of the best.
    """

    method: str
    size: int
    mean: float
    best_method: str
    best_size: int
    best: float
    error: float

    @property
    def threshold(self) -> float:
        """The least score that is not worse."""
        return self.best - self.error


def standard_error(values: np.ndarray, folds: int) -> float:
    """Standard error of a cross-validated mean.

    Args:
      values: scores of folds, those of all rounds.
      folds: how many are in a round. Further rounds split the same rows again, so they make the
        spread better known and not the error smaller.
    """
    known = values[~np.isnan(values)]
    if len(known) < 2:
        return 0.0
    return float(known.std(ddof=1) / np.sqrt(min(folds, len(known))))


def choose(scores: Scores, folds: int, without: Iterable[str] = ("random",)) -> Choice:
    """The fewest columns within one standard error of the best; among equals the best.

    Args:
      scores: by method and size.
      folds: folds of a round.
      without: methods that are there for comparison and are not chosen; all columns may be.
    """
    means = {key: float(np.nanmean(values)) for key, values in scores.items() if _ran(values)}
    top = max(means, key=lambda key: (means[key], -key[1]))
    error = standard_error(scores[top], folds)
    left = set(without)
    good = [key for key, mean in means.items() if key[0] not in left and mean >= means[top] - error]
    if not good:
        good = [key for key in means if key[0] not in left] or [top]
        method, size = max(good, key=lambda key: means[key])
    else:
        method, size = min(good, key=lambda key: (key[1], -means[key]))
    return Choice(method, size, means[method, size], *top, means[top], error)


def honest_scores(scores: Scores, folds: int, splits: Sequence[int]) -> np.ndarray:
    """The scores of what the rule chooses without looking at the fold that judges it.

    The score of the choice itself is the best of many, and so too good.

    Args:
      scores: by method and size, over F folds.
      folds: folds of a round.
      splits: the folds to judge on, those of the first round as a rule.

    Returns:
      One score for each of these folds.
    """
    found = []
    for fold in splits:
        others = {key: np.delete(values, fold) for key, values in scores.items()}
        choice = choose(others, folds)
        found.append(scores[choice.method, choice.size][fold])
    return np.array(found)


def enough(scores: Scores, threshold: float) -> dict[str, int]:
    """For each method the fewest columns with which it reaches a score, where it does."""
    found: dict[str, int] = {}
    for (method, size), values in sorted(scores.items(), key=lambda item: item[0][1]):
        if method not in found and _ran(values) and np.nanmean(values) >= threshold:
            found[method] = size
    return found


def _ran(values: np.ndarray) -> bool:
    return bool((~np.isnan(values)).any())
