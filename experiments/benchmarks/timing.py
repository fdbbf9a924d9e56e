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


def measured(run: Callable[[], Any]) -> tuple[dict[str, float], Any]:
    """CPU (user and system) and wall seconds of ``run``, and its result, which is waited for."""
    cpu, wall = time.process_time(), time.perf_counter()
    found = jax.block_until_ready(run())
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    return {"cpu_seconds": cpu, "wall_seconds": wall}, found


def timed(run: Callable[[], Any], units: int) -> dict[str, float]:
    """Wall and CPU milliseconds of ``run`` per unit of work: medians of repeated measurements."""
    found = [measured(run)[0] for _ in range(REPEATS)]
    return {
        f"{name}_ms": 1e3 * float(np.median([one[f"{name}_seconds"] for one in found])) / units
        for name in ("wall", "cpu")
    }


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
    found = {"axis": planned.axis} | {name: whole[name] - around[name] for name in whole}
    return found | {"compile_seconds": compile_seconds, "peak_gib": peak / 2**20}


def rounded(run: Callable[..., dict[str, Any]], *args: Any) -> dict[str, Any]:
    """A case whose matrix products are of factors that are rounded to bfloat16."""
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
