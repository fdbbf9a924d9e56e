"""Launchers as from a command line, in a process of their own or in the one of the tests."""

from __future__ import annotations

import contextlib
import io
import runpy
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
    """How a launcher ended, as :class:`subprocess.CompletedProcess` tells it."""

    returncode: int
    stdout: str
    stderr: str


def launch(module: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs a launcher in a process of its own, which takes seconds to import everything."""
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
        _own_flags(),
        contextlib.chdir(ROOT),
    ):
        # ml_collections reads config files this way.
        warnings.filterwarnings("ignore", message=r"the load_module\(\) method is deprecated")
        patch.setattr(sys, "argv", [str(path), *arguments])
        # JAX has its devices already.
        patch.setattr(fsjax, "use_cpu_devices", lambda: 2)
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                runpy.run_path(str(path), run_name="__main__")
            except SystemExit as end:
                code = end.code or 0
    return Done(code, out.getvalue(), err.getvalue())


@contextlib.contextmanager
def _own_flags() -> Iterator[None]:
    """Flags of launchers that were imported make room for those of the one that runs."""
    kept = flags.FLAGS
    before = {name: kept[name] for name in kept}
    for name in before:
        if not kept.find_module_defining_flag(name, "").startswith("absl"):
            delattr(kept, name)
    try:
        yield
    finally:
        for name in list(kept):
            if kept[name] is not before.get(name):
                delattr(kept, name)
        for name, flag in before.items():
            if name not in kept:
                kept[name] = flag
