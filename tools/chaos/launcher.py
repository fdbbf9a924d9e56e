"""Runs launchers in forked processes, which need not import everything again."""

from __future__ import annotations

import json
import multiprocessing
import os
import resource
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any, Final, NamedTuple

import matplotlib.pyplot as plt
import pytest
from matplotlib.figure import Figure

from experiments.launch import experiment as launch
from experiments.start import end_at_once
from fsjax.storage.atomic_files import write_text
from tools.campaign import stretched

#: Files that must be equal byte for byte; ``result.json`` must be equal except for its costs.
FILES: Final = ("metrics.csv", "scores.npz")

#: Seconds after which a process counts as hung; more on a busy machine.
PATIENCE: Final = 180.0

#: The runs: changing connections in each step, a search, and noise in each step.
CONFIGS: Final = ("wast", "stg", "ip_cae")

_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload(["experiments.launch.run", "sklearn.svm"])


class Done(NamedTuple):
    """The end of a process: its status (negative for a signal, ``None`` if hung) and its output."""

    status: int | None
    output: str


def arguments(name: str, workdir: Path, *options: str, epochs: int = 4) -> list[str]:
    """Arguments of a short run with a checkpoint after each epoch."""
    return [
        f"--config=configs/{name}.py:digits,quick",
        f"--config.train.num_epochs={epochs}",
        "--config.train.checkpoint_every=1",
        "--noprogress",
        f"--workdir={workdir}",
        *options,
    ]


class Process:
    """A running launcher.

    Args:
      flags: its arguments.
      log: the file that receives its output.
      prepare: called in the process before the launcher starts.
    """

    def __init__(
        self,
        flags: Sequence[str],
        log: Path,
        prepare: Callable[[], None] | None = None,
    ) -> None:
        self.log = log
        log.unlink(missing_ok=True)
        self._process = _context.Process(target=_launch, args=(list(flags), log, prepare))
        self._process.start()

    def signal(self, number: int) -> bool:
        """Sends a signal once Python has started; returns whether the process was still alive."""
        while self._process.is_alive() and not self.log.exists():
            time.sleep(1e-3)
        if not self._process.is_alive():
            return False
        os.kill(self._process.pid, number)
        return True

    def wait(self) -> Done:
        """Waits for its end, at most :data:`PATIENCE` seconds, or more on a busy machine."""
        self._process.join(stretched(PATIENCE))
        status = self._process.exitcode
        if status is None:
            self._process.kill()
            self._process.join()
        return Done(status, self.log.read_text() if self.log.exists() else "")


def _launch(flags: list[str], log: Path, prepare: Callable[[], None] | None) -> None:
    # As if it was started by python -m.
    sys.modules["__main__"].__spec__ = ModuleSpec("experiments.launch.run", None)
    end_at_once()
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(output, 1)
    os.dup2(output, 2)
    sys.stdout = os.fdopen(1, "w", buffering=1, closefd=False)
    sys.stderr = os.fdopen(2, "w", buffering=1, closefd=False)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    sys.argv = ["run.py", *flags]
    with plain_pictures():
        if prepare is not None:
            prepare()
        from experiments.launch.run import start

        start()


@contextmanager
def plain_pictures() -> Iterator[None]:
    """Within the block nothing is drawn, which takes most of the time of a quick run."""

    def save_figure(figure: Figure, path: Path) -> None:
        plt.close(figure)
        write_text(path, path.name)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(launch.report, "save_figure", save_figure)
        patch.setattr(
            launch.artifacts, "write_report", lambda f: write_text(f / "report.html", "-")
        )
        yield


def run(flags: Sequence[str], log: Path, prepare: Callable[[], None] | None = None) -> Done:
    """Runs a launcher and waits for its end."""
    return Process(flags, log, prepare).wait()


def outcome(workdir: Path) -> dict[str, Any]:
    """Reads what must be equal from a finished folder; empty if it is not finished."""
    if not (workdir / "result.json").exists():
        return {}
    result = json.loads((workdir / "result.json").read_text())
    del result["cost"]
    return {name: (workdir / name).read_bytes() for name in FILES} | {"result": result}


class Reference:
    """Undisturbed runs: their results and how long they take."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.expected: dict[str, dict[str, Any]] = {}
        self.seconds: dict[str, float] = {}
        for name in CONFIGS:
            for _ in range(2):  # the second run finds the compiled programs
                shutil.rmtree(folder / name, ignore_errors=True)
                started = time.monotonic()
                done = run(arguments(name, folder / name), folder / "log")
                self.seconds[name] = time.monotonic() - started
                if done.status != 0:
                    raise RuntimeError(f"the undisturbed run of {name} failed: {done.output}")
            self.expected[name] = outcome(folder / name)
