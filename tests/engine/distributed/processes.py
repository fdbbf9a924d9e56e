"""Starts the processes of a run, and waits for them."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[3]


class Ended(NamedTuple):
    """How a process ended."""

    code: int
    out: str
    err: str


def free_port() -> int:
    """A free port."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def start(
    command: Callable[[int], Sequence[str]], numbers: Iterable[int]
) -> list[subprocess.Popen[str]]:
    """Starts ``python *command(number)`` for each number."""
    return [
        subprocess.Popen(
            [sys.executable, *command(number)],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for number in numbers
    ]


def ended(processes: Sequence[subprocess.Popen[str]], seconds: float = 240.0) -> list[Ended]:
    """Waits for all processes."""
    try:
        told = [process.communicate(timeout=seconds) for process in processes]
    finally:
        for process in processes:
            process.kill()
    return [Ended(p.returncode, *texts) for p, texts in zip(processes, told, strict=True)]


def workers(
    count: int,
    folder: Path,
    *steps: str,
    numbers: Sequence[int] | None = None,
    timeout: float = 120.0,
) -> list[Ended]:
    """Runs steps of ``worker.py`` in the processes of a run.

    Args:
      count: the number of processes that each expects.
      folder: where they write their results.
      *steps: names of functions of ``worker.py``.
      numbers: the numbers of the processes to start; all by default.
      timeout: seconds within which all must connect.
    """
    port, script = str(free_port()), str(Path(__file__).with_name("worker.py"))

    def command(number: int) -> list[str]:
        return [script, port, str(count), str(number), str(timeout), str(folder), *steps]

    return ended(start(command, range(count) if numbers is None else numbers))
