"""Start of a run on several processes, and their end after an error."""

from __future__ import annotations

import atexit
import os
import re
import select
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

import jax

from fsjax.engine.distributed.exchange import process_count
from fsjax.errors import ConfigError, check_whole, is_number

#: Seconds without a heartbeat after which JAX's service regards a process as lost.
HEARTBEAT = 30

#: Seconds of waiting for other processes before a message says so.
PATIENCE = 5.0

#: Seconds by which JAX's timeout is later than that of fsjax, which prints one line instead.
MARGIN = 60

#: Seconds that process 0 waits before it ends, so that the others can report their errors.
GRACE = 1.0

#: Seconds of the longest timeout that JAX is given.
_LONGEST_WAIT = 10**9

#: Seconds that one call of ``select`` waits at most; the operating system limits them.
_LONGEST_PAUSE = 3600.0

#: The end of messages about lost processes.
_RESUMES = (
    "The same command resumes from the newest checkpoint, even with another number of processes"
)

#: What JAX's errors say if another process was lost.
_LOST = re.compile(
    r"gloo|nccl|connection|socket|unavailable|heartbeat|coordination|deadline", re.IGNORECASE
)


def initialize_distributed(
    coordinator: str | None = None,
    num_processes: int | None = None,
    process_id: int | None = None,
    *,
    coordinator_timeout: float = 120.0,
) -> int:
    """Connects this process to the others of a run; call it before JAX makes its first array.

    It is :func:`jax.distributed.initialize` with checked arguments and a shorter heartbeat. All
    processes run the same program: :func:`fsjax.fit` and similar functions distribute their runs
    over the devices of all processes, and return the whole result in each. Only process 0 shows
    progress, calls callbacks and writes checkpoints. When a process is lost, JAX ends the others
    within :data:`HEARTBEAT` seconds; the same command resumes from the newest checkpoint.

    Arguments that are left out are read from Slurm, Open MPI, Kubernetes or the TPU pod that
    started the process, where JAX detects one.

    Args:
      coordinator: ``HOST:PORT`` of process 0, a free port that the others can reach. The network
        must be trusted: connections are neither authenticated nor encrypted.
      num_processes: the number of processes, at least 1.
      process_id: the number of this process, from 0 to ``num_processes - 1``.
      coordinator_timeout: seconds to wait for the others, above 0; the process then ends with one
        line and exit status 1. Ctrl-C and SIGTERM end it at once while it waits.

    Returns:
      The number of this process.

    Raises:
      ConfigError: for invalid arguments or ones that cannot be detected, if JAX has already
        initialised its devices, and if process 0 cannot listen at its port.

    Examples:
      >>> # on each process
      >>> fsjax.initialize_distributed("node1:9123", 2, 0)  # doctest: +SKIP
    """
    if jax.distributed.is_initialized():
        raise ConfigError("initialize_distributed() has already been called; call it once")
    if not is_number(coordinator_timeout) or not coordinator_timeout > 0:
        raise ConfigError(f"coordinator_timeout={coordinator_timeout!r}; choose seconds above 0")
    _check_place(coordinator, num_processes, process_id)
    if coordinator is not None and process_id == 0:
        _check_port(coordinator)
    who = "this process" if process_id is None else f"process {process_id}"
    others = "the others" if num_processes is None else f"all {num_processes} processes"
    where = "" if coordinator is None else f" at {coordinator}"
    try:
        with _watched(f"{who} is waiting for {others}{where}", coordinator_timeout):
            jax.distributed.initialize(
                coordinator,
                num_processes,
                process_id,
                # By default JAX would listen at all addresses of the machine.
                coordinator_bind_address=coordinator if _is_local(coordinator) else None,
                initialization_timeout=round(min(coordinator_timeout, _LONGEST_WAIT)) + MARGIN,
                heartbeat_timeout_seconds=HEARTBEAT,
            )
    except Exception as error:
        raise _in_our_words(error, coordinator, num_processes, process_id) from error
    atexit.register(_leave_after_an_error)
    return jax.process_index()


def _check_place(
    coordinator: str | None, num_processes: int | None, process_id: int | None
) -> None:
    if coordinator is not None:
        host, _, port = str(coordinator).rpartition(":")
        if not host or not port.isdigit() or not 0 < int(port) < 2**16:
            raise ConfigError(f"coordinator={coordinator!r}; write HOST:PORT, as in node1:9123")
    if num_processes is not None:
        check_whole("num_processes", num_processes)
    if process_id is not None:
        check_whole("process_id", process_id, 0)
        if num_processes is not None and process_id >= num_processes:
            raise ConfigError(
                f"process_id={process_id} with num_processes={num_processes}; choose a number "
                f"from 0 to {num_processes - 1}"
            )


def _check_port(coordinator: str) -> None:
    """Raises ConfigError for a port that is in use, with which JAX would crash."""
    host, _, port = coordinator.rpartition(":")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        address = host.strip("[]") if _is_local(coordinator) else ""
        socket.create_server((address, int(port)), family=family).close()
    except OSError as error:
        raise ConfigError(
            f"process 0 cannot listen at port {port} ({error.strerror or error}); choose a free "
            "port in coordinator=HOST:PORT"
        ) from None


def _is_local(coordinator: str | None) -> bool:
    host = str(coordinator).rpartition(":")[0].strip("[]")
    return host in ("localhost", "::1") or host.startswith("127.")


def _in_our_words(
    error: Exception, coordinator: str | None, num_processes: int | None, process_id: int | None
) -> ConfigError:
    """What an exception of ``jax.distributed.initialize`` means for the user."""
    place = {
        "coordinator": coordinator,
        "num_processes": num_processes,
        "process_id": process_id,
    }
    missing = [name for name, value in place.items() if value is None]
    if "before any JAX calls" in str(error):
        return ConfigError(
            "initialize_distributed() comes too late: JAX has already initialised its devices; "
            "call it before anything that makes a JAX array"
        )
    if missing:
        return ConfigError(
            f"{', '.join(missing)} not given, and not detected from Slurm, Open MPI, Kubernetes or "
            f"a TPU pod ({error}); give coordinator=HOST:PORT, num_processes and process_id"
        )
    return ConfigError(
        f"process {process_id} cannot start or reach JAX's service at {coordinator}: {error}"
    )


@contextmanager
def _watched(waiting: str, seconds: float) -> Iterator[None]:
    """Ends this process if the block takes too long, or at a signal.

    JAX waits in compiled code, where Python calls no handlers of signals, and its own timeout
    aborts the process with many lines.

    Args:
      waiting: a sentence that says who waits for whom.
      seconds: the longest time.
    """
    reading, writing = socket.socketpair()
    writing.setblocking(False)
    in_main = threading.current_thread() is threading.main_thread()
    before = signal.set_wakeup_fd(writing.fileno(), warn_on_full_buffer=False) if in_main else -1
    watch = threading.Thread(target=_watch, args=(reading, waiting, seconds), daemon=True)
    watch.start()
    try:
        yield
    finally:
        if in_main:
            signal.set_wakeup_fd(before)
        writing.close()
        watch.join()
        reading.close()


def _watch(reading: socket.socket, waiting: str, seconds: float) -> None:
    """Says who waits, and ends the process at a signal or when the time is up.

    Args:
      reading: receives the numbers of signals; its end ends the watch.
      waiting: as in :func:`_watched`.
      seconds: as in :func:`_watched`.
    """
    end = time.monotonic() + seconds
    soon = time.monotonic() + PATIENCE
    while (left := end - time.monotonic()) > 0:
        until_message = soon - time.monotonic()
        pause = max(min(left, until_message, _LONGEST_PAUSE), 0)
        if select.select([reading], [], [], pause)[0]:
            numbers = reading.recv(1)
            if not numbers:
                return
            if numbers[0] in (signal.SIGINT, signal.SIGTERM):
                _end_with(f"interrupted: {waiting}; nothing was trained", 128 + numbers[0])
        elif until_message <= 0:
            soon = float("inf")
            print(
                f"{waiting}, for up to {seconds:g} s; if they do not come, check that all were "
                "started with the same coordinator and num_processes and different process_id, "
                "and that no firewall blocks their connections",
                file=sys.stderr,
                flush=True,
            )
    _end_with(
        f"error: {waiting}, which did not all connect within {seconds:g} s; nothing was trained. "
        "Start all of them again, or choose a longer coordinator_timeout",
        1,
    )


def _end_with(message: str, code: int) -> NoReturn:
    print(message, file=sys.stderr, flush=True)
    os._exit(code)


def lost_process(error: BaseException) -> str | None:
    """What an error of a collective operation means for the user, if a process was lost.

    Args:
      error: an exception of JAX.

    Returns:
      A message in one line; ``None`` with a single process, or for an error of another kind.
    """
    first_line = str(error).split("\n", 1)[0]
    if process_count() == 1 or not isinstance(error, jax.errors.JaxRuntimeError):
        return None
    if not _LOST.search(first_line):
        return None
    return (
        f"process {jax.process_index()} of {jax.process_count()} ends because another process was "
        f"lost or ended ({first_line}). {_RESUMES}"
    )


def _leave_after_an_error() -> None:
    """Ends this process after an error before JAX waits for the others, which might deadlock."""
    if getattr(sys, "last_value", None) is None:
        return
    print(
        f"process {jax.process_index()} of {jax.process_count()} ends; if the error above is about "
        f"a connection, another process was lost. {_RESUMES}",
        file=sys.stderr,
    )
    end_process(1)


def end_process(code: int) -> NoReturn:
    """Ends this process at once; the others notice the lost connection and end too."""
    if jax.process_index() == 0:
        # JAX aborts the others as soon as process 0 ends; they may have an error to report.
        time.sleep(GRACE)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
