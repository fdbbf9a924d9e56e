"""The launcher of a sweep over fields of a configuration."""

from __future__ import annotations

import ast
import copy
import functools
import json
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
from experiments.artifacts.files import plain
from experiments.artifacts.statistics.comparison import MAIN_METRICS
from experiments.cluster import check_address, connected, define_flag, gathered
from experiments.launch import cli
from experiments.launch.config import override
from experiments.launch.experiment import check_fields
from experiments.launch.run_folder import begin_run, check_workdir, end_run, save_pictures
from experiments.launch.sweep_cells import cells_of, fitted, plan_of
from fsjax.engine.sweep import combinations
from fsjax.errors import ConfigError
from fsjax.storage.atomic_files import write_text

#: Rows, settings times seeds, above which ``--yes`` is asked for.
MANY = 10_000

#: Fields outside of ``config.method`` that may be swept over.
FIELDS = (
    "num_features",
    "data.noise_std",
    "data.scaling",
    "data.split",
    "data.valid_fraction",
    "train.num_epochs",
    "train.batch_size",
    "train.best_by",
    "train.min_steps_per_epoch",
    "train.shuffle",
)


def read_grid(config: ml_collections.ConfigDict, sweeps: Sequence[str]) -> dict[str, list[Any]]:
    """Fields and their values, each of the type that the configuration has.

    Raises:
      ConfigError: for a field that is not there or cannot vary, and for values of another type.
    """
    grid: dict[str, list[Any]] = {}
    for sweep in sweeps:
        field, equals, text = sweep.partition("=")
        if not equals:
            raise ConfigError(f"--sweep={sweep}: write field=value,value")
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
            raise ConfigError(f"--sweep={field} is given twice; give all its values at once")
        grid[field] = values
    return grid


def _split(text: str) -> list[str]:
    """``1,2`` or, for tuples, ``(100,),(200,100)``."""
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
    """Runs a sweep, or reads a finished one; its rows, one for each setting and seed.

    Args:
      config: the configuration.
      sweeps: ``field=value,value`` for each field.
      workdir: the folder of the sweep.
      progress: whether to show progress.
      cluster: the address of a Dask cluster, if the sweep is trained on one.
      many: whether there may be more than :data:`MANY` rows.
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
        raise ConfigError(f"{rows:,} rows; add --yes to go ahead")
    with config.unlocked():
        config.sweep = tuple(sweeps)
    if check_workdir(config, workdir):
        print(f"{workdir} holds this finished sweep; its results:")
        return pd.read_csv(workdir / "sweep.csv")
    planned, dataset = plan_of(config, grid, workdir, progress)
    if cluster is not None:
        sweep = _on_cluster(cluster, config, grid, planned.settings, workdir)
    else:
        begin_run(config, workdir)
        sweep = fitted(planned, dataset, config)
    table = _write(sweep, workdir)
    end_run(config, workdir)
    return table


def _on_cluster(
    address: str,
    config: ml_collections.ConfigDict,
    grid: Mapping[str, Sequence[Any]],
    settings: Sequence[Mapping[str, Any]],
    workdir: Path,
) -> fsjax.Sweep:
    """The sweep with each setting on a worker; ``sweep.csv`` grows as they end."""
    results: dict[int, fsjax.FitResult] = {}

    def sweep() -> fsjax.Sweep:
        places = sorted(results)
        trained = tuple(settings[place] for place in places)
        return fsjax.Sweep(tuple(settings[0]), trained, tuple(results[place] for place in places))

    with connected(address) as cluster:
        begin_run(config, workdir)
        for place, path in gathered(cluster, cells_of(config, grid, settings, workdir)):
            results[place] = fsjax.load(path)
            _write_table(sweep(), workdir)
    return sweep()


def _write_table(sweep: fsjax.Sweep, workdir: Path) -> pd.DataFrame:
    table = sweep.table()
    write_text(workdir / "sweep.csv", table.to_csv(index=False, lineterminator="\n"))
    return table


def _write(sweep: fsjax.Sweep, workdir: Path) -> pd.DataFrame:
    table = _write_table(sweep, workdir)
    metric = next((name for name in MAIN_METRICS if name in table), "validation")
    save_pictures({"sweep": plot_sweep(table, sweep.names, metric)}, workdir)
    best = None if table["validation"].isna().all() else sweep.best()
    content = {
        "names": sweep.names,
        "best": best,
        "settings": sweep.settings,
        "results": [artifacts.result_dict(result) for result in sweep.results],
    }
    write_text(
        workdir / "result.json", json.dumps(plain(content), indent=2, allow_nan=False) + "\n"
    )
    return table


def summary(table: pd.DataFrame, names: Sequence[str]) -> str:
    """Mean and standard deviation over the seeds for each setting, and the best by validation."""
    metrics = [name for name in table.columns if name not in (*names, "seed", "best_epoch")]
    metrics = [name for name in metrics if table[name].notna().any()]
    grouped = table.groupby([table[name].map(str) for name in names], sort=False)[metrics]
    mean, spread = grouped.mean(), grouped.std(ddof=0)
    shown = mean.map("{:.4g}".format) + " +- " + spread.map("{:.2g}".format)
    text = shown.reset_index().to_string(index=False)
    if "validation" not in metrics:
        return f"{text}\n\nno validation rows, so no setting is called the best"
    best = mean["validation"].idxmin()
    best = best if isinstance(best, tuple) else (best,)
    setting = ", ".join(f"{name}={value}" for name, value in zip(names, best, strict=True))
    return f"{text}\n\nbest on the validation rows: {setting}"


def main(config: ml_collections.ConfigDict, workdir: Path, progress: bool) -> None:
    """Runs the sweep and prints its summary."""
    values = flags.FLAGS
    table = run_sweep(config, values.sweep, workdir, progress, values.cluster, values.yes)
    fixed = ("seed", "best_epoch", "validation")
    names = list(table.columns[: table.columns.get_loc(fixed[0])])
    print(summary(table, names))
    print(f"artifacts in {workdir}")


def define_flags() -> None:
    """Defines the flags of this launcher, beside those of a configuration."""
    flags.DEFINE_multi_string("sweep", [], "field=value,value,...; repeatable.")
    flags.DEFINE_bool("yes", False, "Go ahead with more than 10,000 rows.")
    define_flag()


def start() -> None:
    """Entry point."""
    cli.run_config(main, define_flags, config="configs/wast.py:madelon", workdir="runs/sweep")
