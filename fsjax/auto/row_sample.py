"""Some of the rows of a table that is too long to look at as a whole."""

from __future__ import annotations

import dataclasses

import numpy as np
from sklearn.model_selection import train_test_split

from fsjax.auto.folds import rounds_of
from fsjax.auto.problem import Problem
from fsjax.tasks import TABLE

#: Rows of each class that a draw keeps, where there are so many; and groups of rows.
_CLASS_ROWS, _GROUPS = 20, 10


def on_rows(problem: Problem, rows: np.ndarray) -> Problem:
    """The problem on some of its rows, with folds of these."""
    y, design = problem.y, problem.design
    groups = problem.row_groups
    if len(rows) < len(y):
        y = y[rows]
        design = dataclasses.replace(design, X=design.X[rows])
        groups = None if groups is None else groups[rows]
    rounds = rounds_of(y, problem.task, problem.seed, groups, problem.ordered)
    return problem.replace(y=y, design=design, row_groups=groups, rounds=rounds)


def some_rows(problem: Problem, most: int) -> np.ndarray:
    """At most so many rows: drawn in proportion to the classes, by whole groups, or the latest."""
    count = len(problem.y)
    rows = np.arange(count)
    if count <= most:
        return rows
    if problem.ordered:
        return rows[-most:]
    rng = np.random.default_rng(problem.seed)
    if problem.row_groups is not None:
        labels, sizes = np.unique(problem.row_groups, return_counts=True)
        order = rng.permutation(len(labels))
        number = max(_GROUPS, int((np.cumsum(sizes[order]) <= most).sum()))
        return rows[np.isin(problem.row_groups, labels[order[:number]])]
    strata = TABLE[problem.task].strata(problem.y)
    if (
        strata is not None
        and np.unique(strata, return_counts=True)[1].min() * most < _CLASS_ROWS * count
    ):
        # Rare classes keep enough rows for the folds.
        kept = _at_least(strata, most, rng)
    else:
        kept = train_test_split(rows, train_size=most, random_state=problem.seed, stratify=strata)[
            0
        ]
    return np.sort(kept)


def _at_least(strata: np.ndarray, most: int, rng: np.random.Generator) -> np.ndarray:
    """Rows in proportion to the classes, but at least so many of each."""
    shuffled = rng.permutation(len(strata))
    kept = []
    for label, size in zip(*np.unique(strata, return_counts=True), strict=True):
        wanted = max(_CLASS_ROWS, round(most * size / len(strata)))
        kept.append(shuffled[strata[shuffled] == label][:wanted])
    return np.concatenate(kept)
