"""The launcher that runs reference packages on the data of the papers' tables."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from absl import flags
from absl.flags import FLAGS
from ml_collections import ConfigDict
from sklearn.preprocessing import StandardScaler

from experiments.launch import cli
from experiments.launch.experiment import load_data
from experiments.papers import runs
from experiments.papers.cells import Cell, chosen, run_of
from experiments.papers.packages import PACKAGES, Package, Problem
from experiments.papers.results import KEY, by_key, read_cells, write_results
from fsjax.errors import ConfigError, DataError
from fsjax.evaluation import svm_accuracy
from fsjax.tables.dataset import Dataset
from fsjax.tables.splits import Split
from fsjax.tasks.split_protocols import make_split

#: Columns of ``reproduction/reference.csv``.
COLUMNS = (*KEY, "mean", "std", "seeds", "code", "version", "command", "cpu_seconds")


def read_reference(path: Path) -> pd.DataFrame:
    """Reads a file of reference results; the table is empty if there is no file.

    Raises:
      ConfigError: if the file has other columns.
    """
    return read_cells(path, COLUMNS, (*KEY, "code", "version", "command"))


def write_reference(table: pd.DataFrame, path: Path) -> None:
    """Writes the file atomically, sorted by cell."""
    table = table.drop_duplicates(list(KEY), keep="last").sort_values(list(KEY), kind="stable")
    write_results(table, path)


def cells_by_training(cells: Sequence[Cell]) -> dict[tuple[str, str], list[Cell]]:
    """The cells that packages can reproduce, WAST's accuracies by K, per method and data set."""
    by_training: dict[tuple[str, str], list[Cell]] = {}
    for cell in cells:
        row = cell.row
        plain = not row.options and row.num_epochs is None
        if cell.paper == "wast" and row.metric == "svm_accuracy" and row.num_features and plain:
            by_training.setdefault((row.method, row.dataset), []).append(cell)
    return by_training


def judged(
    package: Package,
    dataset: Dataset,
    split: Split,
    config: ConfigDict,
    ks: Sequence[int],
    seeds: Sequence[int],
) -> tuple[dict[int, list[float]], float]:
    """Test accuracies of the columns that a package selects, and the CPU seconds of a selection.

    Args:
      package: the package.
      dataset: a data set with classes.
      split: the rows. The package learns from the training and validation rows in ascending order;
        :func:`fsjax.evaluation.svm_accuracy` judges its columns.
      config: the protocol, with the scaling of X and the settings of the method.
      ks: numbers of columns.
      seeds: the seeds, one selection each.

    Returns:
      For each K, a percentage per seed; and the CPU seconds per seed.

    Raises:
      DataError: if the data set has no classes.
    """
    if dataset.y is None:
        raise DataError(f"{dataset.name} has no classes; choose another data set")
    rows = np.sort(np.concatenate([split.train, split.valid]))
    x = dataset.table.block(rows, np.arange(dataset.num_features)).astype(np.float64)
    x = scaled(x, config.data.scaling)
    values: dict[int, list[float]] = {k: [] for k in ks}
    started = time.process_time()
    problems = [Problem(x, dataset.y[rows], ks, dict(config.method), seed) for seed in seeds]
    selections = [package.select(problem) for problem in problems]
    seconds = (time.process_time() - started) / len(seeds)
    for selection in selections:
        for k, columns in selection.items():
            values[k].append(svm_accuracy(dataset, split, columns))
    return values, seconds


def scaled(x: np.ndarray, scaling: str) -> np.ndarray:
    """Scales ``(N, D)`` rows by a scaling of ``configs/papers.py``."""
    if scaling == "standard":
        return StandardScaler().fit_transform(x)
    if scaling.startswith("scalar"):
        mean, spread = x.mean(), x.std()
        return ((x / 255 if scaling == "scalar255" else x) - mean) / spread
    return x


def rows_of(
    cells: Sequence[Cell],
    package: Package,
    command: str,
    values: dict[int, list[float]],
    seconds: float,
) -> list[dict[str, Any]]:
    """The rows of the table for the cells of one method and data set."""
    rows = []
    for cell in cells:
        assert cell.row.num_features is not None
        accuracies = values[cell.row.num_features]
        rows.append(
            {
                **dict(zip(KEY, cell.key, strict=True)),
                "mean": float(f"{np.mean(accuracies):.6g}"),
                "std": float(f"{np.std(accuracies):.4g}"),
                "seeds": len(accuracies),
                "code": package.distribution,
                "version": package.version,
                "command": command,
                "cpu_seconds": round(seconds, 1),
            }
        )
    return rows


def main() -> None:
    """Runs the packages that the flags choose for the cells that the table lacks."""
    unknown = sorted(set(FLAGS.method) - set(PACKAGES))
    if unknown:
        raise ConfigError(
            f"there is no reference package for {', '.join(unknown)}; choose from "
            f"{', '.join(sorted(PACKAGES))}"
        )
    path = Path(FLAGS.results)
    table = read_reference(path)
    present = by_key(table)
    cells_to_run = [
        cell
        for cell in chosen(["wast"], (), FLAGS.datasets, FLAGS.method or list(PACKAGES))
        if cell.key not in present
        and (FLAGS.largest is None or (cell.row.num_features or 0) <= FLAGS.largest)
    ]
    todo = cells_by_training(cells_to_run)
    if not todo:
        print(f"nothing to run: {path} has all cells that the flags choose")
    for (method, name), cells in todo.items():
        package = PACKAGES[method]
        config = runs.config_of(run_of(cells[0]), 1)
        try:
            dataset = load_data(config)
        except DataError as error:
            print(f"{method}, {name}: left out; {error}")
            continue
        split = make_split(dataset, config.data.split, valid_fraction=config.data.valid_fraction)
        ks = sorted({cell.row.num_features for cell in cells if cell.row.num_features})
        seeds = range(FLAGS.seeds) if package.random else (0,)
        package.version  # noqa: B018  Raises the error for a missing package before any work.
        values, seconds = judged(package, dataset, split, config, ks, list(seeds))
        command = package.call(dict(config.method), config.data.scaling)
        rows = rows_of(cells, package, command, values, seconds)
        table = pd.DataFrame(table.to_dict("records") + rows, columns=COLUMNS)
        write_reference(table, path)
        accuracies = ", ".join(f"K={k}: {np.mean(values[k]):.2f}" for k in ks)
        print(f"{method}, {name}: {accuracies} ({seconds:.0f} s of CPU)", flush=True)


def define_flags() -> None:
    """Defines the flags of this launcher."""
    flags.DEFINE_list("method", [], f"Methods: {', '.join(PACKAGES)}; all by default.")
    flags.DEFINE_list("datasets", [], "Data sets; all of WAST's tables by default.")
    flags.DEFINE_integer("seeds", 3, "Number of seeds for packages with random numbers.", 1)
    flags.DEFINE_integer(
        "largest", None, "The largest K to run; CIFE and ICAP take hours for K = 200.", 1
    )
    flags.DEFINE_string("results", "reproduction/reference.csv", "CSV file of the results.")


def start() -> None:
    """Entry point."""
    cli.run(main, define_flags)
