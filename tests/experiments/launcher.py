"""Runs launchers as from a command line, in a new process or in the process of the tests."""

from __future__ import annotations

import contextlib
import io
import runpy
import signal
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import absl.app  # noqa: F401, its flags must be there before a launcher runs
import pytest
from absl import flags

import fsjax

ROOT = Path(__file__).parents[2]


class Done(NamedTuple):
    """How a launcher ended, with the fields of :class:`subprocess.CompletedProcess`."""

    returncode: int
    stdout: str
    stderr: str


def launch(module: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs a launcher in a new process, which takes seconds for its imports."""
    return subprocess.run(
        [sys.executable, "-m", f"experiments.{module}", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
    )


def launch_here(module: str, *arguments: str) -> Done:
    """Runs a launcher's file as ``__main__`` in this process, with warnings as errors."""
    out, err, code = io.StringIO(), io.StringIO(), 0
    path = ROOT / "experiments" / f"{module}.py"
    with (
        pytest.MonkeyPatch.context() as patch,
        warnings.catch_warnings(),
        temporary_flags(),
        _same_signals(),
        contextlib.chdir(ROOT),
    ):
        patch.setattr(sys, "argv", [str(path), *arguments])
        # JAX has already initialised its devices.
        patch.setattr(fsjax, "use_cpu_devices", lambda: 2)
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                runpy.run_path(str(path), run_name="__main__")
            except SystemExit as end:
                code = end.code or 0
    return Done(code, out.getvalue(), err.getvalue())


@contextlib.contextmanager
def temporary_flags() -> Iterator[None]:
    """Removes the flags that are defined inside, for the next launcher."""
    before = set(flags.FLAGS)
    try:
        yield
    finally:
        for name in set(flags.FLAGS) - before:
            delattr(flags.FLAGS, name)


@contextlib.contextmanager
def _same_signals() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
