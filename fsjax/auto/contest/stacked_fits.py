"""Trains a method on several tables of equal shape as one program.

The tables are stacked, and the split of each run holds the rows of its own table, so that the
engine trains all runs as it trains the seeds of a method.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from fsjax import Method, fit
from fsjax.data import Dataset, Split, validation_split
from fsjax.tasks import get_task

#: Share of the rows that validates, for methods that use validation rows.
VALID_FRACTION = 0.2

#: Most bytes of the tables that are trained together.
_MAX_BYTES = 2**29


def scores_of_tables(
    method: Method,
    tables: Sequence[np.ndarray],
    y: np.ndarray,
    task: str,
    *,
    num_seeds: int = 1,
    seed: int = 0,
    sample_weight: np.ndarray | None = None,
    **options: Any,
) -> np.ndarray:
    """Importance of the columns of each table, from one training per table and seed.

    Args:
      method: the method to train; see :func:`fsjax.fit`.
      tables: M tables ``(N, D)`` of numbers.
      y: ``(N,)`` or ``(N, C)``, as :attr:`fsjax.tasks.Task.check` returns it; numbers are
        standardised.
      num_seeds: trainings per table, at least 1.
      seed: whole number from 0; of the trainings and of the validation rows.
      sample_weight: ``(N,)`` weights above 0 of the rows; by default all are equal.
      **options: those of :func:`fsjax.fit` except ``seeds``, ``split`` and ``task``.

    Returns:
      ``(M, D)``, the mean over the seeds. The absolute importances of a training add up to 1, so
      that trainings of different scale count alike; importances that are not finite, of columns
      that a method left out, become the smallest of the others.

    Raises:
      ConfigError, DataError, NonFiniteLossError: as :func:`fsjax.fit`.
    """
    if task == "regression":
        y = standardised(y)
    # Parts of equal size share a compiled program.
    together = max(1, min(len(tables), _MAX_BYTES // (4 * tables[0].size * num_seeds)))
    while len(tables) % together:
        together -= 1
    valid_fraction = VALID_FRACTION if _validates(method, options.get("best_by")) else 0.0
    importances = []
    for first in range(0, len(tables), together):
        part = tables[first : first + together]
        splits, seeds = [], []
        for place in range(len(part)):
            for repeat in range(num_seeds):
                number = (seed * len(tables) + first + place) * num_seeds + repeat
                splits.append(split_at(place * len(y), y, task, valid_fraction, number))
                seeds.append(number)
        dataset = Dataset(
            "table",
            np.concatenate(part).astype(np.float32),
            np.concatenate([y] * len(part)),
        )
        weights = None if sample_weight is None else np.tile(sample_weight, len(part))
        with warnings.catch_warnings():
            # Only the scores are used.
            warnings.filterwarnings("ignore", ".* columns with the same score")
            result = fit(
                method,
                dataset,
                seeds=seeds,
                split=splits,
                task=task,
                sample_weight=weights,
                **options,
            )
        importances.append(shares(result.scores).reshape(len(part), num_seeds, -1).mean(axis=1))
    return np.concatenate(importances)


def split_at(start: int, y: np.ndarray, task: str, valid_fraction: float, seed: int) -> Split:
    """Training and validation rows of a table whose rows begin at ``start`` among stacked tables.

    Args:
      start: number of the first row.
      y: target of the rows of this table, whose classes are spread evenly.
      valid_fraction: share of the rows that validates.
    """
    train, valid = validation_split(len(y), valid_fraction, seed, get_task(task).target.strata(y))
    return Split(start + train, start + valid, valid[:0])


def standardised(y: np.ndarray) -> np.ndarray:
    """Numbers ``(N,)`` or ``(N, C)`` with mean 0 and deviation 1; 0 where they are constant."""
    deviation = y.std(axis=0, dtype=np.float64)
    return (y - y.mean(axis=0, dtype=np.float64)) / np.where(deviation > 0, deviation, 1.0)


def shares(scores: np.ndarray) -> np.ndarray:
    """Finite scores ``(..., D)`` whose absolute values add up to 1, or are all 0."""
    finite = np.isfinite(scores)
    least = np.min(scores, axis=-1, where=finite, initial=np.inf, keepdims=True)
    values = np.where(finite, scores, np.where(np.isfinite(least), least, 0.0)).astype(np.float64)
    total = np.abs(values).sum(axis=-1, keepdims=True)
    return values / np.where(total > 0, total, 1.0)


def _validates(method: Method, best_by: str | None) -> bool:
    """Whether the validation rows decide anything."""
    keeps_best = (method.keep if best_by is None else best_by) != "last"
    return method.loss is not None and (keeps_best or method.about.validates)
