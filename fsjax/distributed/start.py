"""The start of a run on several processes: who takes part, and where they meet."""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import os
import queue
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, NoReturn

import jax
from jax._src import xla_bridge
from jax._src.clusters import ClusterEnv

from fsjax.distributed.frames import Line, Stranger
from fsjax.distributed.members import GRACE, INTERRUPTED, MISTAKE, Group, enter, group
from fsjax.distributed.own_programs import keep_own_programs
from fsjax.errors import ConfigError, FsjaxError, check_whole, is_number

#: Seconds after which JAX's own service gives up a process, should the group not notice, and in
#: which processes that have all come to their end let go of it.
HEARTBEAT, SHUTDOWN = 90, 30

#: Seconds in which who connects must say who it is, and in which process 0 answers.
HELLO = 5.0

#: Seconds after which process 0 looks who has said hello.
LOOK = 0.05

#: Numbers of processes stay below, and so many different faults are kept for the message.
MOST_PROCESSES, MOST_FAULTS = 2**20, 4


class Place(NamedTuple):
    """Where a process stands.

    Attributes:
      host, port: of process 0.
      processes: how many there are.
      number: of this one, from 0.
      devices: numbers of the local devices that it uses, or ``None`` for all.
    """

    host: str
    port: int
    processes: int
    number: int
    devices: Sequence[int] | None


def initialize_distributed(
    coordinator: str | None = None,
    num_processes: int | None = None,
    process_id: int | None = None,
    *,
    coordinator_timeout: float = 120.0,
) -> int:
    """Joins this process to those of a run; call it before JAX makes its first array.

    Every process then runs the same program: :func:`fsjax.fit` and its like lay their runs over
    the devices of all of them, and give the whole result to each. Process 0 alone shows progress,
    calls callbacks and writes checkpoints. When a process is lost, the others end with exit code
    75, after one message.

    What is left out is asked of Slurm, Open MPI, Kubernetes or the TPU pod that started the
    process.

    Args:
      coordinator: ``HOST:PORT`` of process 0, with a port that is free there and that the others
        reach. A second port, which is chosen freely, serves JAX. The network must be trusted:
        connections are neither authenticated nor encrypted.
      num_processes: how many there are, at least 1.
      process_id: the number of this one, from 0 to ``num_processes - 1``.
      coordinator_timeout: seconds to wait for the others, above 0.

    Returns:
      The number of this process.

    Raises:
      ConfigError: for arguments that do not fit, where JAX has made an array already, and where
        processes do not come together in time.
    """
    if group() is not None:
        raise ConfigError("initialize_distributed() was called before; call it once")
    if not is_number(coordinator_timeout) or coordinator_timeout <= 0:
        raise ConfigError(f"coordinator_timeout={coordinator_timeout!r}; choose seconds above 0")
    place = find_place(coordinator, num_processes, process_id, coordinator_timeout)
    if xla_bridge.backends_are_initialized():
        raise ConfigError(
            "initialize_distributed() comes too late, JAX has its devices already; call it before "
            "anything that makes a JAX array"
        )
    if place.processes == 1:
        return 0
    joined, address = join(place, coordinator_timeout)
    try:
        jax.distributed.initialize(
            address,
            place.processes,
            place.number,
            local_device_ids=place.devices,
            cluster_detection_method="deactivate",
            # JAX would listen at all addresses of the machine, unencrypted.
            coordinator_bind_address=address if _is_local(place.host) else None,
            initialization_timeout=max(1, round(coordinator_timeout)),
            heartbeat_timeout_seconds=HEARTBEAT,
            shutdown_timeout_seconds=SHUTDOWN,
        )
    except Exception as error:
        joined.fail(f"JAX could not start its service at {address}: {error}")
    if place.number:
        keep_own_programs()
    enter(joined)
    _end_together(joined)
    _delay_aborts()
    return place.number


def find_place(
    coordinator: str | None, num_processes: int | None, process_id: int | None, timeout: float
) -> Place:
    """What was given, checked, and what JAX finds out for the rest.

    Raises:
      ConfigError: for what is missing, or out of range.
    """
    given = {"num_processes": num_processes, "process_id": process_id}
    if coordinator is not None:
        _address(coordinator)
    if num_processes is not None:
        check_whole("num_processes", num_processes)
    if process_id is not None:
        check_whole("process_id", process_id, 0)
        if num_processes is not None and process_id >= num_processes:
            raise ConfigError(
                f"process_id={process_id} with num_processes={num_processes}; choose a number "
                f"from 0 to {num_processes - 1}"
            )
    devices = None
    if None in (coordinator, num_processes, process_id):
        try:
            found = ClusterEnv.auto_detect_unset_distributed_params(
                coordinator, num_processes, process_id, None, None, round(timeout)
            )
        except Exception as error:
            raise ConfigError(
                f"the cluster's own settings cannot be read ({error}); give coordinator=HOST:PORT, "
                "num_processes and process_id"
            ) from error
        coordinator, num_processes, process_id, devices = found
        told = {"coordinator": coordinator} | {
            "num_processes": num_processes,
            "process_id": process_id,
        }
        if missing := [name for name, value in told.items() if value is None]:
            known = [f"{name}={value}" for name, value in given.items() if value is not None]
            raise ConfigError(
                f"{', '.join(known) + ' without ' if known else ''}{', '.join(missing)}"
                f"{'' if known else ' is missing'}, and no cluster manager is detected (Slurm, "
                "Open MPI, Kubernetes, TPU pods); give coordinator=HOST:PORT, num_processes and "
                "process_id"
            )
    assert coordinator is not None and num_processes is not None and process_id is not None
    host, port = _address(coordinator)
    return Place(host, port, int(num_processes), int(process_id), devices)


def _address(coordinator: str) -> tuple[str, int]:
    host, _, port = str(coordinator).rpartition(":")
    if not host or not port.isdigit() or not 0 < int(port) < 2**16:
        raise ConfigError(f"coordinator={coordinator!r}; write HOST:PORT, as in node1:9123")
    return host.strip("[]"), int(port)


def join(place: Place, timeout: float) -> tuple[Group, str]:
    """Brings the processes together; the group, and the address for JAX's own service.

    Raises:
      ConfigError: if they do not come in time, or do not fit together.
    """
    deadline = time.monotonic() + timeout
    if place.number:
        line, port = _reach(place, deadline, timeout)
        lines = {0: line}
    else:
        lines = _await(place, deadline, timeout)
        port = _free_port(place.host)
        for line in lines.values():
            # The group finds out who is gone by now.
            with contextlib.suppress(OSError):
                line.send({"kind": "welcome", "port": port})
    host = f"[{place.host}]" if ":" in place.host else place.host
    return Group(place.number, place.processes, lines), f"{host}:{port}"


def _reach(place: Place, deadline: float, timeout: float) -> tuple[Line, int]:
    """The connection of another process to process 0."""
    where = f"{place.host}:{place.port}"
    while True:
        left = deadline - time.monotonic()
        try:
            if left <= 0:
                raise TimeoutError("timed out")
            line = Line(socket.create_connection((place.host, place.port), timeout=left))
            break
        except OSError as error:
            if deadline - time.monotonic() > 0.5:
                time.sleep(0.3)
                continue
            raise ConfigError(
                f"process {place.number} got no answer from the coordinator {where} in "
                f"{timeout:g} s ({error.strerror or error}); check host and port, that process 0 "
                "was started there, and that no firewall is between"
            ) from None
    try:
        line.send({"kind": "hello", "number": place.number, "count": place.processes})
        line.silence(max(deadline - time.monotonic(), 0.1) + HELLO)
        fields, _ = line.receive()
        refusal = fields["text"] if fields["kind"] == "refused" else None
        port = 0 if refusal is not None else int(fields["port"])
    except (OSError, Stranger, KeyError, TypeError, ValueError):
        line.close()
        raise ConfigError(
            f"process {place.number}: what answers at {where} is no process 0 of fsjax, or it has "
            "ended; check the port and what process 0 says"
        ) from None
    if refusal is not None:
        line.close()
        raise ConfigError(refusal)
    return line, port


def _await(place: Place, deadline: float, timeout: float) -> dict[int, Line]:
    """The connections of process 0 to the others."""
    try:
        server = _server(place)
    except OSError as error:
        raise ConfigError(
            f"process 0 cannot listen at port {place.port} ({error.strerror or error}); choose a "
            "free port in coordinator=HOST:PORT"
        ) from None
    lines: dict[int, Line] = {}
    greetings: queue.SimpleQueue[tuple[Line, int, int]] = queue.SimpleQueue()
    faults: list[str] = []
    with server:
        while len(lines) < place.processes - 1:
            left = deadline - time.monotonic()
            if left <= 0:
                _refuse_all(place, lines, faults, timeout)
            server.settimeout(min(left, LOOK))
            try:
                # Beside each other: one that says nothing keeps nobody waiting.
                threading.Thread(
                    target=_greet, args=(server.accept()[0], greetings), daemon=True
                ).start()
            except TimeoutError:
                pass  # nobody came
            except OSError:  # who came has left, or there are too many of them
                time.sleep(LOOK)
            with contextlib.suppress(queue.Empty):
                while len(lines) < place.processes - 1:
                    _admit(place, lines, faults, *greetings.get_nowait())
    return lines


def _greet(connection: socket.socket, greetings: queue.SimpleQueue) -> None:
    """Hears who connects, and closes the connection of a stranger."""
    try:
        line = Line(connection)
        fields = line.receive_greeting(HELLO)
        number, count = fields["number"], fields["count"]
        if fields["kind"] != "hello" or not all(
            type(value) is int and 0 <= value < MOST_PROCESSES for value in (number, count)
        ):
            raise Stranger
        line.silence(HELLO)
        greetings.put((line, number, count))
    except (OSError, Stranger, KeyError):
        connection.close()


def _admit(
    place: Place, lines: dict[int, Line], faults: list[str], line: Line, number: int, count: int
) -> None:
    """Takes a process into the run, or refuses it alone: nothing tells that it is one of ours."""
    fault = None
    if count != place.processes:
        fault = f"num_processes={place.processes} for process 0 and {count} for process {number}"
        fault += "; give all the same"
    elif number in lines:
        fault = f"process_id={number} was given to two processes; number them from 0"
    elif not 0 < number < place.processes:
        fault = f"process_id={number} was given beside process 0; number them from 0"
    if fault is None:
        lines[number] = line
        return
    _refuse([line], fault)
    if fault not in faults and len(faults) < MOST_FAULTS:
        faults.append(fault)
        print(f"process 0 refuses a process and waits on: {fault}", file=sys.stderr)


def _refuse_all(
    place: Place, lines: dict[int, Line], faults: list[str], timeout: float
) -> NoReturn:
    """ConfigError in all processes that came, as others did not come in time."""
    missing = ", ".join(str(number) for number in range(1, place.processes) if number not in lines)
    text = (
        f"process {missing} of {place.processes} did not come to {place.host}:{place.port} in "
        f"{timeout:g} s; check that all were started, with the same coordinator and num_processes"
    )
    if faults:
        text += f" (refused: {'; '.join(faults)})"
    _refuse(lines.values(), text)
    raise ConfigError(text)


def _refuse(lines: Iterable[Line], text: str) -> None:
    for line in lines:
        with contextlib.suppress(OSError):
            line.send({"kind": "refused", "text": text})
        line.close()


def _is_local(host: str) -> bool:
    return host in ("localhost", "::1") or host.startswith("127.")


def _server(place: Place) -> socket.socket:
    if _is_local(place.host):
        family = socket.AF_INET6 if ":" in place.host else socket.AF_INET
        return socket.create_server((place.host, place.port), family=family)
    if socket.has_dualstack_ipv6():
        return socket.create_server(("", place.port), family=socket.AF_INET6, dualstack_ipv6=True)
    return socket.create_server(("", place.port))


def _free_port(host: str) -> int:
    with socket.create_server(("127.0.0.1" if _is_local(host) else "", 0)) as server:
        return server.getsockname()[1]


def _end_together(joined: Group) -> None:
    """However this process ends, the others hear of it, and none waits for one that is gone."""
    shown = sys.excepthook

    def tell(kind: type[BaseException], error: BaseException, trace: Any) -> None:
        if not isinstance(error, FsjaxError | KeyboardInterrupt):
            # What fails here may be a process that is lost, which is about to be found out.
            time.sleep(GRACE)
        shown(kind, error, trace)
        if isinstance(error, KeyboardInterrupt):
            joined.fail("interrupted", INTERRUPTED)
        joined.fail(f"{kind.__name__}: {error}", MISTAKE if isinstance(error, FsjaxError) else 1)

    sys.excepthook = tell
    atexit.register(joined.leave)


def _delay_aborts() -> None:
    """Gives the group time for its message where JAX's service aborts the process.

    The service does so at once where process 0 is gone, in a thread without Python. The handler is
    C's ``sleep``, whose argument is then the number of the signal: 6 seconds.
    """
    if os.name == "posix":
        library = ctypes.CDLL(None)
        library.signal(signal.SIGABRT, ctypes.cast(library.sleep, ctypes.c_void_p))
