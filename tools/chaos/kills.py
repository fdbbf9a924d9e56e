"""A run that is ended by a signal at any moment; the same command ends with the same results."""

from __future__ import annotations

import shutil
import signal
import time
from pathlib import Path

import numpy as np

from .launcher import CONFIGS, Process, Reference, arguments, outcome, run
from .outcomes import CLEAR, EQUAL, HUNG, LOST, TRACEBACK, Outcome, judged

#: Half of them cannot be caught.
SIGNALS = (signal.SIGKILL, signal.SIGKILL, signal.SIGINT, signal.SIGTERM)


def attempt(number: int, seed: int, reference: Reference, folder: Path) -> Outcome:
    """Ends a run up to three times, then lets it end."""
    rng = np.random.default_rng((seed, 1, number))
    name, kill = CONFIGS[number % len(CONFIGS)], SIGNALS[number // len(CONFIGS) % len(SIGNALS)]
    workdir = folder / "run"
    shutil.rmtree(workdir, ignore_errors=True)
    for _ in range(1 + int(rng.integers(3))):
        process = Process(arguments(name, workdir), folder / "log")
        time.sleep(float(rng.uniform(0, 1.1 * reference.seconds[name])))
        process.signal(kill)
        done = process.wait()
        if done.status is None:
            return HUNG, done.told
        expected = (0, -kill, 128 + kill)
        if "Traceback" in done.told or done.status not in expected:
            return TRACEBACK, f"{kill.name}: status {done.status}: {done.told}"
    done = run(arguments(name, workdir), folder / "log")
    verdict, message = judged(done, outcome(workdir), reference.expected[name])
    # There is nothing wrong with the folder, so that an error loses the run.
    if verdict == EQUAL:
        return EQUAL, kill.name
    return (LOST if verdict == CLEAR else verdict), message
