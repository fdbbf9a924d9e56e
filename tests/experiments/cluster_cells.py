"""Cells for the workers of a test; some fail or are killed."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import ml_collections

from experiments.launch.sweep import Grid, fit_cell
from fsjax.errors import ConfigError


def killed_once(config: ml_collections.ConfigDict, grid: Grid, folder: Path) -> tuple[int, Path]:
    """:func:`fit_cell`, whose first process is killed after a checkpoint.

    Returns:
      The number of the process that finished, and the file of the result.
    """
    first = not list(folder.glob("checkpoints/*/epoch_*.npz"))
    if first:
        threading.Thread(target=_kill, args=(folder,), daemon=True).start()
    return os.getpid(), fit_cell(config, grid, folder)


def _kill(folder: Path) -> None:
    while not list(folder.glob("checkpoints/*/epoch_*.npz")):
        time.sleep(0.001)
    os.kill(os.getpid(), signal.SIGKILL)


def refused() -> None:
    """Fails at every attempt."""
    raise ConfigError("seven is too many")


def fails_at_first(path: Path, times: int) -> int:
    """Fails a number of times; each attempt writes a line to a file."""
    lines = path.read_text() if path.exists() else ""
    if len(lines) < times:
        path.write_text(lines + ".")
        raise OSError("stale file handle")
    return len(lines)


def devices(value: Any) -> tuple[Any, int, str]:
    """The value, the number of devices, and the folder."""
    import jax

    return value, jax.device_count(), os.getcwd()
