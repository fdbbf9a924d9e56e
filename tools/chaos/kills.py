"""Ends a run by signals at random moments; the same command must give the same results."""

from __future__ import annotations

import shutil
import signal
import time
from pathlib import Path

import numpy as np

from .launcher import CONFIGS, Process, Reference, arguments, outcome, run
from .outcomes import CLEAR, EQUAL, LOST, Outcome, ended_badly, judge

#: Half of them are SIGKILL, which cannot be caught.
SIGNALS = (signal.SIGKILL, signal.SIGKILL, signal.SIGINT, signal.SIGTERM)


def attempt(number: int, seed: int, reference: Reference, folder: Path) -> Outcome:
    """Interrupts a run one to three times, then lets it finish."""
    rng = np.random.default_rng((seed, 1, number))
    name, kill = CONFIGS[number % len(CONFIGS)], SIGNALS[number // len(CONFIGS) % len(SIGNALS)]
    workdir = folder / "run"
    shutil.rmtree(workdir, ignore_errors=True)
    for _ in range(1 + int(rng.integers(3))):
        process = Process(arguments(name, workdir), folder / "log")
        time.sleep(float(rng.uniform(0, 1.1 * reference.seconds[name])))
        process.signal(kill)
        if (bad := ended_badly(process.wait(), kill)) is not None:
            return bad
    done = run(arguments(name, workdir), folder / "log")
    verdict, message = judge(done, outcome(workdir), reference.expected[name])
    # The folder is undamaged, so a clear error means that the run is lost.
    if verdict == EQUAL:
        return EQUAL, kill.name
    return (LOST if verdict == CLEAR else verdict), message
