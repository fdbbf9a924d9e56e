"""Rows and targets as the simple selectors take them: standardised, of bounded size, as numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.sparse import issparse

from fsjax.auto.contest.rankers.ranking import LEFT_OUT
from fsjax.auto.reading.column_operations import (
    Columns,
    densify,
    limits,
    means_and_deviations,
    scaled_columns,
)
from fsjax.data import is_constant
from fsjax.tasks import get_task

#: At least this many rows and columns are kept, however small the effort.
_MIN_ROWS, _MIN_COLUMNS = 200, 50


class Part(NamedTuple):
    """Imputed and standardised rows.

    Attributes:
      X: ``(n, D)`` float64, mean 0 and deviation 1 in the training rows (0 if constant there);
        sparse columns have that deviation and are not centred.
      y: ``(n,)`` or ``(n, C)``.
      raw: the imputed rows before they were standardised, for methods with a scaling of their own;
        None if only X is known.
      weights: ``(n,)`` above 0, or None if all rows count alike.
    """

    X: Columns
    y: np.ndarray
    raw: Columns | None = None
    weights: np.ndarray | None = None


def standardise(
    rows: Columns, *others: Columns, weights: np.ndarray | None = None
) -> tuple[Columns, ...]:
    """Columns ``(n, D)`` with mean 0 and deviation 1 in the first rows, 0 where constant there.

    Sparse columns are only divided by their deviation, and so stay sparse. Columns are constant in
    the sense of :func:`fsjax.data.constant_columns`.

    Args:
      weights: ``(n,)`` of the first rows, or None if all count alike.
    """
    lowest, highest = limits(rows)
    constant = is_constant(lowest, highest, np.dtype(np.float64))
    # Moments are computed in [-1, 1]: squares of 1e-200 underflow, and 1e13 + v loses digits of v.
    shift = np.zeros_like(lowest) if issparse(rows) else lowest / 2 + highest / 2
    reach = np.maximum(highest - shift, shift - lowest)
    reach = np.where(constant | (reach == 0), 1.0, reach)
    mean, deviation = means_and_deviations(scaled_columns(rows, shift, reach), weights)
    centre = shift + mean * reach
    scale = deviation * reach
    scale = np.where(constant | (scale == 0), np.inf, scale)
    return tuple(scaled_columns(part, centre, scale) for part in (rows, *others))


class DensePart(NamedTuple):
    """A dense table of bounded size.

    Attributes:
      X: ``(n, d)`` float64, mean 0 and deviation 1.
      y: ``(n,)`` or ``(n, C)``.
      columns: ``(d,)`` numbers of these columns in the whole table.
      weights: ``(n,)``, or None if all rows count alike.
    """

    X: np.ndarray
    y: np.ndarray
    columns: np.ndarray
    weights: np.ndarray | None = None


def weighted_rows(values: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
    """Rows ``(n, ...)`` whose products are weighted sums: times the roots of weights of mean 1."""
    if weights is None:
        return values
    roots = np.sqrt(weights / weights.mean())
    return values * roots.reshape(-1, *[1] * (values.ndim - 1))


def fewer_rows(part: Part, task: str, most: int, seed: int) -> Part:
    """At most ``most`` rows (but never under 200), standardised again; classes in proportion."""
    most = max(_MIN_ROWS, most)
    rows = len(part.y)
    if rows <= most:
        return part
    strata = get_task(task).target.strata(part.y)
    shuffled = np.random.default_rng(seed).permutation(rows)
    if strata is not None:
        # Evenly spaced rows of a table sorted by class keep the proportions of the classes.
        shuffled = shuffled[np.argsort(strata[shuffled], kind="stable")]
    kept = np.sort(shuffled[np.linspace(0, rows - 1, most).astype(int)])
    weights = None if part.weights is None else part.weights[kept]
    (X,) = standardise(part.X[kept], weights=weights)
    return Part(X, part.y[kept], weights=weights)


def fewer_columns(part: Part, relevance: np.ndarray, most: int) -> DensePart:
    """The most relevant columns as a dense table, at most ``most`` of them (but never under 50).

    Args:
      part: rows, already of bounded number.
      relevance: ``(D,)``; columns with :data:`LEFT_OUT` are left out.
    """
    ordered = np.argsort(-relevance, kind="stable")[: max(_MIN_COLUMNS, most)]
    columns = np.sort(ordered[relevance[ordered] > LEFT_OUT])
    X = part.X
    if issparse(X):
        X = standardise(densify(X[:, columns]), weights=part.weights)[0]
    elif len(columns) < X.shape[1]:
        X = X[:, columns]
    return DensePart(X, part.y, columns, part.weights)


def targets(y: np.ndarray, task: str, split: bool) -> Sequence[np.ndarray]:
    """The target as a list of columns of numbers, classes as they are or ``split`` into indicators.

    Counts become their roots, whose variance does not grow with the mean; time and event become
    :func:`martingale_residuals`.
    """
    if task == "survival":
        return [martingale_residuals(y)]
    if task == "counts":
        y = np.sqrt(y)
    if task != "classification":
        return [y] if y.ndim == 1 else list(y.T)
    if not split:
        return [y]
    classes = np.unique(y)
    if len(classes) == 2:
        return [(y == classes[1]).astype(np.float64)]
    return [(y == label).astype(np.float64) for label in classes]


def standard_targets(y: np.ndarray, task: str, weights: np.ndarray | None = None) -> np.ndarray:
    """``(N, C)`` columns of numbers, classes as indicators, with mean 0 and deviation 1.

    Constant columns are left out, so that C is 0 for a target of one value.
    """
    columns = np.stack(targets(y, task, split=True), axis=-1).astype(np.float64)
    mean, deviation = means_and_deviations(columns, weights)
    varies = deviation > 1e-12 * np.abs(columns).max(axis=0, initial=0.0)
    return (columns[:, varies] - mean[varies]) / deviation[varies]


def martingale_residuals(y: np.ndarray) -> np.ndarray:
    """Martingale residuals ``(N,)`` of the model without columns, larger for earlier events.

    The event minus the cumulative hazard (Nelson and Aalen) at its time, which is the number of
    events beyond those expected (Therneau, Grambsch and Fleming 1990).

    Args:
      y: ``(N, 2)`` time and event.
    """
    times, place = np.unique(y[:, 0], return_inverse=True)
    events = np.bincount(place, weights=y[:, 1], minlength=len(times))
    at_risk = np.cumsum(np.bincount(place, minlength=len(times))[::-1])[::-1]
    return y[:, 1] - np.cumsum(events / at_risk)[place]
