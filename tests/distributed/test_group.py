"""What the processes of a run tell each other, here as threads that have a connection each."""

from __future__ import annotations

import contextlib
import json
import queue
import re
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from processes import free_port

from fsjax.distributed import members, same, start
from fsjax.distributed.frames import Line, Stranger
from fsjax.distributed.members import Group
from fsjax.distributed.start import HELLO, Place, find_place, join
from fsjax.errors import ConfigError


@pytest.fixture
def connected() -> Iterator[Callable[[int], list[Group]]]:
    """Makes groups of so many processes, all in this one."""
    made: list[Group] = []

    def make(count: int) -> list[Group]:
        pairs = {number: socket.socketpair() for number in range(1, count)}
        lead = Group(0, count, {number: Line(pair[0]) for number, pair in pairs.items()})
        others = [Group(number, count, {0: Line(pair[1])}) for number, pair in pairs.items()]
        made.extend([lead, *others])
        return [lead, *others]

    yield make
    in_all(made, Group.leave)
    for one in made:
        one.close()


def in_all(found: list[Group], function: Callable[[Group], Any]) -> list[Any]:
    """What a function gives, or raises, in each of them."""

    def tried(one: Group) -> Any:
        try:
            return function(one)
        except ConfigError as error:
            return str(error)

    with ThreadPoolExecutor(len(found)) as pool:
        return list(pool.map(tried, found))


def test_all_get_what_each_gives_and_the_bytes_of_the_lead(connected) -> None:
    data = bytes(range(256)) * 20_000  # of several pieces
    for _ in range(3):
        found = in_all(
            connected(3),
            lambda one: one.gather("x", one.number**2, data if not one.number else b""),
        )
        assert found == [([0, 1, 4], data)] * 3


def test_processes_at_different_places_are_told_apart(connected) -> None:
    def ask(one: Group) -> Any:
        if one.number:
            return one._tell({"kind": "part", "what": "b", "value": 0})
        return one.gather("a", 0)

    told = in_all(connected(2), ask)
    assert told[0].startswith("process 1 is at 'b', process 0 at 'a'; all processes must run")


def test_nobody_waits_for_a_process_that_has_ended(connected) -> None:
    def end_or_ask(one: Group) -> Any:
        if one.number:
            one._tell({"kind": "bye"})
            return None
        return one.gather("x", 0)

    told = in_all(connected(2), end_or_ask)
    assert told[0].startswith("process 1 has ended, where this one still has work to do")


@pytest.mark.parametrize("silent", [True, False])
def test_a_process_that_is_silent_or_gone_ends_the_others(silent, monkeypatch) -> None:
    said, codes, over = [], [], threading.Event()
    monkeypatch.setattr(members, "SILENCE", 0.3)
    monkeypatch.setattr(members, "_say", said.append)

    def note(self: Group, code: int) -> None:
        codes.append(code)
        over.set()

    monkeypatch.setattr(Group, "_end", note)
    here, there = socket.socketpair()
    one = Group(0, 2, {1: Line(here)})
    if not silent:
        there.close()
    assert over.wait(5)
    assert codes == [75] and "process 1 of 2 is lost" in said[0]
    one.close()
    there.close()


def test_strangers_are_turned_away() -> None:
    # The second one promises more than memory holds.
    for said in (b"GET / HTTP/1.1\r\nHost: here\r\n", struct.pack(">4sQQ", b"fsjx", 2**60, 0)):
        here, there = socket.socketpair()
        with here, there, pytest.raises(Stranger):
            here.sendall(said)
            Line(there).receive()


def joined(places: list[Place], timeout: float) -> list[Any]:
    def tried(place: Place) -> Any:
        try:
            found, address = join(place, timeout)
            found.leave()
            found.close()
            return address
        except ConfigError as error:
            return str(error)

    with ThreadPoolExecutor(len(places)) as pool:
        return list(pool.map(tried, places))


def places(port: int, *pairs: tuple[int, int]) -> list[Place]:
    """Places on this machine, by number and count."""
    return [Place("127.0.0.1", port, count, number, None) for number, count in pairs]


def frame(fields: object, data: bytes = b"") -> bytes:
    """What a stranger who knows the form of messages may send."""
    text = fields if isinstance(fields, bytes) else json.dumps(fields).encode()
    return struct.pack(">4sQQ", b"fsjx", len(text), len(data)) + text + data


STRANGE = (
    b"GET / HTTP/1.1\r\n\r\n, which is no hello",
    struct.pack(">4sQQ", b"fsjx", 2**60, 0),
    frame([]),
    frame(7),
    frame({"number": 1}),
    frame(b"\xff\xfe"),
    frame(b"[" * 1000),
    frame({"kind": "hello", "number": [1], "count": 3}),
    frame({"kind": "hello", "number": "1", "count": 3}),
    frame({"kind": "hello", "number": 1.5, "count": 3}),
    frame({"kind": "hello", "number": 1, "count": 99}),
    frame({"kind": "hello", "number": 7, "count": 3}),
    frame({"kind": "hello", "number": 1, "count": 3}, b"unasked"),
    frame({"kind": "part", "what": "x", "value": 0}),
    b"",
)


def test_processes_meet_while_strangers_knock() -> None:
    port = free_port()

    with ThreadPoolExecutor(1) as pool, contextlib.ExitStack() as stack:
        lead = pool.submit(joined, places(port, (0, 3)), 10.0)
        strangers: list[socket.socket] = []
        while len(strangers) < len(STRANGE):
            assert not lead.done(), lead.result()
            with contextlib.suppress(ConnectionRefusedError):
                stranger = socket.create_connection(("127.0.0.1", port))
                strangers.append(stack.enter_context(stranger))
                stranger.sendall(STRANGE[len(strangers) - 1])
        # Those who say nothing keep nobody waiting.
        started = time.monotonic()
        addresses = joined(places(port, (2, 3), (1, 3)), 10.0) + lead.result()
        assert time.monotonic() - started < HELLO
    assert len(set(addresses)) == 1 and addresses[0].startswith("127.0.0.1:")


def test_a_message_that_lacks_its_fields_is_a_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    lost: queue.Queue[int] = queue.Queue()
    monkeypatch.setattr(Group, "_lost", lambda self, other: lost.put(other))
    here, there = socket.socketpair()
    with there:
        group = Group(0, 2, {1: Line(here)})
        there.sendall(frame({"kind": "fail"}))
        assert lost.get(timeout=5) == 1
        group.close()


@pytest.mark.parametrize(
    ("pairs", "told"),
    [
        ([(1, 2)], "process 1 got no answer from the coordinator 127.0.0.1:.* host and port, that"),
        ([(0, 3), (2, 3)], "process 1 of 3 did not come to 127.0.0.1:.* that all were started"),
        ([(0, 3), (1, 3), (1, 3)], "process_id=1 was given to two processes"),
        ([(0, 2), (1, 3)], "num_processes=2 for process 0 and 3 for process 1; give all the same"),
        ([(0, 3), (0, 3)], "cannot listen at port|did not come"),
    ],
)
def test_processes_that_do_not_meet_are_told_why(pairs, told) -> None:
    found = joined(places(free_port(), *pairs), 1.0)
    for one in found:
        assert re.search(told, one), one


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ((None, None, None), "coordinator, num_processes, process_id is missing, and no cluster"),
        ((None, 2, None), "num_processes=2 without coordinator, process_id, and no cluster"),
        (("node1:9123", None, 0), "without num_processes"),
        (("node1", 2, 0), "coordinator='node1'; write HOST:PORT"),
        (("node1:port", 2, 0), "write HOST:PORT"),
        (("node1:9123", 2, 2), "process_id=2 with num_processes=2; choose a number from 0 to 1"),
        (("node1:9123", 2, -1), "process_id=-1; choose a whole number, at least 0"),
        (("node1:9123", 0, 0), "num_processes=0; choose a whole number, at least 1"),
    ],
)
def test_mistakes_are_told_before_anything_starts(given, told, monkeypatch) -> None:
    for name in ("SLURM_JOB_ID", "OMPI_MCA_orte_hnp_uri", "KUBERNETES_SERVICE_HOST"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ConfigError, match=told):
        find_place(*given, 1.0)


def test_what_slurm_says_is_taken(monkeypatch) -> None:
    told = {
        "SLURM_JOB_ID": "7000",
        "SLURM_STEP_NODELIST": "node[3-4]",
        "SLURM_NTASKS": "4",
        "SLURM_PROCID": "3",
        "SLURM_LOCALID": "1",
        "SLURM_STEP_NUM_NODES": "2",
    }
    for name, value in told.items():
        monkeypatch.setenv(name, value)
    found = find_place(None, None, None, 1.0)
    assert (found.host, found.processes, found.number) == ("node3", 4, 3)
    # What is given counts more.
    assert find_place("other:9123", None, 0, 1.0)[:4] == ("other", 9123, 4, 0)


def test_what_differs_is_named_with_the_processes(connected, monkeypatch) -> None:
    parts = [
        {"code": 1, "data": "x", "configuration": [1]},
        {"code": 1, "data": "y", "configuration": [1]},
        {"code": 2, "data": "y", "configuration": [1]},
    ]
    local = threading.local()
    monkeypatch.setattr(same, "group", lambda: local.group)

    def compared(one: Group) -> str | None:
        local.group = one
        return same.check_same(**parts[one.number])

    told = in_all(connected(3), compared)
    assert told[0] == told[1] == told[2]
    assert "the data of process 1, 2 is not that of process 0" in told[0]
    assert "the code of process 2 is not" in told[0]
    assert "configuration" not in told[0]
    parts[1:] = [parts[0]] * 2
    assert in_all(connected(3), compared) == [None] * 3


@pytest.mark.parametrize(
    ("host", "bound"),
    [("127.0.0.1", "127.0.0.1:9124"), ("localhost", "localhost:9124"), ("node1", None)],
)
def test_jax_listens_at_this_machine_alone(
    host: str, bound: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: dict[str, Any] = {}
    monkeypatch.setattr(start, "join", lambda place, _: (None, f"{place.host}:9124"))
    monkeypatch.setattr(start.xla_bridge, "backends_are_initialized", lambda: False)
    monkeypatch.setattr(start.jax.distributed, "initialize", lambda *_, **more: told.update(more))
    for name in ("enter", "_end_together", "_delay_aborts"):
        monkeypatch.setattr(start, name, lambda *_: None)
    assert start.initialize_distributed(f"{host}:9123", 2, 0) == 0
    assert told["coordinator_bind_address"] == bound
