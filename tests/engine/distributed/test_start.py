"""Arguments of ``initialize_distributed`` that are refused, the wait for others, lost processes."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import threading
import time
from typing import Any

import jax
import pytest
from bad_calls import bad_calls, refuses
from jax.errors import JaxRuntimeError
from processes import ROOT

from fsjax.engine.distributed import initialize_distributed, same, start
from fsjax.engine.distributed.same import check_same
from fsjax.errors import ConfigError

NODE = ("node1:9123", 2, 0)


@bad_calls(
    (("node1", 2, 0), {}, "coordinator='node1'; write HOST:PORT"),
    (("node1:port", 2, 0), {}, "write HOST:PORT"),
    (("node1:9123", 2, 2), {}, "process_id=2 with num_processes=2"),
    (("node1:9123", 2, -1), {}, "process_id=-1; choose a whole number"),
    (("node1:9123", 0, 0), {}, "num_processes=0; choose a whole number"),
    (("127.0.0.1:9123", 2, 0), {}, "comes too late"),
    (NODE, {"coordinator_timeout": 0}, "coordinator_timeout=0; choose seconds"),
    (NODE, {"coordinator_timeout": float("nan")}, "coordinator_timeout=nan; choose seconds"),
    (NODE, {"coordinator_timeout": "2"}, "coordinator_timeout='2'; choose seconds"),
    (NODE, {"coordinator_timeout": None}, "coordinator_timeout=None; choose seconds"),
)
def test_bad_calls(bad: tuple) -> None:
    jax.devices()
    refuses(lambda: initialize_distributed(*bad[0], **bad[1]), bad[2])


def in_fresh_process(call: str) -> str:
    """The error of ``initialize_distributed`` in a process in which JAX has not started."""
    script = f"import fsjax\nfsjax.initialize_distributed({call})"
    command = [sys.executable, "-c", script]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True).stderr


def test_what_is_neither_given_nor_detected_is_named() -> None:
    message = in_fresh_process("None, 2, None")
    assert "ConfigError: coordinator, process_id not given, and not detected" in message
    assert "Slurm" in message


def test_a_port_that_is_taken_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        message = in_fresh_process(f"'127.0.0.1:{port}', 2, 0")
    assert f"ConfigError: process 0 cannot listen at port {port} (Address already in" in message


@pytest.mark.parametrize(
    ("host", "bound"), [("127.0.0.1", True), ("localhost", True), ("[::1]", True), ("node1", False)]
)
def test_jax_listens_at_this_machine_alone(
    host: str, bound: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    options: dict[str, Any] = {}
    monkeypatch.setattr(jax.distributed, "initialize", lambda *_, **more: options.update(more))
    monkeypatch.setattr("atexit.register", lambda _: None)
    monkeypatch.setattr(start, "_check_port", lambda _: None)
    assert initialize_distributed(f"{host}:9123", 2, 0) == 0
    assert options["coordinator_bind_address"] == (f"{host}:9123" if bound else None)


@pytest.fixture
def ends(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """Messages and exit codes with which the process would have ended."""
    recorded: list[tuple[str, int]] = []
    monkeypatch.setattr(start, "_end_with", lambda *end: recorded.append(end))
    monkeypatch.setattr(start, "PATIENCE", 0.0)
    return recorded


def wait_for_end(ends: list[tuple[str, int]]) -> None:
    """Waits until the process would have ended."""
    for _ in range(2000):
        if ends:
            return
        time.sleep(0.01)


@pytest.mark.parametrize("in_main_thread", [True, False])
def test_waiting_ends_with_one_line_when_the_time_is_up(
    in_main_thread: bool, ends: list[tuple[str, int]], capsys: pytest.CaptureFixture[str]
) -> None:
    def wait() -> None:
        with start._watched("process 1 is waiting for all 2 processes at node1:9123", 1.0):
            wait_for_end(ends)

    if in_main_thread:
        wait()
    else:
        thread = threading.Thread(target=wait)
        thread.start()
        thread.join()
    assert "node1:9123, for up to 1 s; if they do not come" in capsys.readouterr().err
    ((message, code),) = ends
    assert code == 1
    assert message.startswith("error: process 1 is waiting for all 2 processes at node1:9123")
    assert "did not all connect within 1 s" in message


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_waiting(number: int, ends: list[tuple[str, int]]) -> None:
    before = signal.signal(number, lambda *_: None)
    try:
        with start._watched("process 1 is waiting", float("inf")):
            signal.raise_signal(number)
            wait_for_end(ends)
    finally:
        signal.signal(number, before)
    assert ends == [("interrupted: process 1 is waiting; nothing was trained", 128 + number)]


def test_who_connects_in_time_is_not_watched_any_more(
    ends: list[tuple[str, int]], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    descriptor = signal.set_wakeup_fd(-1)
    monkeypatch.setattr(start, "PATIENCE", 60.0)
    with start._watched("process 1 is waiting", 60.0):
        pass
    assert (ends, capsys.readouterr().err) == ([], "")
    assert "_watch" not in str(threading.enumerate())
    assert signal.set_wakeup_fd(descriptor) == -1


@pytest.mark.parametrize(
    ("error", "count", "lost"),
    [
        (JaxRuntimeError("UNKNOWN: Gloo AllGather failed: Connection reset by peer"), 3, True),
        (JaxRuntimeError("UNKNOWN: Gloo AllGather failed: Connection reset by peer"), 1, False),
        (JaxRuntimeError("RESOURCE_EXHAUSTED: Out of memory allocating 8 bytes"), 3, False),
        (RuntimeError("Connection reset by peer"), 3, False),
    ],
)
def test_errors_of_connections_mean_a_lost_process(
    error: Exception, count: int, lost: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(start, "process_count", lambda: count)
    monkeypatch.setattr(jax, "process_count", lambda: count)
    message = start.lost_process(error)
    assert (message is not None) == lost
    if message is not None:
        assert message.startswith("process 0 of 3 ends because another process was lost or ended")
        assert "(UNKNOWN: Gloo AllGather failed: Connection reset by peer)" in message
        assert "The same command resumes from the newest checkpoint" in message


def test_what_differs_is_named_with_the_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = [
        {"code": 1, "data": "x", "configuration": [1]},
        {"code": 1, "data": "y", "configuration": [1]},
        {"code": 2, "data": "y", "configuration": [1]},
    ]
    others = [{name: same.json_digest(part) for name, part in each.items()} for each in parts]
    monkeypatch.setattr(same, "process_count", lambda: 3)
    monkeypatch.setattr(same, "gathered_processes", lambda _, mine: [mine, *others[1:]])
    with pytest.raises(ConfigError) as raised:
        check_same(**parts[0])
    message = str(raised.value)
    assert "the data of process 1, 2 is not that of process 0" in message
    assert "the code of process 2 is not" in message
    assert "configuration" not in message
    others[1:] = [others[0]] * 2
    check_same(**parts[0])
