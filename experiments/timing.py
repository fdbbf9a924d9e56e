"""Time and memory of this process and of trainings in it, for the benchmarks."""

import resource
import time
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

import fsjax

#: A measurement, and the number of CPU devices that it needs (0: one).
Case = tuple[Callable[[], dict[str, Any]], int]

#: Measurements of which the median is reported.
REPEATS = 3


def cpu_seconds() -> float:
    """User and system time of this process so far."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def measured(run: Callable[[], Any]) -> tuple[dict[str, float], Any]:
    """CPU and wall seconds of ``run``, and its result, which is waited for."""
    cpu, wall = cpu_seconds(), time.perf_counter()
    found = jax.block_until_ready(run())
    wall, cpu = time.perf_counter() - wall, cpu_seconds() - cpu
    return {"cpu_seconds": cpu, "wall_seconds": wall}, found


def timed(run: Callable[[], Any], units: int) -> dict[str, float]:
    """Wall and CPU milliseconds of ``run`` per unit of work; its result is waited for."""
    seconds, _ = measured(run)
    return {f"{name}_ms": 1e3 * seconds[f"{name}_seconds"] / units for name in ("wall", "cpu")}


def median(found: list[dict[str, float]]) -> dict[str, float]:
    """The median of each value over repeated measurements."""
    return {name: float(np.median([one[name] for one in found])) for name in found[0]}


def training(planned: fsjax.Plan, units: int) -> dict[str, Any]:
    """A plan's epochs after compilation, without the initial states and the transfers.

    Args:
      planned: what is trained, again and again.
      units: of work in all epochs of all seeds, such as steps.

    Returns:
      ``axis``, ``wall_ms`` and ``cpu_ms`` per unit, ``compile_seconds`` and ``peak_gib``, the
      largest resident memory of this process so far.
    """
    idle = [True] * len(planned.seeds)
    compile_seconds = planned.train(idle=idle).cost["compile_seconds"]
    planned.train()
    whole = median([timed(planned.train, units) for _ in range(REPEATS)])
    around = median([timed(lambda: planned.train(idle=idle), units) for _ in range(REPEATS)])
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    found = {"axis": planned.axis} | {name: whole[name] - around[name] for name in whole}
    return found | {"compile_seconds": compile_seconds, "peak_gib": peak / 2**20}


def looped(step: Callable[[Any, jax.Array], Any], start: Any, times: int = 20) -> float:
    """CPU milliseconds of one step in a loop of so many on the device."""
    run = jax.jit(lambda carry: jax.lax.fori_loop(0, times, lambda i, c: step(c, i), carry))
    jax.block_until_ready(run(start))
    return median([timed(lambda: run(start), times) for _ in range(REPEATS)])["cpu_ms"]
