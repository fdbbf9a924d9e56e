"""Shared by the benchmarks: cases, random tables, and the time and memory of this process."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable
from functools import partial
from typing import Any, Literal, NamedTuple

import jax
import numpy as np

import fsjax
from fsjax.data import Dataset, Split


class Case(NamedTuple):
    """A measurement, and the number of CPU devices that it needs; 0 means one."""

    run: Callable[[], dict[str, Any]]
    devices: int = 0


def case(run: Callable[..., dict[str, Any]], *args: Any, devices: int = 0, **options: Any) -> Case:
    """Makes the case that measures ``run(*args, **options)``."""
    return Case(partial(run, *args, **options), devices)


def random_plan(
    method: fsjax.Method,
    rows: int,
    columns: int,
    classes: int = 0,
    image_shape: tuple[int, ...] | None = None,
    **options: Any,
) -> fsjax.Plan:
    """Plans a training on all rows of a random table, unscaled.

    Args:
      method: the method.
      rows: N.
      columns: D.
      classes: number of classes; 0 for a table without a target.
      image_shape: of a row, if it is an image.
      options: of :func:`fsjax.plan`.
    """
    rng, none = np.random.default_rng(0), np.arange(0)
    X = rng.standard_normal((rows, columns), np.float32)
    y = rng.integers(0, classes, rows) if classes else None
    split = Split(np.arange(rows), none, none)
    data = Dataset("random", X, y, image_shape=image_shape)
    return fsjax.plan(method, data, split=split, scaling="none", **options)


#: Number of measurements whose median is reported.
REPEATS = 3


def measured(run: Callable[[], Any]) -> tuple[dict[str, float], Any]:
    """Runs ``run`` and waits for its result; returns CPU and wall seconds, and the result."""
    cpu, wall = time.process_time(), time.perf_counter()
    result = jax.block_until_ready(run())
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    return {"cpu_seconds": cpu, "wall_seconds": wall}, result


def timed(run: Callable[[], Any], units: int) -> dict[str, float]:
    """Wall and CPU milliseconds of ``run`` per unit of work, medians of :data:`REPEATS`."""
    repeats = [measured(run)[0] for _ in range(REPEATS)]

    def median(clock: str) -> float:
        return float(np.median([seconds[f"{clock}_seconds"] for seconds in repeats]))

    return {f"{clock}_ms": 1e3 * median(clock) / units for clock in ("wall", "cpu")}


def training(planned: fsjax.Plan, units: int) -> dict[str, Any]:
    """Measures a plan's epochs after compilation, without initialisation and transfers.

    Returns:
      ``axis``; ``wall_ms`` and ``cpu_ms`` per unit of work (for example a step) over all epochs of
      all seeds; ``compile_seconds``; and ``peak_gib``, the peak resident memory of this process.
    """
    idle = [True] * len(planned.seeds)
    compile_seconds = planned.train(idle=idle).cost["compile_seconds"]
    planned.train()
    total = timed(planned.train, units)
    overhead = timed(lambda: planned.train(idle=idle), units)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    times = {name: total[name] - overhead[name] for name in total}
    costs = {"compile_seconds": compile_seconds, "peak_gib": peak / 2**20}
    return {"axis": planned.axis} | times | costs


def training_seconds(planned: fsjax.Plan, units: int, unit: str) -> dict[str, Any]:
    """Like :func:`training`, with ``cpu_seconds_per_UNIT`` and ``wall_seconds_per_UNIT``."""
    values = training(planned, units)
    for clock in ("cpu", "wall"):
        values[f"{clock}_seconds_per_{unit}"] = values.pop(f"{clock}_ms") / 1e3
    return values


def rounded(run: Callable[..., dict[str, Any]], *args: Any) -> dict[str, Any]:
    """Runs a measurement with the factors of matrix products rounded to bfloat16."""
    with jax.default_matmul_precision("bfloat16"):
        return run(*args)


def descent(loss: Callable[[Any, jax.Array], jax.Array], rate: float) -> Callable:
    """Makes a step of gradient descent on the whole carry, for :func:`looped`."""

    def step(carry: Any, i: jax.Array) -> Any:
        return jax.tree.map(lambda p, g: p - rate * g, carry, jax.grad(loss)(carry, i))

    return step


def looped(
    step: Callable[[Any, jax.Array], Any],
    start: Any,
    times: int = 20,
    clock: Literal["cpu", "wall"] = "cpu",
) -> float:
    """Milliseconds of a step, measured in a loop of ``times`` steps on the device."""
    run = jax.jit(lambda carry: jax.lax.fori_loop(0, times, lambda i, c: step(c, i), carry))
    jax.block_until_ready(run(start))
    return timed(lambda: run(start), times)[f"{clock}_ms"]
