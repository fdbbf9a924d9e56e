"""Time and memory of this process and of trainings in it, for the benchmarks."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import fsjax
from fsjax.engine.loop import Arrays
from fsjax.engine.seeds import choose_seed_axis, padded_seeds, place_seeds, train_seeds
from fsjax.engine.train import init_states
from fsjax.method import Spec

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


def training(
    method: fsjax.Method,
    spec: Spec,
    arrays: Arrays,
    num_seeds: int,
    *,
    epochs: int,
    units: int,
    axis: str = "auto",
) -> dict[str, Any]:
    """Trains some seeds again and again, after compilation.

    Args:
      method: what is trained.
      spec: shapes, and the rows of an epoch.
      arrays: the rows.
      num_seeds: trained at once.
      epochs: of a measurement.
      units: of work in a measurement, such as steps of all seeds.
      axis: how the seeds are laid out.

    Returns:
      ``axis``, ``wall_ms`` and ``cpu_ms`` per unit, ``compile_seconds`` and ``peak_gib``.
    """
    axis = choose_seed_axis(axis, num_seeds)
    seeds = list(range(padded_seeds(axis, num_seeds)))
    masks = np.ones((len(seeds), spec.num_features), bool)
    states = place_seeds(axis, init_states(method, spec, seeds, masks))

    def run(epochs: int) -> None:
        nonlocal states
        states, _ = train_seeds(method, axis, False, states, arrays, jnp.int32(epochs))
        jax.block_until_ready(states)

    started = time.perf_counter()
    run(0)
    compile_seconds = time.perf_counter() - started
    run(1)
    found = median([timed(lambda: run(epochs), units) for _ in range(REPEATS)])
    return {"axis": axis, **found, "compile_seconds": compile_seconds, "peak_gib": peak_gib()}


def looped(step: Callable[[Any, jax.Array], Any], start: Any, times: int = 20) -> float:
    """CPU milliseconds of one step in a loop of so many on the device."""
    run = jax.jit(lambda carry: jax.lax.fori_loop(0, times, lambda i, c: step(c, i), carry))
    jax.block_until_ready(run(start))
    return median([timed(lambda: run(start), times) for _ in range(REPEATS)])["cpu_ms"]
