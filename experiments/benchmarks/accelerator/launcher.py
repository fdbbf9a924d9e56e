"""Runs the pieces in processes of their own, for a number of minutes.

First, at the same time: all methods are trained on the accelerator and on the CPU, and the programs
of the timed pieces are compiled into the cache on disk. Then the timed pieces run one by one.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
import traceback
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path

import jax
from absl import flags
from absl.flags import FLAGS

import fsjax
from experiments.benchmarks.accelerator import agreement, operations, torch_steps, training
from experiments.benchmarks.accelerator.pieces import Piece, append, device_name, finished
from experiments.launch import cli
from fsjax.errors import ConfigError, UnreachedPhaseWarning
from fsjax.methods import METHODS

#: Processes that train methods on each device, and that compile.
NUM_TRAINERS, NUM_COMPILERS = 4, 4


#: The modules of timed pieces, in the order in which they run; each has its own process.
MODULES = (training, torch_steps, operations)


def pieces() -> dict[str, Piece]:
    """All timed pieces by name, in the order in which they run."""
    return {
        name: piece
        for module in MODULES
        for name, piece in module.pieces(FLAGS.size).items()
        if is_chosen(name)
    }


def is_chosen(name: str) -> bool:
    """Whether a piece begins with one of ``--only``."""
    return not FLAGS.only or name.startswith(tuple(FLAGS.only))


def worker(*options: str, cpu: bool = False) -> subprocess.Popen:
    """Starts a process of this launcher; several share the accelerator's memory."""
    command = [sys.executable, "-m", "experiments.accelerator", f"--workdir={FLAGS.workdir}"]
    environment = os.environ | {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
    if cpu:
        environment |= {"JAX_PLATFORMS": "cpu"}
    return subprocess.Popen([*command, f"--size={FLAGS.size}", *options], env=environment)


def wait(processes: Iterable[subprocess.Popen], deadline: float) -> None:
    """Waits for processes; ends those that still run at the deadline."""
    for process in processes:
        try:
            process.wait(max(1.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def train_share(names: Sequence[str], folder: Path) -> None:
    """Trains methods, and on a CPU also their controls; failures leave no file."""
    for name in names:
        for control in (False, True) if jax.default_backend() == "cpu" else (False,):
            try:
                agreement.save(name, FLAGS.size, folder, control)
            except Exception:
                print(f"{name} failed on {device_name()}:\n{traceback.format_exc(limit=-3)}")


def run_pieces(names: Sequence[str], compile_only: bool) -> None:
    """Runs or compiles the named pieces; an error is a row, and the others continue."""
    rows, known = Path(FLAGS.workdir) / "rows.csv", pieces()
    for name in names:
        piece = known[name]
        try:
            if not compile_only:
                values = piece.run()
                append(rows, name, values, device_name())
                print(f"{name}: {dict(values)}", flush=True)
            elif piece.compile:
                piece.compile()
        except Exception as error:
            print(f"{name} failed:\n{traceback.format_exc(limit=-3)}", flush=True)
            if not compile_only:
                append(
                    rows, name, {"error": f"{type(error).__name__}: {error}"[:200]}, device_name()
                )


def compare_all(folder: Path, rows: Path) -> None:
    """Writes the rows of the methods that were trained on both devices."""
    done = finished(rows, device_name())
    for name in sorted(METHODS):
        piece = f"agreement/{name}"
        values = agreement.compare(name, folder / "cpu", folder / "accelerator")
        if values and piece not in done:
            append(rows, piece, values, device_name())


def summary(rows: Path) -> str:
    """One sentence on what ran."""
    done = finished(rows, device_name())
    compared = sum(name.startswith("agreement/") for name in done)
    timed = sum(name in pieces() for name in done)
    return (
        f"{device_name()}: {compared} of {len(METHODS)} methods compared with the CPU, "
        f"{timed} of {len(pieces())} pieces measured; rows: {rows}"
    )


def main() -> None:
    """Runs what is missing, or the share of a worker."""
    warnings.simplefilter("ignore", UnreachedPhaseWarning)
    folder = Path(FLAGS.workdir)
    fsjax.use_compilation_cache(folder / "programs")
    if FLAGS.train:
        train_share(FLAGS.train, folder / ("cpu" if FLAGS.reference else "accelerator"))
        return
    if FLAGS.measure:
        run_pieces(FLAGS.measure.split(";"), FLAGS.compile_only)
        return
    if FLAGS.minutes <= 0:
        raise ConfigError(f"--minutes={FLAGS.minutes}; give minutes above 0")
    start = time.monotonic()
    deadline, prepared = start + 60 * FLAGS.minutes, start + 30 * FLAGS.minutes
    rows = folder / "rows.csv"
    folder.mkdir(parents=True, exist_ok=True)
    done = finished(rows, device_name())
    missing = [name for name in pieces() if name not in done]
    slow = [name for name in missing if pieces()[name].compile]
    untrained = [
        name
        for name in sorted(METHODS)
        if is_chosen(f"agreement/{name}") and f"agreement/{name}" not in done
    ]
    if not missing and not untrained and not done:
        raise ConfigError(f"no piece begins with --only={','.join(FLAGS.only)}")
    processes = []
    for index in range(NUM_TRAINERS):
        if share := ",".join(untrained[index::NUM_TRAINERS]):
            processes.append(worker(f"--train={share}", "--reference", cpu=True))
            processes.append(worker(f"--train={share}"))
    for index in range(NUM_COMPILERS):
        if share := ";".join(slow[index::NUM_COMPILERS]):
            processes.append(worker(f"--measure={share}", "--compile_only"))
    wait(processes, prepared)
    compare_all(folder, rows)
    print(f"prepared after {time.monotonic() - start:.0f} s", flush=True)
    for module in MODULES:
        if share := ";".join(name for name in module.pieces(FLAGS.size) if name in missing):
            wait([worker(f"--measure={share}")], deadline)
    print(summary(rows))


def define_flags() -> None:
    """Defines the flags of this launcher."""
    flags.DEFINE_float("minutes", 12.0, "Minutes after which no measurement runs.")
    flags.DEFINE_string("workdir", "runs/accelerator", "Folder of rows.csv and of what resumes.")
    flags.DEFINE_enum("size", "full", ["full", "tiny"], "Sizes; tiny ones are for tests.")
    flags.DEFINE_list(
        "only", [], "Beginnings of names of pieces, such as step/wast; all by default."
    )
    flags.DEFINE_list("train", [], "Internal: methods that this process trains.")
    flags.DEFINE_bool("reference", False, "Internal: whether it trains them as the reference.")
    flags.DEFINE_string("measure", "", "Internal: pieces that this process measures.")
    flags.DEFINE_bool("compile_only", False, "Internal: whether it only compiles them.")


def start() -> None:
    """Entry point."""
    cli.run(main, define_flags)
