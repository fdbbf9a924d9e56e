"""Runs a command on a disk that fails, and then again on a disk that does not."""

from __future__ import annotations

import errno
import resource
import shutil
import signal
from functools import partial
from pathlib import Path

from .failing_disk import failing_disk
from .launcher import CONFIGS, Reference, arguments, outcome, run
from .outcomes import CLEAR, EQUAL, LOST, TRACEBACK, Outcome, judge

#: Errors of the disk.
CODES = (errno.ENOSPC, errno.EIO)


def nth_operation(number: int, seed: int, reference: Reference, folder: Path) -> Outcome:
    """Makes Python's n-th operation on the folder fail; n follows from the number of the try."""
    name = CONFIGS[number % len(CONFIGS)]
    fails = 1 + number // (len(CONFIGS) * len(CODES))
    code = CODES[number // len(CONFIGS) % len(CODES)]
    workdir = folder / "run"
    prepare = partial(_fail_at, workdir, fails, code)
    return _attempt(name, workdir, reference, folder, prepare, f"operation {fails}")


def largest_file(number: int, seed: int, reference: Reference, folder: Path) -> Outcome:
    """Limits the size of files, also for code that is not Python."""
    name = CONFIGS[number % len(CONFIGS)]
    size = 64 * 2 ** (number // len(CONFIGS) % 14) + 37 * number
    workdir = folder / "run"
    return _attempt(name, workdir, reference, folder, partial(_limit, size), f"{size} bytes")


def _attempt(
    name: str, workdir: Path, reference: Reference, folder: Path, prepare: partial, what: str
) -> Outcome:
    shutil.rmtree(workdir, ignore_errors=True)
    done = run(arguments(name, workdir), folder / "log", prepare)
    verdict, message = judge(done, outcome(workdir), reference.expected[name])
    if verdict not in (EQUAL, CLEAR):
        return verdict, f"{what}: {message}"
    again = run(arguments(name, workdir), folder / "log")
    after, later = judge(again, outcome(workdir), reference.expected[name])
    if after == CLEAR:
        return LOST, f"{what}: {later}"
    if left := [path.name for path in workdir.rglob("*") if path.name.endswith(".tmp")]:
        return TRACEBACK, f"{what}: leaves {left}"
    return (verdict if after == EQUAL else after), f"{what}: {message if after == EQUAL else later}"


def _fail_at(workdir: Path, fails: int, code: int) -> None:
    disk = failing_disk(workdir, fails, code)
    disk.__enter__()
    # Kept, as otherwise the garbage collector would end the context.
    _kept.append(disk)


_kept: list[object] = []


def _limit(size: int) -> None:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
