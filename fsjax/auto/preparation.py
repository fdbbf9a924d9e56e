"""Imputes and scales the rows of a fold by the statistics of its training rows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fsjax.auto.columns import Design
from fsjax.tables.base import as_table
from fsjax.tables.checks import one_value
from fsjax.tables.columns import Columns, has_missing, moments, scaled


class Fold(NamedTuple):
    """One split of the rows: numbers of the training rows and of the test rows."""

    train: np.ndarray
    test: np.ndarray


class Part(NamedTuple):
    """Imputed and standardised rows.

    Attributes:
      X: ``(n, D)`` float64, mean 0 and deviation 1 in the training rows (0 if constant there);
        sparse columns have that deviation and are not centred.
      y: ``(n,)`` or ``(n, C)``.
      raw: the imputed rows before they were standardised, for methods with a scaling of their own;
        None if only X is known.
    """

    X: Columns
    y: np.ndarray
    raw: Columns | None = None


def parts(design: Design, y: np.ndarray, fold: Fold) -> tuple[Part, Part]:
    """The training and the test rows of a fold."""
    train, test = design.X[fold.train], design.X[fold.test]
    if design.impute is not None and has_missing(design.X):
        fill = _centres(train, design.impute)
        train, test = np.where(np.isnan(train), fill, train), np.where(np.isnan(test), fill, test)
    X_train, X_test = standardise(train, test)
    return Part(X_train, y[fold.train], train), Part(X_test, y[fold.test], test)


def standardise(rows: Columns, *others: Columns) -> tuple[Columns, ...]:
    """Columns ``(n, D)`` with mean 0 and deviation 1 in the first rows, 0 where constant there.

    Sparse columns are only divided by their deviation, and so stay sparse. Columns are constant in
    the sense of :func:`fsjax.data.constant_columns`.
    """
    table = as_table(rows)
    lowest, highest = table.limits()
    constant = one_value(lowest, highest, np.dtype(np.float64))
    # Moments are computed in [-1, 1]: squares of 1e-200 underflow, and 1e13 + v loses digits of v.
    shift = np.zeros_like(lowest) if table.sparse else lowest / 2 + highest / 2
    reach = np.maximum(highest - shift, shift - lowest)
    reach = np.where(constant | (reach == 0), 1.0, reach)
    mean, deviation = moments(scaled(rows, shift, reach))
    centre = shift + mean * reach
    scale = deviation * reach
    scale = np.where(constant | (scale == 0), np.inf, scale)
    return tuple(scaled(part, centre, scale) for part in (rows, *others))


def all_rows(design: Design, y: np.ndarray, rows: np.ndarray | None = None) -> Part:
    """Some rows, or all of them, imputed and standardised by their own statistics."""
    rows = np.arange(len(y)) if rows is None else rows
    return parts(design, y, Fold(rows, rows[:0]))[0]


def _centres(rows: np.ndarray, rule: str) -> np.ndarray:
    """Means or medians ``(D,)``; 0 for a column without any value in these rows."""
    known = ~np.isnan(rows)
    filled = np.where(known.any(axis=0), rows, 0.0)
    return np.nanmean(filled, axis=0) if rule == "mean" else np.nanmedian(filled, axis=0)
