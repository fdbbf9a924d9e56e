"""Ends a launcher whose table grows setting by setting by a signal, and damages its table."""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from experiments.launch import checksums

from .damage import KINDS, spoil
from .kills import SIGNALS
from .launcher import Process, Reference, run
from .outcomes import CLEAR, EQUAL, LOST, Outcome, ended_badly, judge

#: Trains the dense network, BinMask at two strengths, and ProbMask at their sparsities.
ARGUMENTS = (
    "--config=configs/sparsify.py:digits,mlp,quick",
    "--config.network.hidden=16,",
    "--config.network.batch_norm=False",
    "--config.network.finetune_epochs=1",
    "--config.train.num_epochs=4",
    "--config.train.checkpoint_every=1",
    "--config.strengths=0.001,0.00001",
    "--noprogress",
)
TABLES = ("sparsity.csv", "layers.csv")
SECONDS = "seconds_per_epoch"


def attempt(number: int, seed: int, reference: Reference, folder: Path) -> Outcome:
    """Ends a run once, damages a table or the checksums every other time, then lets it finish."""
    expected, seconds = _undisturbed(reference)
    rng = np.random.default_rng((seed, 5, number))
    kill = SIGNALS[number % len(SIGNALS)]
    workdir = folder / "run"
    shutil.rmtree(workdir, ignore_errors=True)
    process = Process(_arguments(workdir), folder / "log", launcher="studies.sparsify")
    time.sleep(float(rng.uniform(0, 1.1 * seconds)))
    process.signal(kill)
    if (bad := ended_badly(process.wait(), kill)) is not None:
        return bad
    what, files = kill.name, sorted([*workdir.glob("*.csv"), *workdir.glob(checksums.NAME)])
    if files and number // len(SIGNALS) % 2:
        path, kind = files[int(rng.integers(len(files)))], KINDS[int(rng.integers(len(KINDS)))]
        spoil(path, kind, files[0], rng)
        what += f", {path.name} {kind}"
    done = run(_arguments(workdir), folder / "log", launcher="studies.sparsify")
    verdict, message = judge(done, _outcome(workdir), expected)
    if verdict == EQUAL:
        return EQUAL, what
    return (LOST if verdict == CLEAR else verdict), f"{what}: {message}"


def _arguments(workdir: Path) -> list[str]:
    return [*ARGUMENTS, f"--workdir={workdir}"]


def _undisturbed(reference: Reference) -> tuple[dict[str, Any], float]:
    """The tables of an undisturbed run and how long it took; it runs once."""
    folder = reference.folder / "tables"
    if "tables" not in reference.expected:
        for _ in range(2):  # the second run finds the compiled programs
            shutil.rmtree(folder, ignore_errors=True)
            started = time.monotonic()
            done = run(_arguments(folder), reference.folder / "log", launcher="studies.sparsify")
            reference.seconds["tables"] = time.monotonic() - started
            if done.status != 0:
                raise RuntimeError(f"the undisturbed run failed: {done.output}")
        reference.expected["tables"] = _outcome(folder)
    return reference.expected["tables"], reference.seconds["tables"]


def _outcome(workdir: Path) -> dict[str, Any]:
    """Reads a finished folder, without the times; empty if it is not finished."""
    if not (workdir / "result.json").exists():
        return {}
    result = json.loads((workdir / "result.json").read_text())
    for setting in result["settings"]:
        del setting[SECONDS]
    tables = {
        name: pd.read_csv(workdir / name).drop(columns=SECONDS, errors="ignore").to_csv()
        for name in TABLES
    }
    return tables | {"result": result}
