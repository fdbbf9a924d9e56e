"""Runs a function in a process of its own, with limits of time and memory."""

from __future__ import annotations

import contextlib
import itertools
import multiprocessing
import resource
import time
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any, Final, NamedTuple

import psutil

from fsjax.errors import ConfigError

#: Modules that the server of processes imports once; each process then starts at once.
_PRELOADED: Final = ["experiments.arena.runs"]

#: Seconds between two looks at a process.
_PAUSE: Final = 0.05


#: Seconds that a process may take for each CPU second of its limit: one that waits ends, too.
_PATIENCE: Final = 10.0


class Limits(NamedTuple):
    """CPU seconds and MiB of memory that a process may use."""

    cpu_seconds: float
    memory: float

    def of(self, failure: str) -> float:
        """The limit of a failure by ``time`` or ``memory``; NaN for others."""
        return {"time": self.cpu_seconds, "memory": self.memory}.get(failure, float("nan"))


#: The limits of recorded rows.
DEFAULT: Final = Limits(60.0, 8192.0)


class Outcome(NamedTuple):
    """What became of a process.

    Attributes:
      value: that the function returned, or ``None``.
      failure: empty, ``time``, ``memory``, ``error`` or ``crash``.
      reason: of the failure, in a line.
      cpu_seconds: of the function and the processes that it started.
      memory: most MiB that the process occupied.
    """

    value: Any
    failure: str = ""
    reason: str = ""
    cpu_seconds: float = float("nan")
    memory: float = float("nan")


def call(function: Callable[..., Any], arguments: tuple[Any, ...], limits: Limits) -> Outcome:
    """Calls a function with copies of its arguments in a new process, and waits for it.

    The process may take :data:`_PATIENCE` seconds for each CPU second of its limit.

    Raises:
      ConfigError: in a worker of a cluster that may not start processes.
    """
    if multiprocessing.current_process().daemon:
        raise ConfigError(
            "the workers of this cluster may not start processes; start them by dask worker with "
            "--no-nanny, or with DASK_DISTRIBUTED__WORKER__DAEMON=false in the environment"
        )
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_PRELOADED)
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_work, args=(theirs, function, arguments))
    process.start()
    theirs.close()
    try:
        return _wait(process, ours, limits)
    finally:
        assert process.pid is not None
        _end(process.pid)
        process.join()
        ours.close()


def _wait(process: Any, connection: Connection, limits: Limits) -> Outcome:
    """Receives the outcome, or ends a process beyond its limits."""
    end = time.monotonic() + _PATIENCE * limits.cpu_seconds
    while not connection.poll(_PAUSE):
        seconds, memory = _used(process.pid)
        if time.monotonic() > end:
            waited = f"more than {_PATIENCE * limits.cpu_seconds:g} seconds"
            reason = f"{waited}, of which {seconds:.1f} on the CPU"
            return Outcome(None, "time", reason, seconds, memory)
        if seconds > limits.cpu_seconds:
            reason = f"more than {limits.cpu_seconds:g} CPU seconds"
            return Outcome(None, "time", reason, seconds, memory)
        if memory > limits.memory:
            reason = f"more than {limits.memory:g} MiB"
            return Outcome(None, "memory", reason, seconds, memory)
    try:
        return Outcome(*connection.recv())
    except EOFError:
        process.join()
        return Outcome(
            None, "crash", f"the process ended with {process.exitcode}, without an answer"
        )


def _used(pid: int) -> tuple[float, float]:
    """CPU seconds and MiB that a process and those that it started use now."""
    seconds = memory = 0.0
    try:
        process = psutil.Process(pid)
        for part in (process, *process.children(recursive=True)):
            times = part.cpu_times()
            seconds += times.user + times.system
            memory += part.memory_info().rss / 2**20
    except psutil.NoSuchProcess:
        pass
    return seconds, memory


def _end(pid: int) -> None:
    """Kills a process and those that it started."""
    try:
        process = psutil.Process(pid)
        for part in (*process.children(recursive=True), process):
            part.kill()
    except psutil.NoSuchProcess:
        pass


def _cpu_seconds() -> float:
    whose = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return sum(sum(resource.getrusage(who)[:2]) for who in whose)


def _work(connection: Connection, function: Callable[..., Any], arguments: tuple) -> None:
    """Calls the function and sends its outcome; runs in the new process."""
    started = _cpu_seconds()
    try:
        value, failure, reason = function(*arguments), "", ""
    except MemoryError as error:
        value, failure, reason = None, "memory", str(error)
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{where.filename.rpartition('/')[2]}:{where.lineno}"
        lines = filter(None, map(str.strip, str(error).splitlines()))
        reason = ": ".join((type(error).__name__, *itertools.islice(lines, 1)))
        value, failure, reason = None, "error", f"{reason} ({place})"
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10
    # The arena may have been killed meanwhile.
    with contextlib.suppress(BrokenPipeError):
        connection.send((value, failure, reason, _cpu_seconds() - started, memory))
