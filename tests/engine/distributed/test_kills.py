"""Processes are killed at random moments: the others end, and a restart gives the same result."""

from __future__ import annotations

import json
import random
import time
from pathlib import Path
from typing import Any

import pytest
from processes import Ended, ended, free_port, start

EPOCHS, EVERY = 1000, 25

ARGUMENTS = (
    "--config=configs/wast.py:digits",
    "--config.seeds=1,2,3",
    f"--config.train.num_epochs={EPOCHS}",
    f"--config.train.checkpoint_every={EVERY}",
)


def newest(workdir: Path) -> int:
    """The epoch of the newest checkpoint; 0 without checkpoints."""
    found = [int(path.stem[6:]) for path in (workdir / "checkpoints").glob("epoch_*.npz")]
    return max(found, default=0)


def launched(count: int, workdir: Path, kill: tuple[int, int, float] | None = None) -> list[Ended]:
    """Runs the launcher in processes.

    Args:
      count: number of processes.
      workdir: folder of the run.
      kill: the process to kill, the epoch whose checkpoint to wait for, and seconds after it.
    """
    common = ["-m", "experiments.run", *ARGUMENTS, f"--workdir={workdir}"]
    if count > 1:
        common += ["--distributed", f"--coordinator=127.0.0.1:{free_port()}"]
        common += [f"--num_processes={count}"]

    def command(number: int) -> list[str]:
        return [*common, f"--process_id={number}"] if count > 1 else common

    running = start(command, range(count))
    if kill is not None:
        victim, epoch, after = kill
        while newest(workdir) < epoch and running[victim].poll() is None:
            time.sleep(0.02)
        time.sleep(after)
        running[victim].kill()
        killed = time.monotonic()
    outcomes = ended(running)
    if kill is not None:
        print(f"the others ended {time.monotonic() - killed:.1f} s after the kill", flush=True)
    return outcomes


def outcome(workdir: Path) -> dict[str, Any]:
    """``result.json`` without the seconds of training."""
    result = json.loads((workdir / "result.json").read_text())
    result["cost"] = {k: v for k, v in result["cost"].items() if "second" not in k}
    result["cost"].pop("trained_epochs")
    return result


@pytest.mark.long
def test_a_job_that_lost_ten_processes_ends_as_if_it_had_not(tmp_path) -> None:
    undisturbed, workdir = tmp_path / "undisturbed", tmp_path / "run"
    (one,) = launched(1, undisturbed)
    assert one.code == 0, one.err
    draw = random.Random(0)
    for number in range(10):
        count = 2 + number % 2
        victim, before = draw.randrange(count), newest(workdir)
        epoch, after = before + EVERY, draw.uniform(0.0, 1.5)
        told = f"kill {number}: {victim} of {count}, {after:.2f} s after epoch {epoch}"
        last = launched(count, workdir, (victim, epoch, after))
        assert not (workdir / "result.json").exists(), "the run is too short for ten kills"
        print(f"{told}: codes {[one.code for one in last]}, newest {newest(workdir)}", flush=True)
        for place, one in enumerate(last):
            codes = (-9,) if place == victim else (1, -6)
            assert one.code in codes, f"{told}: {place} {one}"
            if one.code == 1:
                assert "Traceback" not in one.err, f"{told}: {place} {one}"
                # Lines of JAX's own threads may follow.
                error = f"\nerror: process {place} of {count} ends because another process"
                assert error in one.err, f"{told}: {place} {one}"
    last = launched(3, workdir)
    assert [one.code for one in last] == [0, 0, 0], last
    assert outcome(workdir) == outcome(undisturbed)
