"""Ratings from wins in pairs: Bradley and Terry's model on Elo's scale, with a bootstrap of tables.

A table is a game of each pair of selectors that have a score on it. Selectors are compared on the
splits that both have.
"""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression

from experiments.arena.rows import SCORES
from experiments.arena.runs import ALL, NOT_FOR_TASK
from experiments.arena.selectors import RANDOM
from experiments.arena.tables import TABLES

#: The rating of random columns, and points for odds of ten to one.
_ANCHOR, _POINTS = 1000.0, 400.0

#: Scores that differ by less are equal: points of accuracy, AUC or R2 times 100.
TIE = 0.05

#: Inverse strength of the penalty on ratings, which keeps them finite if one wins always.
_INVERSE_PENALTY = 10.0

#: Draws of tables.
DRAWS = 200

#: Fewer tables show nothing: who is better by chance wins five games in a row with odds of 1 to 31.
MIN_TABLES = 6


class Scores(NamedTuple):
    """Mean scores over judges and numbers of columns.

    Attributes:
      values: ``(tables, splits, selectors)``; NaN where there is none.
      tables: their names.
      selectors: their names.
    """

    values: np.ndarray
    tables: list[str]
    selectors: list[str]

    def means(self) -> pd.DataFrame:
        """Means over the splits, ``(tables, selectors)``, where there are any."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            means = np.nanmean(self.values, axis=1)
        return pd.DataFrame(means, self.tables, self.selectors)


class Ratings(NamedTuple):
    """Ratings of selectors.

    Attributes:
      elo: by selector, best first; random columns have 1000. Who has no game has no rating.
      draws: ``(draws, selectors)`` ratings on tables drawn with replacement, in the same order; NaN
        for a selector without a game in a draw.
      tables: on how many each has a score.
    """

    elo: pd.Series
    draws: np.ndarray
    tables: pd.Series

    def interval(self) -> pd.DataFrame:
        """The 95 % intervals of the ratings, columns ``low`` and ``high``.

        NaN for a selector with scores on fewer than :data:`MIN_TABLES` tables.
        """
        low, high = np.nanpercentile(self.draws, (2.5, 97.5), axis=0)
        intervals = pd.DataFrame({"low": low, "high": high}, self.elo.index)
        return intervals.where(self.tables >= MIN_TABLES)

    def certainly_better(self, first: str, second: str) -> bool:
        """Whether the first is rated above the second in at least 97.5 % of the draws.

        Nothing is certain of a selector with scores on fewer than :data:`MIN_TABLES` tables.
        """
        if min(self.tables[first], self.tables[second]) < MIN_TABLES:
            return False
        names = list(self.elo.index)
        above = self.draws[:, names.index(first)] > self.draws[:, names.index(second)]
        return bool(above.mean() >= 0.975)


def scored(rows: pd.DataFrame) -> Scores:
    """Scores from rows; a selector that failed has the score of random columns.

    Tables on which no column matters and rows of :data:`runs.ALL` are left out, and selectors have
    no score on tables that are not for them.
    """
    rated = [name for name, table in TABLES.items() if table.shape != "noise"]
    part = rows[rows["table"].isin(rated) & (rows["selector"] != ALL)]
    part = part[part["failure"] != NOT_FOR_TASK]
    names = list(dict.fromkeys(part["selector"]))
    keys = [(table, split) for table in rated for split in sorted(part["split"].unique())]
    part = part.assign(score=part[SCORES].mean(axis=1), failed=part["failure"] != "")
    shape = (len(rated), -1, len(names))
    values, failed = (
        part.pivot(index=["table", "split"], columns="selector", values=value)
        .reindex(index=pd.MultiIndex.from_tuples(keys), columns=names)
        .to_numpy(float)
        .reshape(shape)
        for value in ("score", "failed")
    )
    if RANDOM in names:
        chance = values[:, :, [names.index(RANDOM)]]
        values = np.where(failed == 1.0, chance, values)
    # A table on which a single selector has run is no game.
    games = (~np.isnan(values)).any(axis=1).sum(axis=1) > 1
    return Scores(values[games], [rated[index] for index in np.flatnonzero(games)], names)


def wins(scores: Scores) -> np.ndarray:
    """Whether the first of a pair is better on a table, ``(tables, selectors, selectors)``.

    1 for better, 0.5 for equal, 0 for worse; NaN if they have no split in common.
    """
    values = scores.values
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        difference = np.nanmean(values[:, :, :, None] - values[:, :, None, :], axis=1)
    won = np.where(np.abs(difference) < TIE, 0.5, (difference > 0).astype(float))
    won[np.isnan(difference)] = np.nan
    return won


def rate(scores: Scores, draws: int = DRAWS, seed: int = 0) -> Ratings:
    """Rates selectors by their wins.

    Args:
      scores: of at least two selectors.
      draws: of as many tables as there are, with replacement.
    """
    won = wins(scores)
    tables = len(won)
    elo = pd.Series(_elo(won, np.ones(tables), scores.selectors), scores.selectors)
    elo = elo.dropna().sort_values(ascending=False, kind="stable")
    rng = np.random.default_rng(seed)
    weights = rng.multinomial(tables, np.full(tables, 1 / tables), draws)
    drawn = [_elo(won, weight, scores.selectors) for weight in weights]
    order = [scores.selectors.index(name) for name in elo.index]
    numbers = (~np.isnan(scores.values).all(axis=1)).sum(axis=0)
    counts = pd.Series(numbers, scores.selectors).loc[elo.index]
    return Ratings(elo, np.reshape(drawn, (draws, len(scores.selectors)))[:, order], counts)


def _elo(won: np.ndarray, weights: np.ndarray, names: list[str]) -> np.ndarray:
    """Ratings by selector, with a weight for each table; NaN without a game."""
    total = np.einsum("t,tij->ij", weights, np.nan_to_num(won))
    np.fill_diagonal(total, 0.0)
    games = total + total.T
    if not games.any():
        return np.full(len(names), np.nan)
    first, second = np.nonzero(np.triu(games, 1))
    pairs = np.zeros((len(first), len(names)))
    pairs[np.arange(len(first)), first], pairs[np.arange(len(first)), second] = 1.0, -1.0
    outcomes = np.repeat([1, 0], len(first))
    counts = np.concatenate([total[first, second], total[second, first]])
    model = LogisticRegression(C=_INVERSE_PENALTY, fit_intercept=False)
    strength = model.fit(np.vstack([pairs, pairs]), outcomes, counts).coef_[0] / np.log(10)
    strength[~games.any(axis=1)] = np.nan
    zero = strength[names.index(RANDOM)] if RANDOM in names else np.nan
    if np.isnan(zero):
        zero = np.nanmean(strength)
    return _ANCHOR + _POINTS * (strength - zero)
