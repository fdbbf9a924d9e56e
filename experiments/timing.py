"""Time and memory of this process, for the benchmarks."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

#: Measurements of which the median is reported.
REPEATS = 3


def cpu_seconds() -> float:
    """User and system time of this process so far."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def peak_gib() -> float:
    """Largest resident memory of this process so far, in GiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def timed(run: Callable[[], Any], units: int) -> dict[str, float]:
    """Wall and CPU milliseconds of ``run`` per unit of work; its result is waited for."""
    cpu, wall = cpu_seconds(), time.perf_counter()
    jax.block_until_ready(run())
    wall, cpu = time.perf_counter() - wall, cpu_seconds() - cpu
    return {"wall_ms": 1e3 * wall / units, "cpu_ms": 1e3 * cpu / units}


def median(found: list[dict[str, float]]) -> dict[str, float]:
    """The median of each value over repeated measurements."""
    return {name: float(np.median([one[name] for one in found])) for name in found[0]}
