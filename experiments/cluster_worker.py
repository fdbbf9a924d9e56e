"""Runs a cell on a worker of a cluster, with one device, in the folder of the launcher."""

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
    except ImportError:  # Dask is optional; without it there are no workers
        WorkerPlugin = object

#: Also a worker with several threads runs its cells one after another: the current folder and the
#: CPU time belong to the process.
_one_at_a_time = threading.Lock()


class Failed(NamedTuple):
    """The reason why a cell has no result."""

    reason: str


class Quiet(WorkerPlugin):
    """Leaves Ctrl-C and error messages to the launcher, for workers in the same terminal."""

    def setup(self, worker: Any) -> None:
        """Dask calls it in the main thread of each worker."""
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        getLogger("distributed.worker").setLevel(CRITICAL)


def ready() -> None:
    """Does nothing: a call succeeds where this file, and with it all code of cells, is found."""


def run_cell(folder: str, function: Callable[[], Any]) -> Any:
    """Calls a function on a worker with one CPU device, on one core unless ``NPROC`` is set.

    Args:
      folder: the launcher's current folder, to which relative paths refer.
      function: takes no arguments.

    Returns:
      Its result, or :class:`Failed` for an error that a retry would not cure.
    """
    # XLA reads it when it creates its threads. There is one worker per core.
    os.environ.setdefault("NPROC", "1")
    logging.set_verbosity(logging.WARNING)
    with _one_at_a_time, contextlib.chdir(folder):
        try:
            cache_by_default()
            fsjax.use_cpu_devices(1)
            return function()
        except FsjaxError as error:
            return Failed(str(error))
