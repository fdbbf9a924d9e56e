"""Benchmark of an estimator in a fresh process: the first fit, with all that it compiles, and the
next one of the same shape."""

from __future__ import annotations

import time
from collections.abc import Callable

from sklearn.datasets import load_digits

from experiments.timing import cpu_seconds

Case = tuple[Callable[[], dict[str, float]], int]

NUM_FEATURES = 10


def first_and_second_fit() -> dict[str, float]:
    """Wall and CPU seconds of two fits of ``IPCAE`` on digits, with default arguments.

    The import of the library counts for the first; the second has another random state.
    """
    X, y = load_digits(return_X_y=True)
    found: dict[str, float] = {}
    for number, name in enumerate(("first", "second")):
        cpu, wall = cpu_seconds(), time.perf_counter()
        from fsjax.estimators import IPCAE

        IPCAE(n_features_to_select=NUM_FEATURES, random_state=number).fit(X, y)
        found[f"{name}_wall_seconds"] = time.perf_counter() - wall
        found[f"{name}_cpu_seconds"] = cpu_seconds() - cpu
    return found


def cases() -> dict[str, Case]:
    """The cases by name, each with the CPU devices that it wants (0 for one)."""
    return {"estimators/ip_cae": (first_and_second_fit, 0)}
