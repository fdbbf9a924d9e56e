"""Methods of the library as contenders: one training ranks the units for all sizes."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from fsjax import Method, fit
from fsjax.auto.contest.network_settings import (
    MAX_COLUMNS,
    MAX_ROWS,
    MAX_SELECTED,
    ContenderTraining,
    fit_options,
    training_of,
    validation_share,
)
from fsjax.auto.contest.rankers import Ranking, univariate
from fsjax.auto.contest.rankers.parts import Part
from fsjax.auto.contest.stacked_fits import split_at, standardised
from fsjax.auto.reading.column_operations import densify
from fsjax.data import Dataset, Scaler, apply, fit_scaler
from fsjax.errors import UnreachedPhaseWarning
from fsjax.methods import get_method
from fsjax.registry import Registration
from fsjax.tasks import get_task

#: Registered scalings that give the same result on standardised columns as on raw ones.
_BY_COLUMN = ("paper", "standard")


class _FoldRows(NamedTuple):
    """The data of one network of several.

    Attributes:
      X: ``(n, kept)`` float32.
      y: ``(n,)`` or ``(n, C)``.
      weights: ``(n,)``, or None if all rows count alike.
      kept: column numbers in the table, ascending.
      others: the rest of the columns, the best by F first.
    """

    X: np.ndarray
    y: np.ndarray
    weights: np.ndarray | None
    kept: np.ndarray
    others: np.ndarray


def rank_folds(
    name: str,
    parts: Sequence[Part],
    task: str,
    groups: np.ndarray,
    sizes: Sequence[int],
    seed: int,
) -> list[Ranking]:
    """Trains a method of the library on the training rows of several folds, as one program.

    Methods rank columns, and a unit counts as much as its best column, as with the simple
    selectors. Gates, penalties and selectors that units share would favour units of many columns:
    LassoNet and STG ranked twelve columns of noise before one that matters.

    Longer parts are cut to the length of the shortest, usually by one row, so that all have equal
    shapes.

    Args:
      parts: training rows of each fold.
      groups: ``(D,)`` the unit of each column.
      seed: of the first fold; each further fold has the next seed.

    Returns:
      A ranking for each part. Columns that screening left out follow by their F statistic.
    """
    build = get_method(name)
    facts = build.registration
    about = build().about
    training = training_of(facts, min(len(part.y) for part in parts), len(groups))
    trained_task = task if task in about.tasks else "reconstruction"
    # Counts are trained as a regression of their square roots.
    trained_task = "regression" if trained_task == "counts" else trained_task
    folds = _folds_of(parts, task, facts, training, seed)
    length = len(folds[0].y)
    starts = length * np.arange(len(folds))
    y = np.concatenate([_target(fold.y, task, trained_task) for fold in folds])
    method = _method(facts, training, groups, len(folds[0].kept))
    # A filter has no epochs to choose from, so all rows train.
    share = 0.0 if method.loss is None else validation_share(training, length)
    splits = [
        split_at(int(start), y[start : start + length], trained_task, share, seed + number)
        for number, start in enumerate(starts)
    ]
    with warnings.catch_warnings():
        # The epochs are chosen here, and the contest judges what they lead to.
        warnings.simplefilter("ignore", UnreachedPhaseWarning)
        warnings.filterwarnings("ignore", ".* columns with the same score")
        result = fit(
            method,
            Dataset("table", np.concatenate([fold.X for fold in folds]), y),
            seeds=range(seed, seed + len(folds)),
            split=splits,
            task=trained_task,
            scaling="standard" if facts.scaling in _BY_COLUMN else "none",
            # Methods that can select any number are asked for one: the ranking has all columns.
            num_features=None if "num_features" in facts.parameters else 1,
            sample_weight=_joined([fold.weights for fold in folds]),
            **fit_options(facts, training, length, trained_task),
        )
    if training is not None and training.importance is not None:
        scores = training.importance(result)
        rankings = np.argsort(-scores, axis=1, kind="stable")
    else:
        scores, rankings = result.scores, result.ranking
    return [
        _ranking(fold_scores, best_first, fold, groups, sizes)
        for fold_scores, best_first, fold in zip(scores, rankings, folds, strict=True)
    ]


def _folds_of(
    parts: Sequence[Part],
    task: str,
    facts: Registration,
    training: ContenderTraining | None,
    seed: int,
) -> list[_FoldRows]:
    """The rows and columns of each part that take part in training, of equal shapes."""
    most = MAX_ROWS if training is None else training.most_rows
    length = min(most, *(len(part.y) for part in parts))
    folds = []
    for number, part in enumerate(parts):
        rows = stratified_rows(part.y, task, length, seed + number)
        kept, others = screened_columns(part, task, seed + number)
        X = _scaled(part, facts.scaling, rows, kept)
        weights = None if part.weights is None else part.weights[rows]
        folds.append(_FoldRows(X, part.y[rows], weights, kept, others))
    return folds


def screened_columns(part: Part, task: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Sure independence screening (Fan and Lv 2008) of a table with more than MAX_COLUMNS.

    Args:
      seed: of the rows from which the statistic is computed.

    Returns:
      The columns that are kept, ascending, and all others in descending order of their univariate
      F statistic in these rows. Without screening the second array is empty.
    """
    columns = np.arange(part.X.shape[1])
    if len(columns) <= MAX_COLUMNS:
        return columns, columns[:0]
    best_first = np.argsort(-univariate(part, task, seed), kind="stable")
    return np.sort(best_first[:MAX_COLUMNS]), best_first[MAX_COLUMNS:]


def stratified_rows(y: np.ndarray, task: str, most: int, seed: int) -> np.ndarray:
    """At most ``most`` row numbers, ascending, with every stratum of the target in proportion.

    Each stratum (class, or event and censored) keeps at least one row if ``most`` allows it.
    """
    rows = np.arange(len(y))
    if len(rows) <= most:
        return rows
    rng = np.random.default_rng((seed, 23))
    strata = get_task(task).target.strata(y)
    shuffled = rng.permutation(rows)
    if strata is None:
        return np.sort(shuffled[:most])
    _, label, count = np.unique(strata[shuffled], return_inverse=True, return_counts=True)
    # The place of each row within its stratum, as a share of its size: the smallest shares are
    # drawn, with the first row of every stratum before any second one.
    by_label = np.argsort(label, kind="stable")
    place = np.empty(len(rows))
    place[by_label] = np.arange(len(rows)) - np.repeat(np.cumsum(count) - count, count)
    share = np.where(place == 0, -1.0, place / count[label])
    return np.sort(shuffled[np.argsort(share, kind="stable")[:most]])


def _scaled(part: Part, scaling: str, rows: np.ndarray, kept: np.ndarray) -> np.ndarray:
    """Some rows and columns, float32, under the scaling that the method is registered with."""
    if scaling in _BY_COLUMN or part.raw is None:
        return densify(part.X[rows][:, kept]).astype(np.float32)
    # From all columns and rows: a scaling may depend on the whole table.
    scaler = fit_scaler(scaling, part.raw)
    shift, scale = (np.broadcast_to(values, part.X.shape[1:])[kept] for values in scaler)
    return apply(Scaler(shift, scale), densify(part.raw[rows][:, kept]))


def _joined(weights: Sequence[np.ndarray | None]) -> np.ndarray | None:
    known = [part for part in weights if part is not None]
    return np.concatenate(known) if known else None


def _target(y: np.ndarray, task: str, trained_task: str) -> np.ndarray:
    """The target to train on: roots of counts, standardised numbers, otherwise unchanged."""
    numbers = np.sqrt(y) if task == "counts" else y
    return standardised(numbers) if trained_task == "regression" else numbers


def _method(
    facts: Registration, training: ContenderTraining | None, groups: np.ndarray, columns: int
) -> Method:
    """The method with the settings of its training.

    The number of columns depends only on the table, because another one needs another compilation.
    """
    settings = {} if training is None else dict(training.settings)
    if "num_features" in facts.parameters:
        units = min(int(groups.max()) + 1, columns)
        settings["num_features"] = min(MAX_SELECTED, max(1, units // 2))
    return get_method(facts.name)(**settings)


def _ranking(
    scores: np.ndarray,
    best_first: np.ndarray,
    fold: _FoldRows,
    groups: np.ndarray,
    sizes: Sequence[int],
) -> Ranking:
    """All units of a fold: those that trained, by the method's scores, then the others."""
    scores = np.where(np.isnan(scores), -np.inf, np.asarray(scores, np.float64))
    trained_units = groups[fold.kept]
    unit_scores = np.full(int(groups.max()) + 1, -np.inf)
    np.maximum.at(unit_scores, trained_units, scores)
    order = np.concatenate([trained_units[best_first], groups[fold.others]])
    units = np.fromiter(dict.fromkeys(order.tolist()), int)
    # Units that did not train follow, in the order of their F statistic.
    others = units[~np.isin(units, trained_units)]
    least = scores[np.isfinite(scores)].min(initial=0.0)
    unit_scores[others] = least - np.arange(1, len(others) + 1) / max(len(others), 1)
    return Ranking({size: units[:size] for size in sizes}, unit_scores)
