"""Starts two processes at once in one folder: one must work, the other must be refused.

Each has its own folder for temporary files, like processes of a scheduler.
"""

from __future__ import annotations

import functools
import shutil
import tempfile
from pathlib import Path

import numpy as np

from .launcher import CONFIGS, Process, Reference, arguments, outcome
from .outcomes import EQUAL, HUNG, LOST, TRACEBACK, WRONG, Outcome


def attempt(number: int, seed: int, reference: Reference, folder: Path) -> Outcome:
    """Starts the same run twice, or two different runs."""
    rng = np.random.default_rng((seed, 3, number))
    name = CONFIGS[number % len(CONFIGS)]
    workdir = folder / "run"
    shutil.rmtree(workdir, ignore_errors=True)
    others = ["--config.seeds=7,8"] if number % 2 else []
    commands = [arguments(name, workdir), arguments(name, workdir, *others)]
    order = rng.permutation(2)
    for index in order:
        (folder / f"temporary{index}").mkdir(exist_ok=True)
    processes = {
        int(index): Process(
            commands[index],
            folder / f"log{index}",
            functools.partial(_use_for_temporary_files, str(folder / f"temporary{index}")),
        )
        for index in order
    }
    done = {index: process.wait() for index, process in processes.items()}
    output = "\n".join(process.output for process in done.values())
    if any(process.status is None for process in done.values()):
        return HUNG, output
    if "Traceback" in output:
        return TRACEBACK, output
    worked = [index for index in done if done[index].status == 0]
    if len(worked) != 1:
        # A process that starts after the other has ended only reads its results.
        late = len(worked) == 2 and not others
        return (EQUAL, "one after the other") if late else (LOST, output)
    refused = done[1 - worked[0]].output
    if "is in use by another process" not in refused and "holds another run" not in refused:
        return LOST, output
    results = outcome(workdir)
    if worked[0] == 1 and others:
        return (EQUAL, "") if results and results["result"]["seeds"] == [7, 8] else (WRONG, output)
    return (EQUAL, "") if results == reference.expected[name] else (WRONG, output)


def _use_for_temporary_files(folder: str) -> None:
    tempfile.tempdir = folder
