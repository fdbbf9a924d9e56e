"""Which rows teach and which judge: cross-validation and halves that suit the table."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from sklearn.model_selection import GroupKFold, KFold, StratifiedGroupKFold, StratifiedKFold

from fsjax.auto.preparation import Fold
from fsjax.auto.row_groups import group_numbers
from fsjax.errors import DataError
from fsjax.tasks import TABLE

#: Folds of a round, as a rule; rows of a fold, where there are few; and the fewest rows in all.
FOLDS, _FOLD_ROWS, _LEAST_ROWS = 5, 3, 4

#: The fewest rows of a series: three blocks of two.
_LEAST_SERIES = 6

#: Rounds of new folds by the number of rows: few rows make single rounds noisy.
_ROUNDS = ((150, 4), (1500, 2))

#: Groups beyond which folds are even enough without a search for the best balance of classes.
_MANY_GROUPS = 2000

#: Rows of a class, so that several of them teach in each fold; and the fewest with which one
#: teaches and another judges.
_CLASS_ROWS, _LEAST_CLASS_ROWS = 3, 2

#: Pairs of neighbouring blocks that halves of a series consist of.
_BLOCK_PAIRS = 5


class CommonClasses(NamedTuple):
    """Which rows belong to classes that are frequent enough for cross-validation.

    Attributes:
      rows: ``(N,)`` bool, those to keep.
      rare: the other classes, as they are in y.
    """

    rows: np.ndarray
    rare: tuple[int, ...]


def common_classes(
    y: np.ndarray, task: str, row_groups: Sequence | np.ndarray | None = None
) -> CommonClasses:
    """Tells rows of classes that are too rare to be learned in one fold and judged in another.

    A class needs 3 rows (2, where fewer than two classes have 3) in at least 2 groups of rows.
    Targets of other tasks have no classes, and all of their rows are kept.
    """
    if not TABLE[task].classes:
        return CommonClasses(np.ones(len(y), bool), ())
    classes, places, counts = np.unique(y, return_inverse=True, return_counts=True)
    in_groups = _groups_with(places, group_numbers(row_groups, len(y)))
    several = np.array(in_groups) >= 2
    common = (counts >= _CLASS_ROWS) & several
    if common.sum() < 2:
        common = (counts >= _LEAST_CLASS_ROWS) & several
    return CommonClasses(common[places], tuple(classes[~common].tolist()))


def rounds_of(
    y: np.ndarray,
    task: str,
    seed: int,
    row_groups: Sequence | np.ndarray | None = None,
    ordered: bool = False,
) -> list[list[Fold]]:
    """Rounds of cross-validation, all of the same number of folds.

    In each round every row judges once, but the first ones of a series and those of folds whose
    training rows share one target. Neighbouring folds whose test rows share one target are merged.

    Args:
      y: ``(N,)`` or ``(N, C)`` target; :func:`common_classes` removes classes that are too rare.
      task: classes are spread evenly over the folds.
      seed: of the shuffling.
      row_groups: ``(N,)`` labels of rows that belong together, such as patients: they stay on one
        side of every split.
      ordered: whether the rows are in order of time: earlier rows teach, later ones judge.

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

    Groups stay whole. Halves of a series consist of blocks: of each two neighbouring blocks, one
    half has the first, and the other half the second.
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


def _number_of_folds(y: np.ndarray, task: str, groups: np.ndarray) -> int:
    """As many as the rows allow, so that each can have two classes (or, of survival, an event)."""
    if len(y) < _LEAST_ROWS:
        raise DataError(f"there are {len(y)} rows; cross-validation needs at least {_LEAST_ROWS}")
    if not groups.any():
        raise DataError("all rows are in one group; cross-validation needs at least 2 groups")
    most = min(FOLDS, max(2, len(y) // _FOLD_ROWS), int(groups.max()) + 1)
    strata = TABLE[task].strata(y)
    if strata is None:
        return most
    in_groups = _groups_with(strata, groups)
    if TABLE[task].classes:
        # How many groups hold the second most frequent class.
        scarce, what = sorted([0, *in_groups])[-2], "a second class"
    else:
        scarce, what = [*in_groups, 0][1], "an event"
    if scarce < 2:
        unit = "group" if len(np.unique(groups)) < len(y) else "row"
        raise DataError(
            f"{what} is in {scarce} {unit}{'s' * (scarce != 1)}; cross-validation needs at least 2 "
            f"such {unit}s, one to learn from and one to judge"
        )
    return min(most, int(scarce))


def _groups_with(strata: np.ndarray, groups: np.ndarray) -> list[int]:
    """In how many groups each of the strata 0, 1, ... is."""
    count = int(groups.max()) + 1
    return np.bincount(np.unique(strata * count + groups) // count).tolist()


def _test_rows(
    y: np.ndarray, task: str, count: int, seed: int, groups: np.ndarray | None
) -> list[np.ndarray]:
    """The rows of each fold, a partition of all rows that keeps groups whole."""
    rows, strata = np.arange(len(y)), TABLE[task].strata(y)
    with warnings.catch_warnings():
        # A class of fewer rows than folds cannot be in each of them.
        warnings.filterwarnings("ignore", "The least populated class", UserWarning)
        if groups is None:
            kind = KFold if strata is None else StratifiedKFold
            return [fold for _, fold in _splitter(kind, count, seed).split(rows, strata)]
        if strata is None:
            split = _splitter(GroupKFold, count, seed).split(rows, None, groups)
            return [fold for _, fold in split]
        first = np.unique(groups, return_index=True)[1]
        if len(first) > _MANY_GROUPS:
            # The search takes seconds; the class of a row of each group is as good here.
            split = _splitter(StratifiedKFold, count, seed).split(first, strata[first])
            return [np.flatnonzero(np.isin(groups, fold)) for _, fold in split]
        split = _splitter(StratifiedGroupKFold, count, seed).split(rows, strata, groups)
        return [fold for _, fold in split]


def _splitter(kind: type, count: int, seed: int) -> KFold:
    return kind(count, shuffle=True, random_state=seed)


def _usable_folds(tests: Sequence[np.ndarray], y: np.ndarray, task: str) -> list[Fold]:
    """Folds with these test rows; those whose test rows share one target are merged."""
    tests = [rows for rows in tests if len(rows)]
    while len(tests) > 2 and not all(_varies(y[rows], task) for rows in tests):
        alike = next(place for place, rows in enumerate(tests) if not _varies(y[rows], task))
        merged = tests.pop(alike)
        smallest = min(range(len(tests)), key=lambda place: len(tests[place]))
        tests[smallest] = np.sort(np.concatenate([tests[smallest], merged]))
    folds = [Fold(_all_but(rows, len(y)), rows) for rows in tests]
    return [fold for fold in folds if _usable(fold, y, task)]


def _all_but(rows: np.ndarray, count: int) -> np.ndarray:
    others = np.ones(count, bool)
    others[rows] = False
    return np.flatnonzero(others)


def _usable(fold: Fold, y: np.ndarray, task: str) -> bool:
    """Whether there is something to learn in a fold, and to judge; one class can be judged."""
    return _varies(y[fold.train], task) and (TABLE[task].classes or _varies(y[fold.test], task))


def _varies(y: np.ndarray, task: str) -> bool:
    """Whether rows differ in their target; in survival, whether one has an event."""
    return bool(y[:, 1].any() if task == "survival" else (y != y[0]).any())


def _series(y: np.ndarray, task: str) -> list[Fold]:
    """Blocks of rows in order of time, each judged after learning from all rows before it."""
    if len(y) < _LEAST_SERIES:
        raise DataError(
            f"there are {len(y)} rows; cross-validation in order of time needs at least "
            f"{_LEAST_SERIES}"
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
    elif len(test) and TABLE[task].classes:
        folds = [Fold(train, test)]
    if not folds:
        raise DataError(
            "in order of time, the rows before or after every split share one target; "
            "give more rows, or leave out the order"
        )
    return folds
