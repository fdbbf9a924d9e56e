"""A process whose checkpoint could not be saved ends when it is done, and waits for no thread."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

#: Fails the folder that Orbax makes; tells the threads that would hold up the end, if any.
PROGRAM = """
import os, sys, threading, time
import numpy as np
from fsjax.engine.checkpoint import Checkpoints

make = os.mkdir

def full(name, *args, **options):
    if "orbax-checkpoint-tmp" in str(name):
        raise OSError(28, "No space left on device", str(name))
    make(name, *args, **options)

os.mkdir = full
try:
    Checkpoints(sys.argv[1], {}).save(1, {"w": np.ones(3)}, {"loss": np.ones((1, 1))})
except OSError as error:
    others = set(threading.enumerate()) - {threading.main_thread()}
    waiting = [thread for thread in others if not thread.daemon]
    end = time.monotonic() + 5
    for thread in waiting:
        thread.join(max(end - time.monotonic(), 0))
    print("refused", error.errno, sum(thread.is_alive() for thread in waiting), flush=True)
    os._exit(0)
"""


def test_nothing_holds_up_the_end(tmp_path: Path) -> None:
    command = [sys.executable, "-c", PROGRAM, str(tmp_path / "checkpoints")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.stdout == "refused 28 0\n", done.stderr
