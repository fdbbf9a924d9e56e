"""Which method, and how many columns: the fewest that are not worse than the best.

Breiman et al. (1984), section 3.4.3: the simplest model whose cross-validated score is within one
standard error of the best one. The error is that of the paired difference over the same folds, so
that folds which are hard for everybody do not count, and it allows for folds that share their
training rows (Nadeau and Bengio 2003). Folds of few rows differ so much that this error is large:
more than a small margin is not given up for fewer columns, however uncertain it is; and a quarter
of that margin is no reason for more columns, however certain it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np

#: Share of the margin by which a score may be behind though the folds agree on it.
_NOTHING = 0.25

#: What the merged rankings of the simple methods are called among the methods.
CONSENSUS = "consensus"

#: A method, and how many columns it selects.
Key = tuple[str, int]

#: Scores of each fold ``(F,)`` by method and number of columns; NaN where it did not run.
Scores = Mapping[Key, np.ndarray]


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


def standard_error(values: np.ndarray, folds: int) -> float:
    """Standard error of a cross-validated mean.

    Args:
      values: scores of folds, or differences of such, those of all rounds.
      folds: how many are in a round. Further rounds split the same rows again, so they make the
        spread better known and not the error smaller.
    """
    known = values[~np.isnan(values)]
    if len(known) < 2:
        return 0.0
    return float(known.std(ddof=1) / np.sqrt(min(folds, len(known))))


def choose(
    scores: Scores,
    folds: int,
    without: Iterable[str] = ("random",),
    costs: Mapping[Key, float] | None = None,
    preferred: str = CONSENSUS,
    margin: float = np.inf,
) -> Choice:
    """The fewest columns that are within one standard error of the best; among equals the best.

    Of the methods with as many columns the preferred one is taken, unless another is better by more
    than a standard error: what many selectors agree on holds on new rows more often than what won
    on a few folds. Otherwise the one whose scores with up to twice as many columns are best: single
    sizes are noisy, and good selectors stay good.

    Args:
      scores: by method and size.
      folds: folds of a round.
      without: methods that are there for comparison and are not chosen; all columns may be.
      costs: of each method and size, to be kept low in place of the number of columns.
      preferred: method that is chosen where others are not better.
      margin: difference to the best that is given up for fewer columns, at most.
    """
    means = levelled_means(scores)
    excluded = set(without)
    allowed = [key for key in means if key[0] not in excluded] or list(means)
    top = max(allowed, key=lambda key: (means[key], -key[1]))
    price = {key: float(key[1]) if costs is None else costs[key] for key in means}
    good = [key for key in allowed if not_worse(scores, key, top, folds, margin)]
    least = min(price[key] for key in good)
    fewest = [key for key in good if price[key] <= least]
    method, size = max(fewest, key=lambda key: (_around(means, key), means[key]))
    key = (preferred, size)
    near = key in allowed and all(not_worse(scores, key, other, folds) for other in fewest)
    if near and price[key] <= least:
        method = preferred
    return Choice(
        method,
        size,
        means[method, size],
        *top,
        means[top],
        standard_error(scores[top], folds),
    )


def not_worse(scores: Scores, key: Key, top: Key, folds: int, margin: float = np.inf) -> bool:
    """Whether one method and size is within one standard error of another, over the same folds."""
    behind = scores[top] - scores[key]
    known = behind[~np.isnan(behind)]
    reach = min(paired_error(known, folds), margin)
    if np.isfinite(margin):
        reach = max(reach, _NOTHING * margin)
    return len(known) > 0 and float(known.mean()) <= reach + 1e-12


def paired_error(differences: np.ndarray, folds: int) -> float:
    """Standard error of a mean difference over folds that share training rows.

    Args:
      differences: of scores over the same folds, those of all rounds, none missing.
      folds: how many are in a round.
    """
    if len(differences) < 2:
        return 0.0
    share = 1.0 / max(folds - 1, 1)
    return float(np.sqrt((1.0 / len(differences) + share) * differences.var(ddof=1)))


def levelled_means(scores: Scores) -> dict[Key, float]:
    """Mean scores, on one level though some methods ran on some of the folds only.

    Each mean is that of the differences to the average of the methods which ran on every fold.
    """
    ran = {key: values for key, values in scores.items() if not np.isnan(values).all()}
    most = max(int((~np.isnan(values)).sum()) for values in ran.values())
    whole = [values for values in ran.values() if int((~np.isnan(values)).sum()) == most]
    level = np.mean(whole, axis=0)
    return {
        key: float(np.nanmean(values - level) + np.nanmean(level))
        if not np.isnan(values - level).all()
        else float(np.nanmean(values))
        for key, values in ran.items()
    }


def honest_scores(scores: Scores, folds: int, margin: float = np.inf) -> np.ndarray:
    """The scores of what the rule chooses without looking at the fold that judges it.

    The score of the choice itself is the best of many, and so too good. Only the first round takes
    part: further rounds judge the rows of each of its folds, and who takes part in them was decided
    by these rows.

    Args:
      scores: by method and size, over the folds of all rounds, those of the first one first.
      folds: folds of a round.
      margin: as for :func:`choose`.

    Returns:
      ``(folds,)``, one score for each fold of the first round.
    """
    first = {key: values[:folds] for key, values in scores.items()}
    first = {key: values for key, values in first.items() if not np.isnan(values).any()} or first
    honest = np.full(folds, np.nan)
    for fold in range(folds):
        others = {key: np.delete(values, fold) for key, values in first.items()}
        others = {key: values for key, values in others.items() if not np.isnan(values).all()}
        if not others:
            continue
        choice = choose(others, folds, margin=margin)
        honest[fold] = first[choice.method, choice.size][fold]
    return honest


def enough(scores: Scores, choice: Choice, folds: int, margin: float = np.inf) -> dict[str, int]:
    """For each method the fewest columns with which it is not worse than the best, if any."""
    fewest: dict[str, int] = {}
    for method, size in sorted(scores, key=lambda key: key[1]):
        best = (choice.best_method, choice.best_size)
        if method not in fewest and not_worse(scores, (method, size), best, folds, margin):
            fewest[method] = size
    return fewest


def _around(means: Mapping[Key, float], key: Key) -> float:
    """Mean over the sizes of a method from this one to twice as many columns."""
    method, size = key
    return float(
        np.mean([m for (name, k), m in means.items() if name == method and size <= k <= 2 * size])
    )
