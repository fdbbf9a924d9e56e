"""Exchange of values between real processes, and in a single one, which gets its own values.

Covers ``fsjax.engine.distributed.exchange``.
"""

from __future__ import annotations

import json
import re
import signal
from pathlib import Path

import pytest
from processes import ended, free_port, start, workers

from fsjax.engine.distributed import (
    agreed,
    gathered_processes,
    is_lead,
    process_count,
    share,
    shared_out,
)


def test_alone_a_process_gets_its_own_values() -> None:
    assert (process_count(), is_lead()) == (1, True)
    assert gathered_processes("x", [1, "a"]) == [[1, "a"]]
    assert agreed("x", 2.5) == 2.5
    assert share("x", b"abc") == b"abc"
    assert shared_out("x", [1, 2, 3], lambda part: [item**2 for item in part]) == [1, 4, 9]


@pytest.mark.slow
def test_three_processes_exchange_values_bytes_and_work(tmp_path: Path) -> None:
    processes = workers(3, tmp_path, "exchange", "other_name")
    for number in range(3):
        seen = json.loads((tmp_path / f"exchange{number}.json").read_text())
        # Texts of several lengths, including the empty list and one beyond a power of two.
        assert seen["gathered"] == [[], ["ä" * 40], ["ä" * 80]]
        assert seen["agreed"] == 1.0e-300
        assert seen["shared"] == [[0, 0], [2, 7], [200_000, 199_999 * 7 % 251]]
        assert seen["work"] == [[place**2, place % 3] for place in range(7)]
    for process in processes:
        assert process.code == 1
        fault = "ConfigError: process 2 and process 0 are at different points of the program"
        assert re.search(fault + r" \(this process: '[ab]'\)", process.err), process.err


@pytest.mark.long
@pytest.mark.parametrize("number", [0, 1])
def test_ctrl_c_ends_a_process_that_waits_at_once(number: int, tmp_path: Path) -> None:
    script, port = str(Path(__file__).with_name("worker.py")), str(free_port())
    arguments = [script, port, "2", str(number), "100", str(tmp_path)]
    (process,) = start(lambda _: arguments, [number])
    assert process.stderr is not None
    assert "is waiting for all 2 processes" in process.stderr.readline()
    process.send_signal(signal.SIGINT)
    (told,) = ended([process], 20)
    assert told.code == 130
    assert told.err.startswith(f"interrupted: process {number} is waiting for all 2 processes")
    assert told.err.count("\n") == 1
