"""Compares one process with several: ``python -m experiments.benchmarks.processes``.

    python -m experiments.benchmarks.processes --processes=2 --tries=3 --workdir=runs/processes \\
        --arguments="--config=configs/wast.py:madelon --config.seeds=0,1,2,3,4,5,6,7,8,9,10,11"

Runs ``experiments.run`` with these arguments alternately as one process on ``--processes`` cores
and as ``--processes`` processes on one core each. Prints the minimum wall seconds of both, and
whether selections, scores and metrics are bitwise equal.
"""

from __future__ import annotations

import functools
import json
import os
import shlex
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from absl import flags
from absl.flags import FLAGS

from experiments.launch import cli
from fsjax.errors import ConfigError


def timed(count: int, cores: list[int], arguments: list[str], workdir: Path) -> float:
    """Wall seconds of a run by ``count`` processes that share the cores evenly."""
    shutil.rmtree(workdir, ignore_errors=True)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    common = ["-m", "experiments.run", *arguments, f"--workdir={workdir}", "--noprogress"]
    if count > 1:
        common += ["--distributed", f"--coordinator=127.0.0.1:{port}", f"--num_processes={count}"]
    started, running = time.perf_counter(), []
    for number in range(count):
        process_id = [f"--process_id={number}"] if count > 1 else []
        pinned = functools.partial(os.sched_setaffinity, 0, cores[number::count])
        command = [sys.executable, *common, *process_id]
        # The same number of threads in both, as the last bits of the results depend on it.
        environment = os.environ | {"NPROC": str(len(cores))}
        running.append(
            subprocess.Popen(command, preexec_fn=pinned, stdout=subprocess.DEVNULL, env=environment)
        )
    if any([process.wait() for process in running]):
        raise ConfigError(f"{shlex.join(common)} failed; see its message above")
    return time.perf_counter() - started


def outcome(workdir: Path) -> dict[str, Any]:
    """Reads the results that must not depend on the number of processes."""
    result = json.loads((workdir / "result.json").read_text())
    result.pop("cost")
    with np.load(workdir / "scores.npz") as scores:
        result["scores"] = scores["scores"].tolist()
    return result | {"history": (workdir / "metrics.csv").read_text()}


def main() -> None:
    """Runs both kinds alternately; prints their times and whether their results are equal."""
    cores = sorted(os.sched_getaffinity(0))[: FLAGS.processes]
    if len(cores) < FLAGS.processes:
        raise ConfigError(
            f"--processes={FLAGS.processes} but there are {len(cores)} cores; choose fewer"
        )
    arguments = shlex.split(FLAGS.arguments)
    seconds: dict[int, list[float]] = {1: [], FLAGS.processes: []}
    for _ in range(FLAGS.tries):
        for count, times in seconds.items():
            workdir = Path(FLAGS.workdir).absolute() / str(count)
            times.append(timed(count, cores, arguments, workdir))
            print(f"{count} processes: {times[-1]:.1f} s", flush=True)
    alone, several = (min(times) for times in seconds.values())
    same = outcome(Path(FLAGS.workdir) / "1") == outcome(Path(FLAGS.workdir) / str(FLAGS.processes))
    print(
        f"minimum: {alone:.1f} s as one process, {several:.1f} s as {FLAGS.processes}, "
        f"ratio {several / alone:.3f}; the results are {'equal' if same else 'DIFFERENT'}"
    )


def define_flags() -> None:
    """Defines the flags of this launcher."""
    flags.DEFINE_string("workdir", None, "Folder for the runs; earlier runs in it are removed.")
    flags.DEFINE_string("arguments", None, "Arguments of experiments.run, in one quoted string.")
    flags.DEFINE_integer("processes", 2, "Number of processes, one per core.", lower_bound=2)
    flags.DEFINE_integer("tries", 3, "Runs with one process, and with several.", lower_bound=1)


if __name__ == "__main__":
    cli.run(main, define_flags, workdir="runs/processes", arguments='"--config=configs/wast.py"')
