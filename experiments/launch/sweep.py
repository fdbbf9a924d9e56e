"""The launcher that sweeps over fields of a configuration, here or on the workers of a cluster."""

from __future__ import annotations

import ast
import contextlib
import copy
import dataclasses
import functools
import operator
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import ml_collections
import pandas as pd
from absl import flags

import fsjax
from experiments import artifacts
from experiments.artifacts.figures.sweep import plot_sweep
from experiments.artifacts.files import write_json
from experiments.artifacts.statistics.comparison import MAIN_METRICS
from experiments.cluster import Cell, check_address, connected, define_flag, gathered
from experiments.launch import cli
from experiments.launch.config import override
from experiments.launch.experiment import (
    build_method,
    check_evaluation,
    check_fields,
    evaluated,
    load_data,
    plan_options,
    split_and_noise,
)
from experiments.launch.run_folder import begin_run, end_run, finished_result, save_pictures
from fsjax.data import Dataset
from fsjax.engine.sweep import SweepPlan, best_places, combinations, plan_sweep
from fsjax.errors import ConfigError, DataError
from fsjax.storage.atomic_files import write_text
from fsjax.storage.file_lock import exclusive

#: The values of each field.
Grid = Mapping[str, Sequence[Any]]

#: Rows (settings times seeds) above which ``--yes`` is required.
MANY = 10_000

#: Fields outside ``config.method`` that may be swept over.
FIELDS = (
    "num_features", "data.noise_std", "data.scaling", "data.split", "data.valid_fraction",
    "train.num_epochs", "train.batch_size", "train.best_by", "train.min_steps_per_epoch",
    "train.shuffle",
)  # fmt: skip


def read_grid(config: ml_collections.ConfigDict, sweeps: Sequence[str]) -> dict[str, list[Any]]:
    """Parses ``--sweep`` flags; returns the values by field, in the type of the configuration.

    Raises:
      ConfigError: for a field that does not exist or cannot vary, or a value of another type.
    """
    grid: dict[str, list[Any]] = {}
    for sweep in sweeps:
        field, equals, text = sweep.partition("=")
        if not equals:
            raise ConfigError(
                f"--sweep={sweep}: write field=value,value, such as method.learning_rate=0.01,0.1"
            )
        values = []
        for value in _split(text):
            changed = copy.deepcopy(config)
            override(changed, f"{field}={value}")
            values.append(functools.reduce(operator.getitem, field.split("."), changed))
        if not field.startswith("method.") and field not in FIELDS or field == "method.name":
            allowed = ", ".join(FIELDS)
            raise ConfigError(
                f"cannot sweep over {field}; choose a field of the method, or one of {allowed}"
            )
        if field in grid:
            raise ConfigError(f"--sweep={field} is given twice; give all values in one flag")
        grid[field] = values
    return grid


def _split(text: str) -> list[str]:
    """Splits ``1,2`` or, for tuples, ``(100,),(200,100)``."""
    if "(" not in text:
        return [part for part in text.split(",") if part]
    try:
        return [str(value) for value in ast.literal_eval(f"[{text}]")]
    except (ValueError, SyntaxError):
        raise ConfigError(f"{text!r}: write tuples as (100,),(200,100)") from None


def run_sweep(
    config: ml_collections.ConfigDict,
    sweeps: Sequence[str],
    workdir: Path,
    progress: bool,
    cluster: str | None = None,
    many: bool = False,
) -> pd.DataFrame:
    """Runs a sweep, or reads a finished one; returns a row for each setting and seed.

    Args:
      sweeps: ``field=value,value`` for each field.
      cluster: the value of ``--cluster``; ``None`` trains in this process.
      many: whether more than :data:`MANY` rows are allowed.
    """
    check_fields(config)
    if cluster is not None:
        check_address(cluster)
    config = copy.deepcopy(config)
    grid = read_grid(config, sweeps)
    if not grid:
        raise ConfigError("--sweep is missing; for example --sweep=method.learning_rate=0.01,0.1")
    rows = len(combinations(grid)) * len(config.seeds)
    if rows > MANY and not many:
        raise ConfigError(
            f"the sweep has {rows:,} rows (settings times seeds); add --yes to train them all"
        )
    with config.unlocked():
        config.sweep = tuple(sweeps)
    if finished_result(config, workdir, progress) is not None:
        return pd.read_csv(workdir / "sweep.csv")
    planned, dataset = plan_of(config, grid, workdir, progress)
    if cluster is not None:
        sweep = _on_cluster(cluster, config, grid, planned.settings, workdir)
    else:
        begin_run(config, workdir)
        sweep = fitted(planned, dataset, config)
    table = _write(sweep, workdir, config)
    end_run(config, workdir)
    return table


def _on_cluster(
    address: str,
    config: ml_collections.ConfigDict,
    grid: Grid,
    settings: Sequence[Mapping[str, Any]],
    workdir: Path,
) -> fsjax.Sweep:
    """Trains each setting on a worker, and adds its rows to ``sweep.csv`` when it ends."""
    results: dict[int, fsjax.FitResult] = {}

    def finished_part() -> fsjax.Sweep:
        indices = sorted(results)
        trained = tuple(settings[index] for index in indices)
        return fsjax.Sweep(tuple(settings[0]), trained, tuple(results[index] for index in indices))

    with connected(address) as cluster:
        begin_run(config, workdir)
        for index, path in gathered(cluster, cells_of(config, grid, settings, workdir)):
            results[index] = fsjax.load(path)
            _write_table(finished_part(), workdir)
    return finished_part()


def plan_of(
    config: ml_collections.ConfigDict, grid: Grid, folder: Path, progress: bool
) -> tuple[SweepPlan, Dataset]:
    """Plans and checks a sweep with its checkpoints in a folder; returns it with its data.

    Raises:
      ConfigError, DataError: as :func:`fsjax.sweep` and :func:`fsjax.evaluation.check_protocols`.
    """
    method, dataset = build_method(config), load_data(config)
    check_evaluation(config, method, dataset)
    options = plan_options(config) | {
        "task": config.task,
        "num_features": config.num_features,
        "progress": progress,
        "checkpoint_dir": folder / "checkpoints",
    }
    varied = {field.rpartition(".")[2]: values for field, values in grid.items()}
    options = {name: value for name, value in options.items() if name not in varied}
    return plan_sweep(method, dataset, varied, **options), dataset


def fitted(planned: SweepPlan, dataset: Dataset, config: ml_collections.ConfigDict) -> fsjax.Sweep:
    """Trains a sweep and evaluates its results by the protocols of the configuration."""
    swept = planned.fit()
    results = [
        evaluated(
            config,
            result,
            dataset,
            noise_std=setting.get("noise_std", config.data.noise_std),
            scaling=setting.get("scaling", config.data.scaling),
        )
        for setting, result in zip(swept.settings, swept.results, strict=True)
    ]
    return dataclasses.replace(swept, results=tuple(results))


def cells_of(
    config: ml_collections.ConfigDict,
    grid: Grid,
    settings: Sequence[Mapping[str, Any]],
    folder: Path,
) -> list[Cell]:
    """Makes a cell of each setting, with all its seeds, in the order of the grid.

    Args:
      settings: for each setting its values, by the last part of the field's name.
    """
    cells = []
    for index, setting in enumerate(settings):
        grid_of_cell = {field: (setting[field.rpartition(".")[2]],) for field in grid}
        label = ",".join(f"{name}={value}" for name, value in setting.items())
        cell_folder = folder.absolute() / "cells" / f"{index:04d}"
        arguments = (config, grid_of_cell, cell_folder)
        cells.append(Cell(f"sweep-{index:04d}-{label}", fit_cell, arguments))
    return cells


def fit_cell(config: ml_collections.ConfigDict, grid: Grid, folder: Path) -> Path:
    """Trains and evaluates a setting unless its folder has the result; returns the path of it."""
    path = folder / "result.npz"
    with exclusive(folder):
        planned, dataset = plan_of(config, grid, folder, progress=False)
        if path.exists():
            # A damaged result is computed again.
            with contextlib.suppress(DataError):
                fsjax.load(path)
                return path
        fsjax.save(fitted(planned, dataset, config).results[0], path)
    return path


def _write_table(sweep: fsjax.Sweep, workdir: Path) -> pd.DataFrame:
    table = sweep.table()
    write_text(workdir / "sweep.csv", table.to_csv(index=False, lineterminator="\n"))
    return table


def _write(sweep: fsjax.Sweep, workdir: Path, config: ml_collections.ConfigDict) -> pd.DataFrame:
    table = _write_table(sweep, workdir)
    metric = next((name for name in MAIN_METRICS if name in table), "validation")
    save_pictures({"sweep": plot_sweep(table, sweep.names, metric)}, workdir)
    places = best_places(sweep)
    content = {
        "names": sweep.names,
        "best": places[0][1] if len(places) == 1 else dict(places),
        "settings": sweep.settings,
        "results": [
            artifacts.result_dict(result, *split_and_noise(config, setting))
            for setting, result in zip(sweep.settings, sweep.results, strict=True)
        ],
    }
    write_json(content, workdir / "result.json")
    return table


def summary(table: pd.DataFrame, names: Sequence[str]) -> str:
    """Means and standard deviations over the seeds as text, and the best setting by validation.

    If the settings differ in their criterion (:meth:`fsjax.Sweep.table`), the best by each.
    """
    others = (*names, "seed", "best_epoch", "criterion")
    metrics = [name for name in table.columns if name not in others]
    metrics = [name for name in metrics if table[name].notna().any()]
    grouped = table.groupby([table[name].map(str) for name in names], sort=False)[metrics]
    mean, spread = grouped.mean(), grouped.std(ddof=0)
    shown = mean.map("{:.4g}".format) + " +- " + spread.map("{:.2g}".format)
    # An accuracy is negated there.
    shown = shown.rename(columns={"validation": "validation (smaller is better)"})
    text = shown.reset_index().to_string(index=False)
    if "validation" not in metrics:
        return f"{text}\n\nthere are no validation rows to choose the best setting by"
    criteria = table["criterion"].unique() if "criterion" in table else [""]
    for criterion in criteria:
        rows = table[table["criterion"] == criterion] if criterion else table
        values = rows.groupby([rows[name].map(str) for name in names], sort=False)["validation"]
        if not rows["validation"].notna().any():
            continue
        best = values.mean().idxmin()
        best = best if isinstance(best, tuple) else (best,)
        setting = ", ".join(f"{name}={value}" for name, value in zip(names, best, strict=True))
        of_these = f" ({criterion})" if criterion else ""
        text += f"\n\nbest on the validation rows{of_these}: {setting}"
    return text


def main(config: ml_collections.ConfigDict, workdir: Path, progress: bool) -> None:
    """Runs the sweep and prints its summary."""
    values = flags.FLAGS
    table = run_sweep(config, values.sweep, workdir, progress, values.cluster, values.yes)
    names = list(table.columns[: table.columns.get_loc("seed")])
    print(summary(table, names))
    print(f"wrote the results to {workdir}")


def define_flags() -> None:
    """Defines the flags of this launcher."""
    flags.DEFINE_multi_string("sweep", [], "FIELD=VALUE,VALUE,...: a config field and its values")
    flags.DEFINE_bool("yes", False, f"Train also if there are more than {MANY:,} rows.")
    define_flag()


def start() -> None:
    """Entry point."""
    cli.run_config(main, define_flags, config="configs/wast.py:madelon", workdir="runs/sweep")
