"""Many settings and many seeds at once: ``python -m experiments.sweep``.

    python -m experiments.sweep --config=configs/wast.py:madelon --workdir=runs/sweep \\
        --sweep=method.sensitivity_weight=0.1,0.4,0.9 --sweep=method.drop_fraction=0.1,0.3 \\
        --config.seeds=0,1,2,3,4

Every pair of a setting and a seed is a row of one compiled program, where the settings are traced;
those that decide on shapes compile once for each value (:func:`fsjax.sweep`). Leaves ``sweep.csv``,
a row for each setting and seed, ``sweep.png`` and ``result.json``, and names the setting that is
best on the validation rows. The same command goes on after a stop. With ``--cluster=local:2``, or
the address of a Dask scheduler, each setting is a cell on a worker, with a folder below ``cells``.
"""

from __future__ import annotations

import ast
import copy
import json
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
from experiments.launch.experiment import begin, check_fields, check_workdir, end, save_pictures
from experiments.launch.sweep_cells import cells_of, fitted, plan_of
from fsjax.engine.sweep import combinations
from fsjax.errors import ConfigError
from fsjax.storage.atomic_files import write_text

_SWEEP = flags.DEFINE_multi_string("sweep", [], "field=value,value,...; repeatable.")
_CLUSTER = define_flag()
_YES = flags.DEFINE_bool("yes", False, "Goes ahead with more than 10,000 rows.")

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
        for one in _split(text):
            tried = copy.deepcopy(config)
            cli.override(tried, f"{field}={one}")
            for part in field.split("."):
                tried = tried[part]
            values.append(tried)
        if not field.startswith("method.") and field not in FIELDS or field == "method.name":
            allowed = ", ".join(FIELDS)
            raise ConfigError(f"cannot sweep over {field}; a field of the method, or {allowed}")
        if field in grid:
            raise ConfigError(f"--sweep={field} is there twice; give all its values in one")
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
    config: ml_collections.ConfigDict, sweeps: Sequence[str], workdir: Path, progress: bool
) -> pd.DataFrame:
    """Runs a sweep, or reads a finished one; its rows, one for each setting and seed."""
    check_fields(config)
    if _CLUSTER.value is not None:
        check_address(_CLUSTER.value)
    config = copy.deepcopy(config)
    grid = read_grid(config, sweeps)
    if not grid:
        raise ConfigError("--sweep is missing; for example --sweep=method.learning_rate=0.01,0.1")
    rows = len(combinations(grid)) * len(config.seeds)
    if rows > MANY and not _YES.value:
        raise ConfigError(f"{rows:,} rows; add --yes to go ahead")
    with config.unlocked():
        config.sweep = tuple(sweeps)
    if check_workdir(config, workdir):
        print(f"{workdir} holds this finished sweep; its results:")
        return pd.read_csv(workdir / "sweep.csv")
    planned, dataset = plan_of(config, grid, workdir, progress)
    if _CLUSTER.value is not None:
        found = _on_cluster(_CLUSTER.value, config, grid, planned.settings, workdir)
    else:
        begin(config, workdir)
        found = fitted(planned, dataset, config)
    table = _write(found, workdir)
    end(config, workdir)
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

    def found() -> fsjax.Sweep:
        places = sorted(results)
        there = tuple(settings[place] for place in places)
        return fsjax.Sweep(tuple(settings[0]), there, tuple(results[place] for place in places))

    with connected(address) as cluster:
        begin(config, workdir)
        for place, path in gathered(cluster, cells_of(config, grid, settings, workdir)):
            results[place] = fsjax.load(path)
            _write_table(found(), workdir)
    return found()


def _write_table(found: fsjax.Sweep, workdir: Path) -> pd.DataFrame:
    table = found.table()
    write_text(workdir / "sweep.csv", table.to_csv(index=False, lineterminator="\n"))
    return table


def _write(found: fsjax.Sweep, workdir: Path) -> pd.DataFrame:
    table = _write_table(found, workdir)
    metric = next((name for name in MAIN_METRICS if name in table), "validation")
    save_pictures({"sweep": plot_sweep(table, found.names, metric)}, workdir)
    best = None if table["validation"].isna().all() else found.best()
    content = {
        "names": found.names,
        "best": best,
        "settings": found.settings,
        "results": [artifacts.result_dict(result) for result in found.results],
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
    told = ", ".join(f"{name}={value}" for name, value in zip(names, best, strict=True))
    return f"{text}\n\nbest on the validation rows: {told}"


def main(config: ml_collections.ConfigDict, workdir: Path, progress: bool) -> None:
    """Entry point, with the values of the flags."""
    table = run_sweep(config, _SWEEP.value, workdir, progress)
    fixed = ("seed", "best_epoch", "validation")
    names = list(table.columns[: table.columns.get_loc(fixed[0])])
    print(summary(table, names))
    print(f"artifacts in {workdir}")


if __name__ == "__main__":
    cli.run_config(main, "runs/sweep", "configs/wast.py:madelon")
