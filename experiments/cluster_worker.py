"""What workers of a cluster run: a cell, with one device, where the launcher was started."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable
from logging import CRITICAL, getLogger
from typing import TYPE_CHECKING, Any, NamedTuple

from absl import logging

import fsjax
from fsjax.engine.compilation import cache_by_default
from fsjax.errors import FsjaxError

if TYPE_CHECKING:
    from distributed import WorkerPlugin
else:
    try:
        from distributed import WorkerPlugin
    except ImportError:  # an extra; without it no worker is there either
        WorkerPlugin = object

#: A worker with several threads runs its cells one after the other all the same: the folder and
#: the CPU time are those of the process.
_one_at_a_time = threading.Lock()


class Failed(NamedTuple):
    """Why a cell has no result."""

    reason: str


class Quiet(WorkerPlugin):
    """For workers in the launcher's terminal: it alone takes Ctrl-C, and tells of errors."""

    def setup(self, worker: Any) -> None:
        """Called by Dask in the main thread of each worker."""
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        getLogger("distributed.worker").setLevel(CRITICAL)


def ready() -> None:
    """Can be called where this file, and so all that cells are made of, can be imported."""


def run_cell(folder: str, function: Callable[[], Any]) -> Any:
    """Calls a function on a worker with one CPU device, on one core unless ``NPROC`` is set.

    Args:
      folder: that of the launcher, from which names of files start.
      function: without arguments.

    Returns:
      What it returns, or :class:`Failed` for an error that would come another time as well.
    """
    # Read by XLA when it makes its threads. Workers lie side by side, one for each core.
    os.environ.setdefault("NPROC", "1")
    logging.set_verbosity(logging.WARNING)
    with _one_at_a_time, contextlib.chdir(folder):
        try:
            cache_by_default()
            fsjax.use_cpu_devices(1)
            return function()
        except FsjaxError as error:
            return Failed(str(error))
