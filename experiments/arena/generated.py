"""Tables whose informative columns are known, drawn from a seed."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

#: Correlation of a copy with its column, and of consecutive rows in time.
_COPY, _MEMORY = 0.95, 0.9

#: Rows of a patient.
_VISITS = 5


class Drawn(NamedTuple):
    """A table.

    Attributes:
      X: ``(N, D)`` float32.
      y: ``(N,)`` int32 classes or float32 numbers.
      informative: the columns that matter, ascending; empty if none does.
      groups: ``(N,)`` rows that belong together, or ``None``.
    """

    X: np.ndarray
    y: np.ndarray
    informative: np.ndarray
    groups: np.ndarray | None = None


def _neighbours(rng: np.random.Generator, rows: int, columns: int, rho: float) -> np.ndarray:
    """Normal columns, ``(rows, columns)``; neighbours have correlation ``rho``."""
    X = rng.standard_normal((rows, columns), np.float32)
    if rho:
        for column in range(1, columns):
            X[:, column] = rho * X[:, column - 1] + np.sqrt(1 - rho**2) * X[:, column]
    return X


def _some(rng: np.random.Generator, columns: int, number: int) -> np.ndarray:
    return np.sort(rng.choice(columns, number, replace=False))


def linear(
    rows: int,
    columns: int,
    informative: int,
    rho: float = 0.0,
    noise: float = 1.0,
    positives: float = 0.0,
    tails: bool = False,
    seed: int = 0,
) -> Drawn:
    """A linear target of some columns.

    Args:
      noise: standard deviation of the noise, in deviations of the signal.
      positives: share of rows of class 1; 0 for a target of numbers.
      tails: whether columns and noise have Student's t distribution of 1.5 degrees of freedom; the
        target then depends on the columns' ranks.
    """
    rng = np.random.default_rng(seed)
    X = _neighbours(rng, rows, columns, rho)
    matter = _some(rng, columns, informative)
    error = rng.standard_normal(rows)
    signs = rng.choice([-1.0, 1.0], informative)
    if tails:
        X = rng.standard_t(1.5, (rows, columns)).astype(np.float32)
        signal = (X[:, matter].argsort(axis=0).argsort(axis=0) / rows - 0.5) @ signs
    else:
        signal = X[:, matter] @ signs
    target = signal / signal.std() + noise * error
    if not positives:
        return Drawn(X, target.astype(np.float32), matter)
    return Drawn(X, (target > np.quantile(target, 1 - positives)).astype(np.int32), matter)


def sines(rows: int, columns: int, informative: int, seed: int = 0) -> Drawn:
    """A target that is the sum of the sines of some normal columns, and noise."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((rows, columns), np.float32)
    matter = _some(rng, columns, informative)
    y = np.sin(2.0 * X[:, matter]).sum(axis=1) + 0.5 * rng.standard_normal(rows)
    return Drawn(X, y.astype(np.float32), matter)


def copies(rows: int, columns: int, informative: int, each: int, seed: int = 0) -> Drawn:
    """Two classes by the sum of some columns, each of which has noisy copies; others are noise."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((rows, columns), np.float32)
    order = rng.permutation(columns)
    matter, rest = order[:informative], order[informative:]
    for number, column in enumerate(matter):
        copied = rest[number * each : (number + 1) * each]
        X[:, copied] = _COPY * X[:, [column]] + np.sqrt(1 - _COPY**2) * X[:, copied]
    target = X[:, matter].sum(axis=1) + 0.5 * rng.standard_normal(rows)
    return Drawn(X, (target > 0).astype(np.int32), np.sort(matter))


def shifted(
    rows: int, columns: int, informative: int, shift: float, classes: int = 2, seed: int = 0
) -> Drawn:
    """Classes whose means differ in some columns, by ``shift`` times a normal number."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(rows) % classes).astype(np.int32)
    X = rng.standard_normal((rows, columns), np.float32)
    matter = _some(rng, columns, informative)
    means = shift * rng.standard_normal((classes, informative))
    X[:, matter] += (means - means.mean(axis=0))[y].astype(np.float32)
    return Drawn(X, y, matter)


def patients(number: int, columns: int, informative: int, identifying: int, seed: int = 0) -> Drawn:
    """Several rows for each patient, who has the class; some columns identify the patient.

    A column that identifies is constant in a patient's rows but for a little noise, and says
    nothing about patients who are not in the training rows.
    """
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(number), _VISITS)
    classes = rng.permutation(np.arange(number) % 2).astype(np.int32)
    y = classes[groups]
    X = rng.standard_normal((len(y), columns), np.float32)
    order = rng.permutation(columns)
    matter, identify = order[:informative], order[informative : informative + identifying]
    X[:, matter] += np.float32(0.5) * (2 * y[:, None] - 1)
    identity = rng.standard_normal((number, identifying)).astype(np.float32)
    X[:, identify] = identity[groups] + 0.1 * X[:, identify]
    return Drawn(X, y, np.sort(matter), groups)


def drifting(rows: int, columns: int, informative: int, trending: int, seed: int = 0) -> Drawn:
    """Rows in the order of time: target and some columns have trends that have no common cause."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((rows, columns), np.float32)
    for row in range(1, rows):
        X[row] = _MEMORY * X[row - 1] + np.sqrt(1 - _MEMORY**2) * X[row]
    order = rng.permutation(columns)
    matter, trend = order[:informative], order[informative : informative + trending]
    time = np.linspace(-1.7, 1.7, rows, dtype=np.float32)
    X[:, trend] = time[:, None] * rng.choice([-1, 1], trending) + 0.5 * X[:, trend]
    signal = X[:, matter] @ rng.choice([-1.0, 1.0], informative)
    # The trend of the target ends before the last rows.
    y = signal / signal.std() + np.minimum(time, 0.5) + 0.5 * rng.standard_normal(rows)
    return Drawn(X, y.astype(np.float32), np.sort(matter))


def noise(rows: int, columns: int, seed: int = 0) -> Drawn:
    """Two classes that no column says anything about."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(rows) % 2).astype(np.int32)
    return Drawn(rng.standard_normal((rows, columns), np.float32), y, np.zeros(0, int))
