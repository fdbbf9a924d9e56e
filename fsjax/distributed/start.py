"""Start of a run on several processes, and their end after an error."""

from __future__ import annotations

import atexit
import os
import socket
import sys
import threading
import time
from typing import NoReturn

import jax

from fsjax.errors import ConfigError, check_whole, is_number

#: Seconds without a heartbeat after which JAX's service regards a process as lost.
HEARTBEAT = 30

#: Seconds of waiting for other processes before a message says so.
PATIENCE = 5.0

#: Seconds that process 0 waits before it ends, so that the others can report their errors.
GRACE = 1.0


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
      coordinator_timeout: seconds to wait for the others, above 0; JAX then ends the process.

    Returns:
      The number of this process.

    Raises:
      ConfigError: for invalid arguments or ones that cannot be detected, if JAX has already
        initialised its devices, and if process 0 cannot listen at its port.
    """
    if jax.distributed.is_initialized():
        raise ConfigError("initialize_distributed() has already been called; call it once")
    if not is_number(coordinator_timeout) or not coordinator_timeout > 0:
        raise ConfigError(f"coordinator_timeout={coordinator_timeout!r}; choose seconds above 0")
    _check_place(coordinator, num_processes, process_id)
    if coordinator is not None and process_id == 0:
        _check_port(coordinator)
    waiting = threading.Timer(
        PATIENCE, _say_who_waits, (coordinator, num_processes, process_id, coordinator_timeout)
    )
    waiting.daemon = True
    waiting.start()
    try:
        jax.distributed.initialize(
            coordinator,
            num_processes,
            process_id,
            # By default JAX would listen at all addresses of the machine.
            coordinator_bind_address=coordinator if _is_local(coordinator) else None,
            initialization_timeout=max(1, round(coordinator_timeout)),
            heartbeat_timeout_seconds=HEARTBEAT,
        )
    except Exception as error:
        raise _in_our_words(error, coordinator, num_processes, process_id) from error
    finally:
        waiting.cancel()
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


def _say_who_waits(
    coordinator: str | None, num_processes: int | None, process_id: int | None, seconds: float
) -> None:
    who = "this process" if process_id is None else f"process {process_id}"
    others = "the others" if num_processes is None else f"all {num_processes} processes"
    where = "" if coordinator is None else f" at {coordinator}"
    print(
        f"{who} is waiting for {others}{where}, for up to {seconds:g} s; if they do not come, "
        "check that all were started with the same coordinator and num_processes and different "
        "process_id, and that no firewall blocks their connections",
        file=sys.stderr,
        flush=True,
    )


def _leave_after_an_error() -> None:
    """Ends this process after an error before JAX waits for the others, which might deadlock."""
    if getattr(sys, "last_value", None) is None:
        return
    print(
        f"process {jax.process_index()} of {jax.process_count()} ends; if the error above is about "
        "a connection, another process was lost. The same command resumes from the newest "
        "checkpoint, even with another number of processes",
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
