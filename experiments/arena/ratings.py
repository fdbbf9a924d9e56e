"""Ratings from wins in pairs: Bradley and Terry's model on Elo's scale, with a bootstrap of tables.

A table is a game of each pair of selectors that have a score on it. Selectors are compared on the
splits that both have.
"""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.special import expit

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

#: Draws of tables: with a tenth of them, who is certainly better depends on the seed.
DRAWS = 2000

#: Share of the draws in which one has to be above the other to be certainly better.
CERTAIN = 0.975

#: Newton's steps, of at most a unit of log odds; they end when all are shorter than the other.
_STEPS, _LAST_STEP = 100, 1e-6

#: Fewer tables show nothing: who is better by chance wins five games in a row with odds of 1 to 31.
MIN_TABLES = 6


#: Tables that are rated; on the others no column matters.
RATED = tuple(name for name, table in TABLES.items() if table.shape != "noise")


class Scores(NamedTuple):
    """Values of selections, such as mean scores over judges and numbers of columns.

    Attributes:
      values: ``(tables, splits, selectors)``; NaN where there is none.
      tables: their names.
      selectors: their names.
    """

    values: np.ndarray
    tables: list[str]
    selectors: list[str]

    def means(self) -> pd.DataFrame:
        """Means over the splits, ``(tables, selectors)``, where there are any.

        An easy split is no advantage: a selector that has only some of the splits has the mean of
        random columns on all, and the difference from them on its own.
        """
        means = pd.DataFrame(_mean(self.values, 1), self.tables, self.selectors)
        if RANDOM not in self.selectors:
            return means
        return self.minus(RANDOM).add(means[RANDOM], axis=0).fillna(means)

    def minus(self, name: str) -> pd.DataFrame:
        """Mean differences from a selector, ``(tables, selectors)``, on the splits of both."""
        differences = self.values - self.values[:, :, [self.selectors.index(name)]]
        return pd.DataFrame(_mean(differences, 1), self.tables, self.selectors)


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
        """Whether the first is rated above the second in :data:`CERTAIN` of the draws.

        Nothing is certain of a selector with scores on fewer than :data:`MIN_TABLES` tables.
        """
        if min(self.tables[first], self.tables[second]) < MIN_TABLES:
            return False
        names = list(self.elo.index)
        above = self.draws[:, names.index(first)] > self.draws[:, names.index(second)]
        return bool(above.mean() >= CERTAIN)


def _mean(values: np.ndarray, axis: int) -> np.ndarray:
    """The mean of what is not NaN; NaN where nothing is."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        return np.nanmean(values, axis=axis)


def by_split(rows: pd.DataFrame, values: pd.Series) -> Scores:
    """Values of rows by table and split, on all tables that are rated.

    A selector that failed has that of random columns; one not for the task of a table has none.
    """
    part = rows.assign(value=values, failed=rows["failure"] != "")
    part = part[part["table"].isin(RATED) & (part["failure"] != NOT_FOR_TASK)]
    names, splits = list(dict.fromkeys(part["selector"])), sorted(part["split"].unique())
    found, failed = (
        part.pivot(index=["table", "split"], columns="selector", values=name)
        .reindex(index=pd.MultiIndex.from_product([RATED, splits]), columns=names)
        .to_numpy(float)
        .reshape(len(RATED), len(splits), len(names))
        for name in ("value", "failed")
    )
    if RANDOM in names:
        found = np.where(failed == 1.0, found[:, :, [names.index(RANDOM)]], found)
    return Scores(found, list(RATED), names)


def scored(rows: pd.DataFrame) -> Scores:
    """Scores from rows, see :func:`by_split`; rows of :data:`runs.ALL` are left out."""
    rows = rows[rows["selector"] != ALL]
    values, tables, names = by_split(rows, rows[SCORES].mean(axis=1))
    # A table on which a single selector has run is no game.
    games = (~np.isnan(values)).any(axis=1).sum(axis=1) > 1
    return Scores(values[games], [tables[index] for index in np.flatnonzero(games)], names)


def wins(scores: Scores) -> np.ndarray:
    """Whether the first of a pair is better on a table, ``(tables, selectors, selectors)``.

    1 for better, 0.5 for equal, 0 for worse; NaN if they have no split in common.
    """
    values = scores.values
    difference = _mean(values[:, :, :, None] - values[:, :, None, :], 1)
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
    elo = pd.Series(_elo(won, np.ones((1, tables)), scores.selectors)[0], scores.selectors)
    elo = elo.dropna().sort_values(ascending=False, kind="stable")
    rng = np.random.default_rng(seed)
    weights = rng.multinomial(tables, np.full(tables, 1 / tables), draws)
    drawn = _elo(won, weights, scores.selectors)
    order = [scores.selectors.index(name) for name in elo.index]
    numbers = (~np.isnan(scores.values).all(axis=1)).sum(axis=0)
    counts = pd.Series(numbers, scores.selectors).loc[elo.index]
    return Ratings(elo, drawn[:, order], counts)


def _elo(won: np.ndarray, weights: np.ndarray, names: list[str]) -> np.ndarray:
    """Ratings ``(draws, selectors)`` with weights ``(draws, tables)``; NaN without a game."""
    number = len(names)
    without_own = np.where(np.eye(number, dtype=bool), 0.0, np.nan_to_num(won))
    total = (weights @ without_own.reshape(len(won), -1)).reshape(-1, number, number)
    strength = _strengths(total) / np.log(10)
    strength[~(total + total.swapaxes(1, 2)).any(axis=2)] = np.nan
    zero = _mean(strength, 1)
    if RANDOM in names:
        chance = strength[:, names.index(RANDOM)]
        zero = np.where(np.isnan(chance), zero, chance)
    return _ANCHOR + _POINTS * (strength - zero[:, None])


def _strengths(total: np.ndarray) -> np.ndarray:
    """Log odds ``(draws, selectors)`` that maximise the penalised likelihood of wins.

    Args:
      total: wins ``(draws, selectors, selectors)`` of the first of a pair.
    """
    games, wins_of = total + total.swapaxes(1, 2), total.sum(axis=2)
    strength, diagonal = np.zeros(wins_of.shape), np.arange(total.shape[1])
    for _ in range(_STEPS):
        odds = expit(strength[:, :, None] - strength[:, None, :])
        slope = wins_of - (games * odds).sum(axis=2) - strength / _INVERSE_PENALTY
        curvature = games * odds * (odds - 1.0)
        curvature[:, diagonal, diagonal] = 1.0 / _INVERSE_PENALTY - curvature.sum(axis=2)
        step = np.linalg.solve(curvature, slope[:, :, None])[:, :, 0]
        strength += np.clip(step, -1.0, 1.0)
        if np.abs(step).max(initial=0.0) < _LAST_STEP:
            break
    return strength
