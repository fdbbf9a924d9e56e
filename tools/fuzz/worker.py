"""Makes tries in a process with limits of CPU time and memory, and replaces it if it dies."""

from __future__ import annotations

import multiprocessing
import os
import resource
import signal
from collections.abc import Callable, Iterable, Iterator
from multiprocessing.connection import Connection
from typing import Any, Final

from tools.campaign import stretched

from . import data_files, saved_files
from .outcomes import CRASH, SLOW, Outcome

#: CPU seconds of a try; the limit of wall time is ten times as long, and longer on a busy machine.
SECONDS: Final = 10

#: Seconds of wall time for imports and the preparation of files, before the first try.
START: Final = 300

#: Bytes of address space that a try may add to those of the process.
MEMORY_LIMIT: Final = 3 * 2**30

Attempt = Callable[[int, int], Outcome]

#: All kinds of tries, and the default number of each.
KINDS: Final[dict[str, tuple[Attempt, int]]] = {
    "damaged data files": (data_files.attempt, 2000),
    # The most numerous kind last, so that there is time for the others.
    "saved files with other bytes": (saved_files.damaged_attempt, 12_900),
}


def outcomes(attempt: Attempt, numbers: Iterable[int], seed: int) -> Iterator[tuple[int, Outcome]]:
    """Yields the outcome of each try; starts another process if one dies."""
    process = connection = None
    for number in numbers:
        try:
            if process is None:
                process, connection = _started(attempt, seed)
                _received_within(START, process, connection)
            connection.send(number)
            outcome = _received_within(10 * SECONDS, process, connection)
        except (EOFError, OSError) as error:
            process.join()
            late = isinstance(error, TimeoutError) or process.exitcode == -signal.SIGPROF
            outcome = (SLOW if late else CRASH, f"the process ended with {process.exitcode}")
            process = None
        yield number, outcome
    if process is not None:
        process.kill()


def _started(attempt: Attempt, seed: int) -> tuple[multiprocessing.Process, Connection]:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_work, args=(theirs, attempt, seed), daemon=True)
    process.start()
    theirs.close()
    return process, ours


def _received_within(
    seconds: float, process: multiprocessing.Process, connection: Connection
) -> Any:
    """What the process sends; kills it if that takes too long."""
    if not connection.poll(stretched(seconds)):
        process.kill()
        raise TimeoutError
    return connection.recv()


def _work(connection: Connection, attempt: Attempt, seed: int) -> None:
    os.environ["FSJAX_CACHE"] = "off"
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # A first try, so that one-time preparation and compilation do not count.
    attempt(0, seed)
    in_use = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
    limit = in_use + MEMORY_LIMIT
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    connection.send(None)
    while True:
        number = connection.recv()
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        outcome = attempt(number, seed)
        signal.setitimer(signal.ITIMER_PROF, 0)
        connection.send(outcome)
