"""Two processes that are started together in one folder: one works, the other is refused.

Each has a folder of its own for temporary files, as processes of a scheduler have.
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
    """The same run twice, or that and another one."""
    rng = np.random.default_rng((seed, 3, number))
    name = CONFIGS[number % len(CONFIGS)]
    workdir = folder / "run"
    shutil.rmtree(workdir, ignore_errors=True)
    others = ["--config.seeds=7,8"] if number % 2 else []
    given = [arguments(name, workdir), arguments(name, workdir, *others)]
    order = rng.permutation(2)
    for one in order:
        (folder / f"temporary{one}").mkdir(exist_ok=True)
    processes = {
        int(one): Process(
            given[one],
            folder / f"log{one}",
            functools.partial(_use_for_temporary_files, str(folder / f"temporary{one}")),
        )
        for one in order
    }
    done = {one: process.wait() for one, process in processes.items()}
    told = "\n".join(one.told for one in done.values())
    if any(one.status is None for one in done.values()):
        return HUNG, told
    if "Traceback" in told:
        return TRACEBACK, told
    worked = [one for one in done if done[one].status == 0]
    if len(worked) != 1:
        # One that comes when the other has ended only reads.
        late = len(worked) == 2 and not others
        return (EQUAL, "one after the other") if late else (LOST, told)
    refused = done[1 - worked[0]].told
    if "is in use by the process" not in refused and "holds another run" not in refused:
        return LOST, told
    found = outcome(workdir)
    if worked[0] == 1 and others:
        return (EQUAL, "") if found and found["result"]["seeds"] == [7, 8] else (WRONG, told)
    return (EQUAL, "") if found == reference.expected[name] else (WRONG, told)


def _use_for_temporary_files(folder: str) -> None:
    tempfile.tempdir = folder
