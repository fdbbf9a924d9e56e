"""What benchmarks share: cases, random tables, and the time and memory of this process."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np

import fsjax
from fsjax.data import Split


class Case(NamedTuple):
    """A measurement, and the number of CPU devices that it needs; 0 keeps one."""

    run: Callable[[], dict[str, Any]]
    devices: int = 0


def case(run: Callable[..., dict[str, Any]], *args: Any, devices: int = 0, **options: Any) -> Case:
    """The measurement ``run(*args, **options)``."""
    return Case(partial(run, *args, **options), devices)


def random_plan(
    method: fsjax.Method, rows: int, columns: int, classes: int = 0, **options: Any
) -> fsjax.Plan:
    """A plan on a random table, of which all rows are trained on as they are.

    Args:
      method: what is trained.
      rows: N.
      columns: D.
      classes: of the target; none without a target.
      options: of :func:`fsjax.plan`.
    """
    rng, none = np.random.default_rng(0), np.arange(0)
    X = rng.standard_normal((rows, columns), np.float32)
    y = rng.integers(0, classes, rows) if classes else None
    split = Split(np.arange(rows), none, none)
    return fsjax.plan(method, (X, y), split=split, scaling="none", **options)


#: Measurements of which the median is reported.
REPEATS = 3


def measured(run: Callable[[], Any]) -> tuple[dict[str, float], Any]:
    """CPU (user and system) and wall seconds of ``run``, and its result, which is waited for."""
    cpu, wall = time.process_time(), time.perf_counter()
    result = jax.block_until_ready(run())
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    return {"cpu_seconds": cpu, "wall_seconds": wall}, result


def timed(run: Callable[[], Any], units: int) -> dict[str, float]:
    """Wall and CPU milliseconds of ``run`` per unit of work: medians of repeated measurements."""
    repeats = [measured(run)[0] for _ in range(REPEATS)]

    def median(clock: str) -> float:
        return float(np.median([seconds[f"{clock}_seconds"] for seconds in repeats]))

    return {f"{clock}_ms": 1e3 * median(clock) / units for clock in ("wall", "cpu")}


def training(planned: fsjax.Plan, units: int) -> dict[str, Any]:
    """A plan's epochs after compilation, without the initial states and the transfers.

    ``axis``, ``wall_ms`` and ``cpu_ms`` per unit of the work in all epochs of all seeds, such as a
    step, ``compile_seconds``, and ``peak_gib``, the largest resident memory of this process so far.
    """
    idle = [True] * len(planned.seeds)
    compile_seconds = planned.train(idle=idle).cost["compile_seconds"]
    planned.train()
    whole = timed(planned.train, units)
    around = timed(lambda: planned.train(idle=idle), units)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    times = {name: whole[name] - around[name] for name in whole}
    costs = {"compile_seconds": compile_seconds, "peak_gib": peak / 2**20}
    return {"axis": planned.axis} | times | costs


def training_seconds(planned: fsjax.Plan, units: int, unit: str) -> dict[str, Any]:
    """:func:`training` in ``cpu_seconds_per_UNIT`` and ``wall_seconds_per_UNIT``."""
    values = training(planned, units)
    for clock in ("cpu", "wall"):
        values[f"{clock}_seconds_per_{unit}"] = values.pop(f"{clock}_ms") / 1e3
    return values


def rounded(run: Callable[..., dict[str, Any]], *args: Any) -> dict[str, Any]:
    """A measurement with the factors of matrix products rounded to bfloat16."""
    with jax.default_matmul_precision("bfloat16"):
        return run(*args)


def descent(loss: Callable[[Any, jax.Array], jax.Array], rate: float) -> Callable:
    """A step of gradient descent, for :func:`looped`, on all of the carry of a loss."""

    def step(carry: Any, i: jax.Array) -> Any:
        return jax.tree.map(lambda p, g: p - rate * g, carry, jax.grad(loss)(carry, i))

    return step


def looped(step: Callable[[Any, jax.Array], Any], start: Any, times: int = 20) -> float:
    """CPU milliseconds of one step in a loop of so many on the device."""
    run = jax.jit(lambda carry: jax.lax.fori_loop(0, times, lambda i, c: step(c, i), carry))
    jax.block_until_ready(run(start))
    return timed(lambda: run(start), times)["cpu_ms"]
