"""Methods of the library as contenders: one training ranks the units for every size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from fsjax.auto.network_training import (
    MOST_ROWS,
    MOST_SELECTED,
    Training,
    fit_options,
    training_of,
    validation_share,
)
from fsjax.auto.rankers import Ranking
from fsjax.auto.rankers.parts import Part
from fsjax.auto.screening import dense_columns, drawn_rows, screened_columns
from fsjax.engine.fit import fit
from fsjax.method import About, Method
from fsjax.registry import Registration, about_of, get_method
from fsjax.tables.dataset import Dataset
from fsjax.tables.scaling import Scaler, apply, fit_scaler
from fsjax.tables.splits import Split, validation_split
from fsjax.tasks import TABLE
from fsjax.tasks.table import mean_and_deviation

#: Registered scalings that give the same numbers from standardised columns as from raw ones.
_BY_COLUMN = ("paper", "standard")


class _Rows(NamedTuple):
    """What one network of several sees.

    Attributes:
      X: ``(n, kept)`` float32.
      y: ``(n,)`` or ``(n, C)``.
      kept: column numbers in the table, ascending.
      others: the rest of the columns, the best by F first.
    """

    X: np.ndarray
    y: np.ndarray
    kept: np.ndarray
    others: np.ndarray


def fits_task(name: str, task: str) -> bool:
    """Whether a method of the library can select columns for a task."""
    return bool(
        {task, "reconstruction"}.intersection(about_of(get_method(name).registration).tasks)
    )


def rank(
    name: str,
    part: Part,
    task: str,
    groups: np.ndarray,
    sizes: Sequence[int],
    seed: int,
    effort: float = 1.0,
) -> Ranking:
    """Trains a method of the library on some rows; see :func:`rank_folds`."""
    return rank_folds(name, [part], task, groups, sizes, seed, effort)[0]


def rank_folds(
    name: str,
    parts: Sequence[Part],
    task: str,
    groups: np.ndarray,
    sizes: Sequence[int],
    seed: int,
    effort: float = 1.0,
) -> list[Ranking]:
    """Trains a method of the library on the training rows of several folds, by one program.

    The longer parts are cut to the length of the shortest, by a row as a rule, so that all have
    equal shapes.

    Args:
      name: of a registered method.
      parts: training rows of each fold.
      task: the task.
      groups: ``(D,)`` the unit of each column.
      sizes: numbers of units that are wanted.
      seed: of the first fold; each further one has the next.
      effort: share of the optimiser steps, in (0, 1]. Another effort is another program.

    Returns:
      A ranking for each part. Columns that screening left out follow by their F statistic.
    """
    build = get_method(name)
    facts = build.registration
    about = about_of(facts)
    training = training_of(facts, min(len(part.y) for part in parts), len(groups))
    trained_task = task if task in about.tasks else "reconstruction"
    # Roots of counts are numbers like others, whatever their size.
    trained_task = "regression" if trained_task == "counts" else trained_task
    folds = _folds_of(parts, task, facts, training, seed)
    length = len(folds[0].y)
    starts = length * np.arange(len(folds))
    y = np.concatenate([_target(fold.y, task, trained_task) for fold in folds])
    method = _method(facts, training, groups, len(folds[0].kept))
    # A filter has no epochs to choose from: all rows are its training rows.
    share = 0.0 if method.loss is None else validation_share(training, length)
    splits = [
        _split(y[start : start + length], share, trained_task, seed + number, int(start))
        for number, start in enumerate(starts)
    ]
    screened = len(folds[0].others) > 0
    grouped = int(groups.max()) + 1 < len(groups)
    result = fit(
        method,
        Dataset("table", np.concatenate([fold.X for fold in folds]), y),
        seeds=range(seed, seed + len(folds)),
        split=splits,
        task=trained_task,
        scaling="standard" if facts.scaling in _BY_COLUMN else "none",
        num_features=_number(facts, about),
        groups=groups if grouped and about.takes_groups and not screened else None,
        **fit_options(facts, training, length, trained_task, effort),
    )
    if training is not None and training.importance is not None:
        scores = training.importance(result)
        rankings = np.argsort(-scores, axis=1, kind="stable")
    else:
        scores, rankings = result.scores, result.ranking
    return [
        _ranking(of_fold, best_first, fold, groups, sizes)
        for of_fold, best_first, fold in zip(scores, rankings, folds, strict=True)
    ]


def _folds_of(
    parts: Sequence[Part],
    task: str,
    facts: Registration,
    training: Training | None,
    seed: int,
) -> list[_Rows]:
    """The rows and columns of each part that take part in training, of equal shapes."""
    most = MOST_ROWS if training is None else training.most_rows
    length = min(most, *(len(part.y) for part in parts))
    folds = []
    for number, part in enumerate(parts):
        rows = drawn_rows(part.y, task, length, seed + number)
        kept, others = screened_columns(part, task, seed + number)
        X = _scaled(part, facts.scaling, rows, kept)
        folds.append(_Rows(X, part.y[rows], kept, others))
    return folds


def _scaled(part: Part, scaling: str, rows: np.ndarray, kept: np.ndarray) -> np.ndarray:
    """Some rows and columns, float32, under the scaling that the method is registered with."""
    if scaling in _BY_COLUMN or part.raw is None:
        return dense_columns(part.X[rows], kept).astype(np.float32)
    # Of all columns and rows: a scaling may look at the table as a whole.
    scaler = fit_scaler(scaling, part.raw)
    shift, scale = (np.broadcast_to(of, part.X.shape[1:])[kept] for of in scaler)
    return apply(Scaler(shift, scale), dense_columns(part.raw[rows], kept))


def _target(y: np.ndarray, task: str, trained_task: str) -> np.ndarray:
    """The target of the training: roots of counts, standardised numbers, else as it is."""
    numbers = np.sqrt(y) if task == "counts" else y
    if trained_task != "regression":
        return numbers
    mean, deviation = mean_and_deviation(numbers)
    return (numbers - mean) / deviation


def _split(y: np.ndarray, share: float, task: str, seed: int, start: int) -> Split:
    """Rows that train and rows that validate, from a block of rows that begins at ``start``."""
    strata = TABLE[task].strata(y)
    train, valid = validation_split(len(y), share, seed, strata)
    return Split(train + start, valid + start, valid[:0])


def _method(
    facts: Registration, training: Training | None, groups: np.ndarray, columns: int
) -> Method:
    """The method with the settings of its training.

    A number of columns depends on the table alone: another one would be another program.
    """
    settings = {} if training is None else dict(training.settings)
    if "num_features" in facts.parameters:
        units = min(int(groups.max()) + 1, columns)
        settings["num_features"] = min(MOST_SELECTED, max(1, units // 2))
    return get_method(facts.name)(**settings)


def _number(facts: Registration, about: About) -> int | None:
    """Methods that select any number are asked for one; the ranking has all columns anyway."""
    return None if "num_features" in facts.parameters else 1


def _ranking(
    scores: np.ndarray,
    best_first: np.ndarray,
    fold: _Rows,
    groups: np.ndarray,
    sizes: Sequence[int],
) -> Ranking:
    """All units of a fold: those that trained by the method, the others after them."""
    scores = np.where(np.isnan(scores), -np.inf, np.asarray(scores, np.float64))
    number = int(groups.max()) + 1
    trained_columns = len(scores) == len(fold.kept)
    unit_of = groups[fold.kept] if trained_columns else np.arange(number)
    of_units = np.full(number, -np.inf)
    np.maximum.at(of_units, unit_of, scores)
    order = np.concatenate([unit_of[best_first], groups[fold.others]])
    units = np.fromiter(dict.fromkeys(order.tolist()), int)
    # Units that did not train: below all that did, in the order of their F statistic.
    behind = units[~np.isin(units, unit_of)]
    least = scores[np.isfinite(scores)].min(initial=0.0)
    of_units[behind] = least - np.arange(1, len(behind) + 1) / max(len(behind), 1)
    return Ranking({size: units[:size] for size in sizes}, of_units)
