"""Training and test rows: folds, halves and permutations that keep dependent rows together.

Also the rows of a fold as models see them, imputed and scaled by its training rows.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from sklearn.model_selection import GroupKFold, KFold, StratifiedGroupKFold, StratifiedKFold

from fsjax import ConfigError, DataError
from fsjax.auto.contest.rankers.parts import Part, standardise
from fsjax.auto.reading.column_operations import has_missing
from fsjax.auto.reading.columns import Design
from fsjax.tasks import get_task

#: Most folds of a round, fewest rows per fold, and fewest rows in all.
FOLDS, _FOLD_ROWS, _MIN_ROWS = 5, 3, 4

#: Fewest rows of a series: three blocks of two.
_MIN_SERIES = 6

#: Number of rounds below some numbers of rows: with few rows, a single round is noisy.
_ROUNDS = ((150, 4), (1500, 2))

#: With more groups than this, folds are balanced enough without a search for the best balance.
_MANY_GROUPS = 2000

#: Rows that a class needs so that several are training rows in each fold, and the fewest that leave
#: one for training and one for testing.
_CLASS_ROWS, _MIN_CLASS_ROWS = 3, 2

#: Pairs of neighbouring blocks into which a series is split for its halves.
_BLOCK_PAIRS = 5

#: A permuted series is shifted by at least this share of its length.
_MIN_SHIFT = 0.1

#: So many groups or rows are put into each of their orders, at most 720; more into random ones.
_FEW_UNITS = 6


class Fold(NamedTuple):
    """One split of the rows: numbers of the training rows and of the test rows."""

    train: np.ndarray
    test: np.ndarray


class CommonClasses(NamedTuple):
    """Rows of the classes that are frequent enough for cross-validation.

    Attributes:
      rows: ``(N,)`` bool, the rows to keep.
      rare: the other classes, as they are in y.
    """

    rows: np.ndarray
    rare: tuple[int, ...]


def group_numbers(
    row_groups: Sequence | np.ndarray | None, rows: int, ordered: bool = False
) -> np.ndarray:
    """The group of each row, ``(N,)`` from 0 in order of appearance.

    Without ``row_groups`` each row is a group of its own.

    Args:
      row_groups: ``(N,)`` labels of any kind, for example patients, or None.

    Raises:
      ConfigError: for labels that do not fit the rows, or together with ``ordered``.
      DataError: for missing labels.
    """
    if row_groups is None:
        return np.arange(rows)
    if ordered:
        raise ConfigError("choose either groups of rows or the order of time, not both")
    shape = np.shape(row_groups)
    if shape != (rows,):
        raise ConfigError(f"row_groups has shape {shape}; give a label for each of the {rows} rows")
    labels = pd.Series(row_groups)
    missing = (labels.isna() | labels.isin(["", " "])).to_numpy()
    if missing.any():
        raise DataError(
            f"row_groups has no label in {int(missing.sum())} of {rows} rows (first: row "
            f"{int(missing.argmax())}, counted from 0); give each of these rows the label of its "
            "group, or one of its own if it stands alone, or leave it out"
        )
    return pd.factorize(labels)[0]


def common_classes(
    y: np.ndarray, task: str, row_groups: Sequence | np.ndarray | None = None
) -> CommonClasses:
    """Finds classes that are too rare to have both training and test rows.

    A class needs 3 rows (2, if fewer than two classes have 3) in at least 2 groups of rows. For
    tasks without classes, all rows are kept.
    """
    if not get_task(task).target.classes:
        return CommonClasses(np.ones(len(y), bool), ())
    classes, places, counts = np.unique(y, return_inverse=True, return_counts=True)
    in_groups = _groups_with(places, group_numbers(row_groups, len(y)))
    several = np.array(in_groups) >= 2
    common = (counts >= _CLASS_ROWS) & several
    if common.sum() < 2:
        common = (counts >= _MIN_CLASS_ROWS) & several
    return CommonClasses(common[places], tuple(classes[~common].tolist()))


def rounds_of(
    y: np.ndarray,
    task: str,
    seed: int,
    row_groups: Sequence | np.ndarray | None = None,
    ordered: bool = False,
) -> list[list[Fold]]:
    """Rounds of cross-validation, all of the same number of folds.

    In each round every row is a test row once, except the first rows of a series and the rows of
    folds whose training rows share one target. Folds whose test rows share one target are merged
    with others.

    Args:
      y: ``(N,)`` or ``(N, C)`` target; :func:`common_classes` removes classes that are too rare.
      task: classes are spread evenly over the folds.
      row_groups: ``(N,)`` labels of rows that stay on one side of every split, such as patients.
      ordered: whether the rows are in order of time: earlier rows train, later ones test.

    Raises:
      ConfigError: for groups that do not fit, or together with ``ordered``.
      DataError: if there are too few rows, rows of a class, or groups.
    """
    groups = group_numbers(row_groups, len(y), ordered)
    if ordered:
        return [_series(y, task)]
    count = _number_of_folds(y, task, groups)
    number = next((number for rows, number in _ROUNDS if len(y) < rows), 1)
    rounds = []
    for place in range(number):
        tests = _test_rows(y, task, count, seed + place, None if row_groups is None else groups)
        rounds.append(_usable_folds(tests, y, task))
    most = max(map(len, rounds))
    if not most:
        raise DataError(
            "the training rows, or the test rows, of every fold share one target; give more rows "
            "with other targets, or smaller groups of rows"
        )
    return [folds for folds in rounds if len(folds) == most]


def halves(
    y: np.ndarray,
    task: str,
    seed: int,
    row_groups: Sequence | np.ndarray | None = None,
    ordered: bool = False,
) -> list[np.ndarray]:
    """The rows of two complementary halves, ascending; arguments as :func:`rounds_of`.

    Groups stay whole. A series is split into pairs of neighbouring blocks, and each half gets one
    block of every pair.
    """
    groups = group_numbers(row_groups, len(y), ordered)
    if not ordered:
        return _test_rows(y, task, 2, seed, None if row_groups is None else groups)
    rng = np.random.default_rng(seed)
    pairs = min(_BLOCK_PAIRS, len(y) // 2)
    start = rng.integers(len(y))
    blocks = np.array_split((start + np.arange(len(y))) % len(y), 2 * pairs)
    second = rng.integers(2, size=pairs)
    return [
        np.sort(np.concatenate([blocks[2 * pair + (second[pair] ^ half)] for pair in range(pairs)]))
        for half in (0, 1)
    ]


def permutations(
    y: np.ndarray,
    count: int,
    seed: int,
    row_groups: Sequence | None = None,
    ordered: bool = False,
) -> np.ndarray:
    """Orders of the rows ``(count, N)``, so that ``y[order]`` is a target without relation to X.

    Dependent rows stay together, because a test would otherwise take their dependence for a
    relation of columns and target (Winkler et al. 2015):

    - Groups are exchanged as a whole: the rows of a group get the targets of another group, in its
      order, repeated if it is smaller. This is exact for groups of equal size; otherwise some rows
      are repeated and others left out.
    - A series is shifted circularly, by at least a tenth of its length.

    Where there are few orders, none occurs twice, nor that of the data, so that there may be fewer
    than ``count``: some 0.8 N shifts, or those of at most six groups or rows.

    Args:
      y: ``(N,)`` or ``(N, C)``.
      count: number of orders, at most; a larger count starts with the same orders.
      row_groups: ``(N,)`` labels of dependent rows, such as patients.

    Raises:
      ConfigError: for groups that do not fit, or together with ``ordered``.
    """
    rows = np.arange(len(y))
    groups = group_numbers(row_groups, len(y), ordered)
    if ordered:
        least = int(np.ceil(_MIN_SHIFT * len(y)))
        shifts = np.arange(least, max(least, len(y) - least) + 1)
        shifts = np.random.default_rng(seed).permutation(shifts)[:count]
        return (rows - shifts[:, None]) % len(y)
    number = int(groups.max()) + 1
    if number <= _FEW_UNITS:
        others = np.array(list(itertools.permutations(range(number))))[1:]
        drawn = np.random.default_rng(seed).permutation(others)[:count]
    else:
        rngs = (np.random.default_rng((seed, draw)) for draw in range(count))
        drawn = np.array([rng.permutation(number) for rng in rngs], int)
    by_group, sizes = np.argsort(groups, kind="stable"), np.bincount(groups)
    starts = np.cumsum(sizes) - sizes
    place = np.empty(len(y), int)
    place[by_group] = rows - np.repeat(starts, sizes)
    source = drawn.reshape(-1, number)[:, groups]
    return by_group[starts[source] + place % sizes[source]]


def parts(
    design: Design, y: np.ndarray, fold: Fold, weights: np.ndarray | None = None
) -> tuple[Part, Part]:
    """The training and the test rows of a fold, with their weights ``(N,)`` if there are any."""
    train, test = design.X[fold.train], design.X[fold.test]
    if design.impute is not None and has_missing(design.X):
        fill = _centres(train, design.impute, None if weights is None else weights[fold.train])
        train, test = np.where(np.isnan(train), fill, train), np.where(np.isnan(test), fill, test)
    of_train, of_test = (None if weights is None else weights[rows] for rows in fold)
    X_train, X_test = standardise(train, test, weights=of_train)
    return (
        Part(X_train, y[fold.train], train, of_train),
        Part(X_test, y[fold.test], test, of_test),
    )


def all_rows(
    design: Design,
    y: np.ndarray,
    rows: np.ndarray | None = None,
    weights: np.ndarray | None = None,
) -> Part:
    """Some rows, or all of them, imputed and standardised by their own statistics."""
    rows = np.arange(len(y)) if rows is None else rows
    return parts(design, y, Fold(rows, rows[:0]), weights)[0]


def _centres(rows: np.ndarray, rule: str, weights: np.ndarray | None) -> np.ndarray:
    """Means or medians ``(D,)``; 0 for a column without any value in these rows."""
    known = ~np.isnan(rows)
    filled = np.where(known.any(axis=0), rows, 0.0)
    if weights is not None and rule == "mean":
        return np.nansum(filled.T * weights, axis=1) / (~np.isnan(filled)).T.dot(weights)
    if weights is not None:
        of_cells = np.broadcast_to(weights[:, None], filled.shape)
        return np.nanquantile(filled, 0.5, axis=0, method="inverted_cdf", weights=of_cells)
    return np.nanmean(filled, axis=0) if rule == "mean" else np.nanmedian(filled, axis=0)


def _number_of_folds(y: np.ndarray, task: str, groups: np.ndarray) -> int:
    """As many as the rows allow, so that each can have two classes (for survival, an event)."""
    if len(y) < _MIN_ROWS:
        raise DataError(f"there are {len(y)} rows; cross-validation needs at least {_MIN_ROWS}")
    if not groups.any():
        raise DataError("all rows are in one group; cross-validation needs at least 2 groups")
    most = min(FOLDS, max(2, len(y) // _FOLD_ROWS), int(groups.max()) + 1)
    strata = get_task(task).target.strata(y)
    if strata is None:
        return most
    in_groups = _groups_with(strata, groups)
    if get_task(task).target.classes:
        # Number of groups that hold the second most frequent class.
        scarce, what = sorted([0, *in_groups])[-2], "a second class"
    else:
        scarce, what = [*in_groups, 0][1], "an event"
    if scarce < 2:
        unit = "group" if len(np.unique(groups)) < len(y) else "row"
        raise DataError(
            f"{what} is in {scarce} {unit}{'s' * (scarce != 1)}; cross-validation needs at least 2 "
            f"such {unit}s, one for training and one for testing"
        )
    return min(most, int(scarce))


def _groups_with(strata: np.ndarray, groups: np.ndarray) -> list[int]:
    """The number of groups that hold each of the strata 0, 1, ..."""
    count = int(groups.max()) + 1
    return np.bincount(np.unique(strata * count + groups) // count).tolist()


def _test_rows(
    y: np.ndarray, task: str, count: int, seed: int, groups: np.ndarray | None
) -> list[np.ndarray]:
    """The rows of each fold, a partition of all rows that keeps groups whole."""
    rows, strata = np.arange(len(y)), get_task(task).target.strata(y)
    if groups is None:
        kind = KFold if strata is None else StratifiedKFold
    else:
        kind = GroupKFold if strata is None else StratifiedGroupKFold
        first = np.unique(groups, return_index=True)[1]
        if strata is not None and len(first) > _MANY_GROUPS:
            # The search takes seconds; stratifying by one row of each group is as good here.
            folds = _test_rows(y[first], task, count, seed, None)
            return [np.flatnonzero(np.isin(groups, fold)) for fold in folds]
    splitter = kind(count, shuffle=True, random_state=seed)
    with warnings.catch_warnings():
        # A class of fewer rows than folds cannot be in each of them.
        warnings.filterwarnings("ignore", "The least populated class", UserWarning)
        return [fold for _, fold in splitter.split(rows, strata, groups)]


def _usable_folds(tests: Sequence[np.ndarray], y: np.ndarray, task: str) -> list[Fold]:
    """Folds with these test rows; folds whose test rows share one target are merged with others."""
    tests = [rows for rows in tests if len(rows)]
    while len(tests) > 2 and not all(_varies(y[rows], task) for rows in tests):
        constant = next(place for place, rows in enumerate(tests) if not _varies(y[rows], task))
        merged = tests.pop(constant)
        smallest = min(range(len(tests)), key=lambda place: len(tests[place]))
        tests[smallest] = np.sort(np.concatenate([tests[smallest], merged]))
    folds = [Fold(np.delete(np.arange(len(y)), rows), rows) for rows in tests]
    return [fold for fold in folds if _usable(fold, y, task)]


def _usable(fold: Fold, y: np.ndarray, task: str) -> bool:
    """Whether the training rows differ in their target, and the test rows too or have classes."""
    return _varies(y[fold.train], task) and (
        get_task(task).target.classes or _varies(y[fold.test], task)
    )


def _varies(y: np.ndarray, task: str) -> bool:
    """Whether rows differ in their target; for survival, whether one has an event."""
    return bool(y[:, 1].any() if task == "survival" else (y != y[0]).any())


def _series(y: np.ndarray, task: str) -> list[Fold]:
    """Blocks of rows in order of time, each tested after training on all rows before it."""
    if len(y) < _MIN_SERIES:
        raise DataError(
            f"there are {len(y)} rows; cross-validation in order of time needs at least "
            f"{_MIN_SERIES}"
        )
    first, *blocks = np.array_split(np.arange(len(y)), 1 + min(FOLDS, max(2, len(y) // 3 - 1)))
    folds: list[Fold] = []
    train, test = first, first[:0]
    for block in blocks:
        if not _varies(y[train], task):
            train = np.concatenate([train, block])
            continue
        test = np.concatenate([test, block])
        if _varies(y[test], task):
            folds.append(Fold(train, test))
            train, test = np.concatenate([train, test]), test[:0]
    if len(test) and folds:
        # The last rows share one target.
        folds[-1] = Fold(folds[-1].train, np.concatenate([folds[-1].test, test]))
    elif len(test) and get_task(task).target.classes:
        folds = [Fold(train, test)]
    if not folds:
        raise DataError(
            "in order of time, the rows before or after every split share one target; "
            "give more rows, or do not use the order"
        )
    return folds
