"""The launcher that runs the packages of others on the rows of the papers' tables."""

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
from experiments.papers.results import KEY
from fsjax.datasets.split_protocols import make_split
from fsjax.errors import ConfigError, DataError
from fsjax.evaluation import svm_accuracy
from fsjax.storage.atomic_files import write_text
from fsjax.tables.dataset import Dataset
from fsjax.tables.splits import Split

#: Columns of ``reproduction/reference.csv``.
COLUMNS = (*KEY, "mean", "std", "seeds", "code", "version", "command", "cpu_seconds")


def read_reference(path: Path) -> pd.DataFrame:
    """The rows of a file of reference results; none where there is no file.

    Raises:
      ConfigError: if the file has other columns.
    """
    if not path.exists():
        return pd.DataFrame(columns=COLUMNS)
    table = pd.read_csv(path, dtype=dict.fromkeys((*KEY, "code", "version", "command"), str))
    if tuple(table.columns) != COLUMNS:
        odd = sorted(set(table.columns) ^ set(COLUMNS))
        raise ConfigError(f"{path} is of another version: its columns differ in {', '.join(odd)}")
    return table.fillna({"setting": ""})


def write_reference(table: pd.DataFrame, path: Path) -> None:
    """Writes the file, sorted by cell, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    table = table.drop_duplicates(list(KEY), keep="last").sort_values(list(KEY), kind="stable")
    write_text(path, table.to_csv(index=False, lineterminator="\n"))


def cells_by_training(cells: Sequence[Cell]) -> dict[tuple[str, str], list[Cell]]:
    """The cells of each method and data set that a package can give: WAST's accuracies by K."""
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
      dataset: with classes.
      split: the rows. The package learns from the training rows in ascending order of their
        numbers, and its columns are judged as :func:`fsjax.evaluation.svm_accuracy` does.
      config: the protocol, which tells the scaling of X and the settings of the method.
      ks: numbers of columns.
      seeds: one selection for each.

    Returns:
      For each K, a percentage per seed; and seconds per seed.

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
    """``(N, D)`` rows by a scaling of ``configs/papers.py``."""
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
    """Rows of the table for cells of one method and data set."""
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
    """Runs what the flags choose and the table lacks, a method and data set at a time."""
    unknown = sorted(set(FLAGS.method) - set(PACKAGES))
    if unknown:
        raise ConfigError(
            f"no package for {', '.join(unknown)}; choose of {', '.join(sorted(PACKAGES))}"
        )
    path = Path(FLAGS.results)
    table = read_reference(path)
    present = {tuple(row[name] for name in KEY) for row in table.to_dict("records")}
    todo = cells_by_training(chosen(["wast"], (), FLAGS.datasets, FLAGS.method or list(PACKAGES)))
    for (method, name), cells in todo.items():
        cells = [
            cell
            for cell in cells
            if cell.key not in present
            and (FLAGS.largest is None or (cell.row.num_features or 0) <= FLAGS.largest)
        ]
        if not cells:
            continue
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
        package.version  # noqa: B018  The error for a missing package comes before any work.
        values, seconds = judged(package, dataset, split, config, ks, list(seeds))
        command = package.call(dict(config.method), config.data.scaling)
        rows = rows_of(cells, package, command, values, seconds)
        table = pd.DataFrame(table.to_dict("records") + rows, columns=COLUMNS)
        write_reference(table, path)
        accuracies = ", ".join(f"K={k}: {np.mean(values[k]):.2f}" for k in ks)
        print(f"{method}, {name}: {accuracies} ({seconds:.0f} s of CPU)", flush=True)


def define_flags() -> None:
    """Defines the flags of this launcher."""
    flags.DEFINE_list("method", [], f"Of {', '.join(PACKAGES)}; all by default.")
    flags.DEFINE_list("datasets", [], "Data sets; all of WAST's tables by default.")
    flags.DEFINE_integer("seeds", 3, "Seeds of packages that draw random numbers.", 1)
    flags.DEFINE_integer("largest", None, "The largest K; CIFE and ICAP take hours for 200.", 1)
    flags.DEFINE_string("results", "reproduction/reference.csv", "Where the results are kept.")


def start() -> None:
    """Entry point."""
    cli.run(main, define_flags)
