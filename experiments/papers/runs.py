"""The runs behind the papers' tables: their configurations, costs and results."""

from __future__ import annotations

import functools
import glob
import itertools
import math
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import ml_collections

from configs.rewiring import WAST_NUM_FEATURES
from experiments.artifacts.files import read_json
from experiments.launch.config import load_config
from experiments.launch.experiment import run_experiment
from experiments.launch.run_folder import check_workdir
from experiments.papers.cells import Cell, Run, run_of, trains
from experiments.papers.curves import compared_with
from experiments.papers.results import Cost
from fsjax.engine import programs
from fsjax.errors import ConfigError
from fsjax.storage.atomic_files import write_text
from fsjax.tables.datasets.catalog import ENTRIES

# The constants of the estimate were fitted to the measured CPU seconds in reproduction/results.csv.

#: CPU seconds of starting and compiling, per cell of the table, and per step of the optimiser.
START, PER_CELL, PER_STEP = 3.6, 1.5e-6, 4e-4

#: CPU seconds of a support vector machine per selected column and squared number of training rows.
PER_SVM = 1.6e-10

#: Floating-point operations of training per CPU second.
SPEED = 9.5e10

#: Pairs of neurons in a matrix that cost as much as one connection in a list.
PAIRS_PER_CONNECTION = 75

#: Pairs of neurons that cost as much as one logit of a concrete selector per row, if noise is drawn
#: for each row and for each batch.
PAIRS_PER_LOGIT = {"row": 50.0, "batch": 3.5}

#: Trainings of a search for K open gates, and the epochs of LassoNet's path.
SEARCH_STEPS, PATH_EPOCHS = 6, 2900

#: The share of the rows that are trained on.
TRAIN = 0.8


def config_of(run: Run, seeds: int, first: int | None = None) -> ml_collections.ConfigDict:
    """The configuration of a run with the first seeds of the protocol, or those from ``first``."""
    config = load_config(f"configs/papers.py:{run.variant}")
    fresh = range(first or 0, (first or 0) + seeds)
    config.seeds = tuple(config.seeds[:seeds] if first is None else fresh)
    for name, value in run.options:
        config.method[name] = value
    if run.num_epochs is not None:
        config.train.num_epochs = run.num_epochs
    if run.paper == "wast":
        # Tables with several K are those of whole runs.
        whole = run.num_features is None and run.num_epochs is None
        other_sizes = WAST_NUM_FEATURES if whole else ()
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
    """An estimate of the CPU seconds of a run from the size of its network and data.

    Methods that train nothing score the columns once for all seeds, which then share their support
    vector machines as well.
    """
    config = config_of(run, seeds)
    rows, width = ENTRIES[run.dataset].shape
    if run.paper == "ip_cae":
        rows = int(ENTRIES[run.dataset].paper.share * rows)
    train_rows = TRAIN * rows
    seconds_per_seed = 0.0
    if trains(run.method):
        epochs = PATH_EPOCHS if run.method == "lassonet" else config.train.num_epochs
        trainings = SEARCH_STEPS if config.method.get("search") else 1
        steps = epochs * max(train_rows / config.train.batch_size, 1.0)
        products = 6.0 * _pairs(run, config) * train_rows * epochs
        seconds_per_seed += trainings * (PER_STEP * steps + products / SPEED)
    if "svm" in config.evaluation.protocols:
        columns = sum((config.num_features, *config.evaluation.num_features))
        seconds_per_seed += PER_SVM * columns * train_rows**2
    return START + PER_CELL * rows * width + seconds_per_seed * (seeds if trains(run.method) else 1)


def _pairs(run: Run, config: ml_collections.ConfigDict) -> float:
    """Pairs of neurons whose matrix products cost as much as one row of a training step."""
    entry = ENTRIES[run.dataset]
    width = entry.shape[1]
    if "temperature_start" in config.method:
        # Noise and softmax cost more than the matrix products.
        noise = config.method.get("noise", "row")
        return PAIRS_PER_LOGIT[noise] * config.num_features * width
    outputs = width if run.task == "reconstruction" else entry.num_classes
    widths = (width, *(config.method.get("hidden") or (200,)), outputs)
    epsilon = config.method.get("epsilon") or math.inf
    return sum(
        min(inputs * units, PAIRS_PER_CONNECTION * epsilon * (inputs + units))
        for inputs, units in itertools.pairwise(widths)
    )


def expected(runs: Iterable[Run], seeds: int, known: Mapping[Run, Cost]) -> dict[Run, float]:
    """The CPU seconds of runs: measured, or estimated and scaled by similar measured runs.

    Args:
      runs: the runs.
      seeds: number of seeds of each run.
      known: the measured cost of some runs.
    """
    return {run: estimate(run, seeds) * _scale(run, known) for run in runs}


def _scale(run: Run, known: Mapping[Run, Cost]) -> float:
    """Measured over estimated seconds: of the run, or a geometric mean over those of its method.

    Runs of the same paper count alone, if there are any. One run as estimated is added to them.
    """
    if run in known:
        return known[run].seconds / estimate(run, known[run].seeds)
    same_method = [other for other in known if other.method == run.method]
    like = [other for other in same_method if other.paper == run.paper] or same_method
    ratios = [known[other].seconds / estimate(other, known[other].seeds) for other in like]
    return math.exp(sum(map(math.log, ratios)) / (len(ratios) + 1))


def folder_of(run: Run, seeds: int, workdir: Path) -> Path:
    """The folder with the artifacts of a run."""
    return workdir / f"{run.label}-s{seeds}"


def train(run: Run, seeds: int, workdir: Path, first: int | None = None) -> dict[str, Any]:
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
            run_experiment(config_of(run, seeds, first), folder, progress=False)
        finally:
            if folder.exists():
                before += time.process_time() - started
                write_text(spent, f"{before:.1f}\n")
            programs.free()  # The next run has other shapes, and 30 programs hold 0.4 GB.
    result = read(run, seeds, workdir, first)
    if result is None:
        raise ConfigError(f"{folder} has no result.json; run it again")
    return result


def read(run: Run, seeds: int, workdir: Path, first: int | None = None) -> dict[str, Any] | None:
    """The result that :func:`train` returned, or ``None`` for a run that is not finished.

    Raises:
      ConfigError: if the folder has a run with other settings, for example of an older protocol.
    """
    folder = folder_of(run, seeds, workdir)
    if not (folder / "result.json").exists():
        return None
    check_workdir(config_of(run, seeds, first), folder)
    result, config = (read_json(folder / name) for name in ("result.json", "config.json"))
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


def cells_with(cells: Iterable[Cell]) -> Counter[Run]:
    """Counts, for each run, the cells that it gives or that are compared with it."""
    return Counter(run for cell in cells for run in {run_of(cell), *compared_with(cell).values()})
