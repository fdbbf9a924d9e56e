"""Tests of each unit by itself, on a sample of the rows: p-values, and q-values over all units."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import false_discovery_control

from fsjax.auto.certainty.univariate_tests import (
    MIN_GROUPS,
    ColumnTests,
    column_tests,
    unit_p_values,
)
from fsjax.auto.contest.folds import all_rows
from fsjax.auto.contest.problem import Problem
from fsjax.auto.contest.rankers.parts import Part
from fsjax.auto.reading.column_operations import cells_per_row
from fsjax.auto.reading.columns import Design
from fsjax.tasks import get_task

#: Most values that the tests rank, and the fewest and the most rows that they draw.
_CELLS, _MIN_TESTED, _MAX_TESTED = 4_000_000, 2_000, 200_000

#: Rows of each class that are always drawn, as far as there are so many.
_OF_CLASS = 50


class UnitTests(NamedTuple):
    """Tests of each unit by itself.

    Attributes:
      part: the tested rows.
      tests: of the columns.
      p_values, q_values: ``(G,)`` of the units; NaN for rows in order of time, and for few groups.
    """

    part: Part
    tests: ColumnTests
    p_values: np.ndarray
    q_values: np.ndarray


def unit_tests(
    design: Design,
    y: np.ndarray,
    task: str,
    seed: int = 0,
    row_groups: np.ndarray | None = None,
    ordered: bool = False,
) -> UnitTests:
    """Tests every unit by itself.

    Args:
      y: the target: classes from 0, ``(N,)`` or ``(N, C)`` numbers, or time and event.
      row_groups: ``(N,)`` numbers of groups of dependent rows, by which units are tested; with
        fewer than 8 groups there are no p- and q-values.
      ordered: whether rows are in order of time: the dependence of neighbouring rows is not known,
        so that there are no p- and q-values.
    """
    rows = drawn_rows(y, task, _tested_rows(design), seed)
    part = all_rows(design, y, rows)
    groups = None if row_groups is None else row_groups[rows]
    tests = column_tests(part.X, part.y, task, groups)
    if ordered or (groups is not None and len(np.unique(groups)) < MIN_GROUPS):
        unknown = np.full(design.num_units, np.nan)
        return UnitTests(part, tests, unknown, unknown)
    p_values = unit_p_values(tests.p_values, design.groups)
    return UnitTests(part, tests, p_values, false_discovery_control(p_values))


def smallest_q_value(problem: Problem) -> float:
    """The smallest q-value of a single unit; NaN for rows in order of time."""
    tests = unit_tests(
        problem.design, problem.y, problem.task, problem.seed, problem.row_groups, problem.ordered
    )
    return float(tests.q_values.min())


def drawn_rows(y: np.ndarray, task: str, most: int, seed: int) -> np.ndarray:
    """About ``most`` rows at most, ascending, drawn at random; rare classes keep at least 50 rows.

    Args:
      y: ``(N,)`` or ``(N, C)``.
      most: number of rows; all rows are kept if there are no more.
    """
    if len(y) <= most:
        return np.arange(len(y))
    order = np.random.default_rng(seed).permutation(len(y))
    kept = np.arange(len(y)) < most
    strata = get_task(task).target.strata(y)
    if strata is not None:
        kept |= pd.Series(strata[order]).groupby(strata[order]).cumcount().to_numpy() < _OF_CLASS
    return np.sort(order[kept])


def _tested_rows(design: Design) -> int:
    return int(np.clip(_CELLS / max(cells_per_row(design.X), 1), _MIN_TESTED, _MAX_TESTED))
