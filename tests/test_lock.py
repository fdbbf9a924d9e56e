"""Folders that one process works in at a time."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import fsjax
from fsjax.errors import ConfigError
from fsjax.lock import exclusive

HOLD = """
import sys, time
from fsjax.lock import exclusive
with exclusive(sys.argv[1]):
    print("held", flush=True)
    time.sleep(600)
"""


def test_another_process_is_kept_out_until_the_holder_dies(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    command = [sys.executable, "-c", HOLD, str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout.readline() == "held\n"
        try:
            told = f"in use by the process {other.pid}; wait"
            with pytest.raises(ConfigError, match=told), exclusive(folder):
                pass
            # By another name for the same folder, too.
            (tmp_path / "link").symlink_to(tmp_path, target_is_directory=True)
            with pytest.raises(ConfigError, match=told), exclusive(tmp_path / "link" / "run"):
                pass
            X, y = np.random.default_rng(0).normal(size=(60, 3)), np.resize([0, 1], 60)
            with pytest.raises(ConfigError, match="in use"):
                fsjax.select(X, y, workdir=folder)
            with exclusive(tmp_path / "other"):
                pass
        finally:
            other.send_signal(signal.SIGKILL)
    with exclusive(folder):
        pass
    assert not folder.exists()


def test_the_holder_may_ask_again_and_gives_it_back(tmp_path: Path) -> None:
    with exclusive(tmp_path), exclusive(tmp_path / "."):
        pass
    with pytest.raises(RuntimeError), exclusive(tmp_path):
        raise RuntimeError
    code = (
        "import sys; from fsjax.lock import exclusive\nwith exclusive(sys.argv[1]): print('free')"
    )
    command = [sys.executable, "-c", code, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ)
    assert done.stdout == "free\n"
