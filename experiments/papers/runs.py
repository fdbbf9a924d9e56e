"""The runs behind the papers' tables: their configurations, costs and results."""

from __future__ import annotations

import functools
import glob
import itertools
import json
import math
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import ml_collections

from configs.rewiring import WAST_NUM_FEATURES
from experiments.launch.config import load_config
from experiments.launch.experiment import run_experiment
from experiments.launch.run_folder import check_workdir, read_result
from experiments.papers.cells import Cell, Run, run_of
from experiments.papers.curves import compared_with
from fsjax.datasets.catalog import ENTRIES
from fsjax.errors import ConfigError
from fsjax.methods import get_method
from fsjax.storage.atomic_files import write_text

#: For the estimate: floating-point operations per CPU second, CPU seconds of compilation, and CPU
#: seconds per cell of the table for reading it and for judging columns.
SPEED, START, PER_CELL = 4e10, 3.0, 1e-6

#: For the estimate: pairs of neurons in a matrix that cost as much as one connection in a list.
PAIRS_PER_CONNECTION = 40

#: For the estimate: the epochs of LassoNet's path.
PATH_EPOCHS = 4000


def config_of(run: Run, seeds: int) -> ml_collections.ConfigDict:
    """The configuration of a run with the first ``seeds`` seeds of the protocol."""
    config = load_config(f"configs/papers.py:{run.variant}")
    config.seeds = tuple(config.seeds[:seeds])
    for name, value in run.options:
        config.method[name] = value
    if run.num_epochs is not None:
        config.train.num_epochs = run.num_epochs
    if run.paper == "wast":
        other_sizes = WAST_NUM_FEATURES if run.num_features is None else ()
        if run.num_features is not None:
            config.num_features = run.num_features
            if run.method == "cae":
                config.method.hidden = (3 * run.num_features // 2,)
        k, width = config.num_features, ENTRIES[run.dataset].shape[1]
        config.evaluation.num_features = tuple(
            size for size in other_sizes if size != k and size <= width and k != 20
        )
    return config


@functools.cache
def estimate(run: Run, seeds: int) -> float:
    """An estimate of the CPU seconds of a run from the size of its network and data."""
    config = config_of(run, seeds)
    rows, width = ENTRIES[run.dataset].shape
    seconds_per_seed = PER_CELL * rows * width
    if get_method(run.method)(**_fields(config)).loss is not None:
        epochs = PATH_EPOCHS if run.method == "lassonet" else config.train.num_epochs
        seconds_per_seed += 6.0 * _pairs(run, config) * 0.8 * rows * epochs / SPEED
    return START + seconds_per_seed * seeds


def _pairs(run: Run, config: ml_collections.ConfigDict) -> float:
    """Pairs of neurons whose matrix products cost as much as one row of a training step."""
    entry = ENTRIES[run.dataset]
    width = entry.shape[1]
    if "temperature_start" in config.method:
        # Noise and softmax per row cost more than the matrix products.
        return 10 * config.num_features * width
    outputs = width if run.task == "reconstruction" else entry.num_classes
    widths = (width, *(config.method.get("hidden") or (200,)), outputs)
    epsilon = config.method.get("epsilon") or math.inf
    return sum(
        min(inputs * units, PAIRS_PER_CONNECTION * epsilon * (inputs + units))
        for inputs, units in itertools.pairwise(widths)
    )


def _fields(config: ml_collections.ConfigDict) -> dict[str, Any]:
    fields = dict(config.method)
    name = fields.pop("name")
    if get_method(name).registration.takes_number:
        fields["num_features"] = config.num_features
    return fields


def expected(runs: Iterable[Run], seeds: int, known: Mapping[Run, float]) -> dict[Run, float]:
    """The CPU seconds of runs: measured, or estimated and scaled by the most similar measured run.

    Args:
      runs: the runs.
      seeds: number of seeds of each run.
      known: measured CPU seconds per seed of some runs.
    """
    return {run: known[run] * seeds if run in known else _scaled(run, seeds, known) for run in runs}


def _scaled(run: Run, seeds: int, known: Mapping[Run, float]) -> float:
    """An estimate times measured over estimated seconds of the run that is nearest in cost.

    It is a run of the method, in the same paper if there is one.
    """
    seconds = estimate(run, seeds)
    same_method = [other for other in known if other.method == run.method]
    same_paper = [other for other in same_method if other.paper == run.paper]
    similar = min(
        same_paper or same_method,
        key=lambda other: abs(math.log(estimate(other, seeds) / seconds)),
        default=None,
    )
    if similar is None:
        return seconds
    return seconds * known[similar] * seeds / estimate(similar, seeds)


def folder_of(run: Run, seeds: int, workdir: Path) -> Path:
    """The folder with the artifacts of a run."""
    return workdir / f"{run.label}-s{seeds}"


def train(run: Run, seeds: int, workdir: Path, *, progress: bool = False) -> dict[str, Any]:
    """Trains a run, resumes it, or only reads its result if it is finished.

    Returns:
      The content of its ``result.json``, and ``cpu_seconds``, the total of all processes that
      worked on it, except those that were killed.

    Raises:
      ConfigError: as :func:`read`, and if there is no result.
    """
    folder = folder_of(run, seeds, workdir)
    spent = folder / "cpu_seconds.txt"
    before = float(spent.read_text()) if spent.exists() else 0.0
    if not (folder / "result.json").exists():
        started = time.process_time()
        try:
            run_experiment(config_of(run, seeds), folder, progress=progress)
        finally:
            if folder.exists():
                before += time.process_time() - started
                write_text(spent, f"{before:.1f}\n")
    result = read(run, seeds, workdir)
    if result is None:
        raise ConfigError(f"{folder} has no result.json; run it again")
    return result


def read(run: Run, seeds: int, workdir: Path) -> dict[str, Any] | None:
    """The result that :func:`train` returned, or ``None`` for a run that is not finished.

    Raises:
      ConfigError: if the folder has a run with other settings, for example of an older protocol.
    """
    folder = folder_of(run, seeds, workdir)
    if not (folder / "result.json").exists():
        return None
    check_workdir(config_of(run, seeds), folder)
    result = read_result(folder)
    config = json.loads((folder / "config.json").read_text())
    spent = folder / "cpu_seconds.txt"
    return {
        **result,
        "cpu_seconds": float(spent.read_text()) if spent.exists() else None,
        "epochs": config["train"]["num_epochs"],
        "commit": config.get("git_revision"),
        "folder": folder,
    }


def read_done(run: Run, fewest: int, workdir: Path) -> dict[str, Any] | None:
    """Reads the finished run with the most seeds, if it has at least ``fewest``.

    The number of seeds depends on the expected cost of a run, which changes once it is measured.
    """
    counts = (
        int(folder.name.rpartition("-s")[2])
        for folder in workdir.glob(f"{glob.escape(run.label)}-s*")
        if (folder / "result.json").exists()
        and folder.name.removeprefix(f"{run.label}-s").isdecimal()
    )
    most = max(counts, default=0)
    return read(run, most, workdir) if most >= fewest else None


def runs_of(cells: Sequence[Cell]) -> dict[Run, list[Cell]]:
    """The runs that give some cells, each with its cells; runs they are compared with have none."""
    by_run: dict[Run, list[Cell]] = {}
    for cell in cells:
        by_run.setdefault(run_of(cell), []).append(cell)
        for run in compared_with(cell).values():
            by_run.setdefault(run, [])
    return by_run
