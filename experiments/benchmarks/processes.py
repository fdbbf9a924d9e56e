"""One process against several on the same cores: ``python -m experiments.benchmarks.processes``.

    python -m experiments.benchmarks.processes --processes=2 --tries=3 --workdir=runs/processes \\
        --arguments="--config=configs/wast.py:madelon --config.seeds=0,1,2,3,4,5,6,7,8,9,10,11"

Runs ``experiments.run`` with these arguments as one process on so many cores, and as so many
processes on one core each, in turn; prints the least wall seconds of both, and whether selections,
scores and metrics are the same bits.
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

from experiments.launch import cli
from fsjax.errors import ConfigError


def timed(count: int, cores: list[int], arguments: list[str], workdir: Path) -> float:
    """Wall seconds of a run as ``count`` processes, which share the cores evenly."""
    shutil.rmtree(workdir, ignore_errors=True)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    common = ["-m", "experiments.run", *arguments, f"--workdir={workdir}", "--noprogress"]
    if count > 1:
        common += ["--distributed", f"--coordinator=127.0.0.1:{port}", f"--num_processes={count}"]
    started, running = time.perf_counter(), []
    for number in range(count):
        own = [f"--process_id={number}"] if count > 1 else []
        pinned = functools.partial(os.sched_setaffinity, 0, cores[number::count])
        command = [sys.executable, *common, *own]
        # As many threads for each operation, whose results depend on them in the last bits.
        environment = os.environ | {"NPROC": str(len(cores))}
        running.append(
            subprocess.Popen(command, preexec_fn=pinned, stdout=subprocess.DEVNULL, env=environment)
        )
    if any([process.wait() for process in running]):
        raise ConfigError(f"{shlex.join(common)} failed; see above")
    return time.perf_counter() - started


def outcome(workdir: Path) -> dict[str, Any]:
    """What must not depend on the number of processes."""
    result = json.loads((workdir / "result.json").read_text())
    result.pop("cost")
    with np.load(workdir / "scores.npz") as scores:
        result["scores"] = scores["scores"].tolist()
    return result | {"history": (workdir / "metrics.csv").read_text()}


def main() -> None:
    """Entry point."""
    given = flags.FLAGS
    cli.require(given.workdir, "workdir", "--workdir=runs/processes")
    cli.require(given.arguments, "arguments", '--arguments="--config=configs/wast.py:madelon"')
    cores = sorted(os.sched_getaffinity(0))[: given.processes]
    if len(cores) < given.processes:
        raise ConfigError(f"--processes={given.processes} but there are {len(cores)} cores")
    arguments = shlex.split(given.arguments)
    seconds: dict[int, list[float]] = {1: [], given.processes: []}
    for _ in range(given.tries):
        for count, found in seconds.items():
            workdir = Path(given.workdir).absolute() / str(count)
            found.append(timed(count, cores, arguments, workdir))
            print(f"{count} processes: {found[-1]:.1f} s", flush=True)
    one, several = (min(found) for found in seconds.values())
    same = outcome(Path(given.workdir) / "1") == outcome(Path(given.workdir) / str(given.processes))
    print(
        f"least: {one:.1f} s as one process, {several:.1f} s as {given.processes}, "
        f"{several / one:.3f} times; the results are {'the same' if same else 'DIFFERENT'}"
    )


if __name__ == "__main__":
    flags.DEFINE_string("workdir", None, "Folder for the runs, which are made anew.")
    flags.DEFINE_string("arguments", None, "Of experiments.run.")
    flags.DEFINE_integer("processes", 2, "How many, with a core each.", lower_bound=2)
    flags.DEFINE_integer("tries", 3, "Runs of each kind.", lower_bound=1)
    cli.run(main)
