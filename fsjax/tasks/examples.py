"""Examples of targets, by which the checks of tasks and methods run them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np

from fsjax.tasks.task import Task


def _survival(rng: np.random.Generator, signals: np.ndarray) -> np.ndarray:
    risk = signals @ np.array([0.5, -0.5, 0.3])
    times = rng.exponential(np.exp(-risk)) + 1e-3
    return np.column_stack([times, rng.random(len(signals)) < 0.8])


#: ``(generator, signals (N, 3)) -> y`` by built-in task.
_EXAMPLES: Final[Mapping[str, Callable[[np.random.Generator, np.ndarray], np.ndarray | None]]] = {
    "classification": lambda rng, signals: signals.argmax(axis=1),
    "reconstruction": lambda rng, signals: None,
    "regression": lambda rng, signals: signals @ np.array([[1.0, 0.5], [-1.0, 1.0], [0.5, -1.0]]),
    "multilabel": lambda rng, signals: (signals[:, :2] > 1.0).astype(int),
    "counts": lambda rng, signals: rng.poisson(np.exp(signals @ np.array([0.5, -0.5, 0.3]))),
    "survival": _survival,
}


def example(task: Task, rng: np.random.Generator, signals: np.ndarray) -> np.ndarray | None:
    """A y, as users give it, that depends on ``signals (N, 3)``; that of the resembled task."""
    return _EXAMPLES[task.like or task.name](rng, signals)
