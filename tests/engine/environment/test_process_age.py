"""How old a process is."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from fsjax.engine.environment import process_age

SCRIPT = """
import time
time.sleep(0.4)
from fsjax.engine.environment.process_age import seconds_since_process_start
print(seconds_since_process_start())
"""


def test_what_came_before_the_import_counts() -> None:
    before = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True, timeout=60
    )
    least = 0.35 if Path("/proc/self/stat").exists() else 0.0
    assert least <= float(done.stdout) <= time.monotonic() - before + 0.1


def test_without_files_of_the_system_the_import_counts(monkeypatch, tmp_path) -> None:
    monkeypatch.setattr(process_age, "_STAT", tmp_path / "none")
    monkeypatch.setattr(process_age, "_IMPORTED", time.monotonic() - 5)
    assert 5 <= process_age.seconds_since_process_start() < 6
