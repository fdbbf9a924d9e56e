"""Launchers in forked processes, which need not import everything again, and how they ended."""

from __future__ import annotations

import importlib
import json
import multiprocessing
import os
import resource
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any, Final, NamedTuple

from experiments.start import end_at_once

#: What must be equal of two runs, byte for byte; of ``result.json`` all but its costs.
FILES: Final = ("metrics.csv", "scores.npz")

#: Seconds after which a process counts as hung.
PATIENCE: Final = 180.0

#: The runs: a topology that changes with each step, one that searches, noise in each step.
CONFIGS: Final = ("wast", "stg", "ip_cae")

_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload(["experiments.launch.run", "sklearn.svm"])


class Done(NamedTuple):
    """How a process ended: its status, negative for a signal, ``None`` if hung; what it printed."""

    status: int | None
    told: str


def arguments(name: str, workdir: Path, *options: str, epochs: int = 4) -> list[str]:
    """Those of a short run with a checkpoint after each epoch."""
    return [
        f"--config=configs/{name}.py:digits,quick",
        f"--config.train.num_epochs={epochs}",
        "--config.train.checkpoint_every=1",
        "--noprogress",
        f"--workdir={workdir}",
        *options,
    ]


class Process:
    """A launcher at work.

    Args:
      flags: its arguments.
      prepare: called in the process before it begins.
      launcher: a module of ``experiments`` with a ``start``.
    """

    def __init__(
        self,
        flags: Sequence[str],
        log: Path,
        prepare: Callable[[], None] | None = None,
        launcher: str = "launch.run",
    ) -> None:
        self.log = log
        log.unlink(missing_ok=True)
        args = (list(flags), log, prepare, launcher)
        self._process = _context.Process(target=_launch, args=args)
        self._process.start()

    def signal(self, number: int) -> bool:
        """Sends a signal, once Python has begun; whether the process was still there."""
        while self._process.is_alive() and not self.log.exists():
            time.sleep(1e-3)
        if not self._process.is_alive():
            return False
        os.kill(self._process.pid, number)
        return True

    def wait(self) -> Done:
        """Its end, or that of patience."""
        self._process.join(PATIENCE)
        status = self._process.exitcode
        if status is None:
            self._process.kill()
            self._process.join()
        return Done(status, self.log.read_text() if self.log.exists() else "")


def _launch(flags: list[str], log: Path, prepare: Callable[[], None] | None, launcher: str) -> None:
    # As a process of its own begins.
    sys.modules["__main__"].__spec__ = ModuleSpec(f"experiments.{launcher}", None)
    end_at_once()
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(output, 1)
    os.dup2(output, 2)
    sys.stdout = os.fdopen(1, "w", buffering=1, closefd=False)
    sys.stderr = os.fdopen(2, "w", buffering=1, closefd=False)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    sys.argv = [f"{launcher}.py", *flags]
    # Its imports are part of the launch.
    from tools.chaos.pictures import plain_pictures

    with plain_pictures():
        if prepare is not None:
            prepare()
        importlib.import_module(f"experiments.{launcher}").start()


def run(
    flags: Sequence[str],
    log: Path,
    prepare: Callable[[], None] | None = None,
    launcher: str = "launch.run",
) -> Done:
    """One launcher from its start to its end."""
    return Process(flags, log, prepare, launcher).wait()


def outcome(workdir: Path) -> dict[str, Any]:
    """What must be equal, of a finished folder; empty if it is not finished."""
    if not (workdir / "result.json").exists():
        return {}
    result = json.loads((workdir / "result.json").read_text())
    del result["cost"]
    return {name: (workdir / name).read_bytes() for name in FILES} | {"result": result}


class Reference:
    """Undisturbed runs, and copies of folders that were left half-way."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.expected: dict[str, dict[str, Any]] = {}
        self.seconds: dict[str, float] = {}
        for name in CONFIGS:
            for _ in range(2):  # the second finds the programs compiled
                shutil.rmtree(folder / name, ignore_errors=True)
                started = time.monotonic()
                done = run(arguments(name, folder / name), folder / "log")
                self.seconds[name] = time.monotonic() - started
                if done.status != 0:
                    raise RuntimeError(f"the undisturbed run of {name} failed: {done.told}")
            self.expected[name] = outcome(folder / name)
