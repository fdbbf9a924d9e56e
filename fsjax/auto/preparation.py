"""Imputes and scales the rows of a fold by the statistics of its training rows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fsjax.auto.columns import Design
from fsjax.auto.rankers.parts import Part, standardise
from fsjax.tables.columns import has_missing


class Fold(NamedTuple):
    """One split of the rows: numbers of the training rows and of the test rows."""

    train: np.ndarray
    test: np.ndarray


def parts(design: Design, y: np.ndarray, fold: Fold) -> tuple[Part, Part]:
    """The training and the test rows of a fold."""
    train, test = design.X[fold.train], design.X[fold.test]
    if design.impute is not None and has_missing(design.X):
        fill = _centres(train, design.impute)
        train, test = np.where(np.isnan(train), fill, train), np.where(np.isnan(test), fill, test)
    X_train, X_test = standardise(train, test)
    return Part(X_train, y[fold.train], train), Part(X_test, y[fold.test], test)


def all_rows(design: Design, y: np.ndarray, rows: np.ndarray | None = None) -> Part:
    """Some rows, or all of them, imputed and standardised by their own statistics."""
    rows = np.arange(len(y)) if rows is None else rows
    return parts(design, y, Fold(rows, rows[:0]))[0]


def _centres(rows: np.ndarray, rule: str) -> np.ndarray:
    """Means or medians ``(D,)``; 0 for a column without any value in these rows."""
    known = ~np.isnan(rows)
    filled = np.where(known.any(axis=0), rows, 0.0)
    return np.nanmean(filled, axis=0) if rule == "mean" else np.nanmedian(filled, axis=0)
