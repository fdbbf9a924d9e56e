"""Targets of all tasks as columns of numbers, for the simple selectors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


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


def standard_targets(y: np.ndarray, task: str) -> np.ndarray:
    """``(N, C)`` columns of numbers, classes as indicators, with mean 0 and deviation 1.

    Constant columns are left out, so that C is 0 for a target of one value.
    """
    columns = np.stack(targets(y, task, split=True), axis=-1).astype(np.float64)
    deviation = columns.std(axis=0)
    varies = deviation > 1e-12 * np.abs(columns).max(axis=0, initial=0.0)
    columns = columns[:, varies]
    return (columns - columns.mean(axis=0)) / deviation[varies]


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
