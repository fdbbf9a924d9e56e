"""Compares a sweep in one program with separate trainings, and with separate launches."""

import resource
import subprocess
import sys
import tempfile
from typing import Any

import jax
import numpy as np

import fsjax
from experiments.benchmarks.timing import Case, case, measured
from fsjax.data import Split
from fsjax.engine.sweep import combinations

#: Settings and seeds of the sweep: 30 rows.
GRID = {"sensitivity_weight": (0.1, 0.4, 0.9), "drop_fraction": (0.1, 0.3)}
SEEDS = tuple(range(5))
ROWS = 30

#: Launches that are measured; their median stands for the cost of each of the others.
LAUNCHES = 3


def options() -> dict[str, Any]:
    """Arguments of ``fsjax.plan``: a random table of Madelon's size, ten epochs."""
    rows, none = 2000, np.arange(0)
    return {
        "data": (np.random.default_rng(0).standard_normal((rows, 500), np.float32), None),
        "split": Split(np.arange(rows), none, none),
        "scaling": "none",
        "batch_size": 128,
        "num_epochs": 10,
    }


def swept() -> dict[str, Any]:
    """CPU seconds of the sweep in this fresh process, and of a second one after it."""
    compiled: list[float] = []

    def note(event: str, duration_secs: float, **_: str | int) -> None:
        if "backend_compile" in event:
            compiled.append(duration_secs)

    jax.monitoring.register_event_duration_secs_listener(note)

    settings = {"grid": GRID, "seeds": SEEDS, "num_features": 20, **options()}

    def run() -> Any:
        sweep = fsjax.sweep(fsjax.methods.wast(), **settings)
        return [result.scores for result in sweep.results]

    first, _ = measured(run)
    programs = len(compiled)
    again, _ = measured(run)
    return {
        "rows": ROWS,
        "cpu_seconds": first["cpu_seconds"],
        "cpu_seconds_again": again["cpu_seconds"],
        "compiled_again": len(compiled) - programs,
    }


def alone() -> dict[str, Any]:
    """CPU seconds of training every row separately, without compilation."""
    shared = options()
    plans = [
        fsjax.plan(fsjax.methods.wast(**setting), seeds=(seed,), **shared)
        for setting in combinations(GRID)
        for seed in SEEDS
    ]
    plans[0].train()  # compiles for all of them
    total = sum(measured(planned.train)[0]["cpu_seconds"] for planned in plans)
    return {"rows": len(plans), "cpu_seconds": total}


def launched() -> dict[str, Any]:
    """CPU seconds of one launch per row, estimated from a few; the first one does not count."""
    seconds = []
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(LAUNCHES + 1):
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            command = [sys.executable, "-m", "experiments.run", "--noprogress"]
            command += ["--config=configs/wast.py:madelon_like", f"--config.seeds={seed}"]
            command += ["--config.evaluation.protocols=svm", f"--workdir={folder}/{seed}"]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            seconds.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return {"rows": ROWS, "cpu_seconds": ROWS * float(np.median(seconds[1:]))}


def cases() -> dict[str, Case]:
    """Returns the cases by name."""
    return {
        "sweep/wast, 6 settings x 5 seeds": case(swept, devices=2),
        "sweep/the 30 trainings alone": case(alone, devices=2),
        "sweep/30 launches": case(launched),
    }
