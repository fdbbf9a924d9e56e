"""Compares selectors by networks retrained on their columns (BinMask, section 4.1)."""

import functools
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from ml_collections import ConfigDict

import fsjax
from experiments import artifacts
from experiments.artifacts.figures.accuracy import plot_accuracy
from experiments.artifacts.files import read_table, write_json
from experiments.launch import cli, run_folder
from experiments.launch.csv_rows import add_rows, read_rows
from experiments.launch.experiment import load_data, make_plan
from fsjax import methods
from fsjax.data import Dataset, Split, make_split
from fsjax.errors import ConfigError, check_names
from fsjax.evaluation import retrain_metrics

#: The control: a network trained on all columns.
ALL = "all features"

#: Names of the methods in figures.
TITLES = {
    "binmask": "BinMask",
    "stg": "STG",
    "lassonet": "LassoNet",
    "fisher_score": "Fisher score",
    "random_selection": "random",
}

#: Metrics of the searches, in the table besides accuracies.
METRICS = (
    "strength", "search_steps", "exact_selection", "mask_converged", "undecided_percentage",
    "undecided_open_percentage",
)  # fmt: skip


def paper_sizes(config: ConfigDict, dataset: Dataset, splits: list[Split]) -> list[int]:
    """The paper's five numbers of columns, from what BinMask selects in the first trial."""
    method = methods.binmask(search=False, **config.binmask, **config.network)
    options = {"seeds": config.seeds[:1], "split": splits[:1], "best_by": "last"}
    planned = make_plan(config, method, dataset, **options)
    most = int(planned.train().history["train/num_selected"][0, -1])
    return [size for i in range(5) if (size := most - i * (most // 5)) > 0]


def plan_selection(
    name: str, config: ConfigDict, dataset: Dataset, splits: list[Split], sizes: Sequence[int]
) -> fsjax.Plan:
    """Plans a selection by a method, a key of :data:`TITLES`, of every size."""
    options: dict[str, Any] = {"seeds": config.seeds, "split": splits, "best_by": "last"}
    options["scaling"] = config.data.scaling
    if name == "lassonet":
        # One path with full batches; a tenth of the training rows are for validation.
        fields = dict(config.lassonet)
        most_rows = fields.pop("max_rows") or dataset.num_samples
        options["split"] = []
        for seed, split in zip(config.seeds, splits, strict=True):
            rows = np.random.default_rng(seed).permutation(split.train)[:most_rows]
            valid, train = np.split(rows, [len(rows) // 10])
            options["split"].append(Split(train, valid, split.test))
        method = methods.lassonet(min(sizes), **fields)
        options |= {"shuffle": False, "batch_size": dataset.num_samples, "num_epochs": 50_000}
    elif name in ("fisher_score", "random_selection"):
        # Rankings need no training: the network of random selection trains a single epoch.
        fields = {} if name == "fisher_score" else {"num_features": min(sizes)}
        method = methods.get_method(name)(**fields)
        options["num_epochs"] = 1
    else:
        network = dict(config.network)
        if name == "stg":
            # The architecture of the classifier, with STG's own optimiser.
            shape = ("network", "hidden", "activation", "batch_norm")
            network = {field: network[field] for field in shape}
        method = methods.get_method(name)(**{**network, **config[name]})
        options |= config.train
    return fsjax.plan(method, dataset, num_features=list(sizes), **options)


def check_settings(
    names: Sequence[str], config: ConfigDict, dataset: Dataset, splits: list[Split]
) -> None:
    """Raises ConfigError or DataError for what would fail only after other methods are trained."""
    network = methods.neural_network(**config.network)
    make_plan(config, network, dataset, split=splits, best_by="last", num_features=1)
    for name in names:
        # The paper's sizes follow from a training; any size will do for the other checks.
        plan_selection(name, config, dataset, splits, config.sizes or (1,))


def rows_of(
    name: str,
    config: ConfigDict,
    accuracy: Mapping[int, np.ndarray],
    results: Mapping[int, fsjax.FitResult],
) -> pd.DataFrame:
    """Makes a row for every trial and size."""
    network = config.network.network
    is_image = network != "mlp" or config.network.batch_norm
    about = {"dataset": config.data.name + f" ({network})" * is_image, "method": name}
    tables = []
    for size, values in accuracy.items():
        metrics = results[size].metrics if size in results else {}
        searches = {metric: metrics.get(metric, np.nan) for metric in METRICS}
        columns = {"trial": config.seeds, "num_features": size, "accuracy": values, **searches}
        tables.append(pd.DataFrame(about | columns))
    numbers = dict.fromkeys(("accuracy", *METRICS), np.float64)
    return pd.concat(tables, ignore_index=True).astype(numbers)


def run(config: ConfigDict, workdir: Path, progress: bool = True) -> pd.DataFrame:
    """Runs the comparison on one data set; writes and returns its table.

    Raises:
      ConfigError: for settings that do not fit, before anything is trained.
    """
    names = config.methods
    # Methods may be added to a comparison, so they are not part of the run's identity.
    config = ConfigDict({**config, "methods": ()})
    run_folder.check_workdir(config, workdir)
    check_names("unknown method", names, TITLES)
    if not names:
        raise ConfigError(f"config.methods is empty; name some of {', '.join(TITLES)}")
    dataset = load_data(config)
    splits = [
        make_split(dataset, config.data.split, seed=int(seed), valid_fraction=0.0)
        for seed in config.seeds
    ]
    check_settings(names, config, dataset, splits)
    run_folder.begin_run(config, workdir)
    path, sizes_path = workdir / "accuracy.csv", workdir / "sizes.json"
    if not config.sizes and not sizes_path.exists():
        write_json(paper_sizes(config, dataset, splits), sizes_path)
    sizes = config.sizes or json.loads(sizes_path.read_text())
    table = read_rows(path)

    def retrained(columns: np.ndarray | None) -> np.ndarray:
        options = {**config.network, **config.train, "best_by": "last"}
        return retrain_metrics(
            dataset, splits, columns, config.seeds, scaling=config.data.scaling, options=options
        )["retrain_accuracy"]

    for name in (ALL, *names):
        if len(table) and name in set(table["method"]):
            continue
        if name == ALL:
            accuracy, results = {dataset.num_features: retrained(None)}, {}
        else:
            planned = plan_selection(name, config, dataset, splits, sizes)
            results = dict(zip(sizes, planned.fit(), strict=True))
            accuracy = {size: retrained(results[size].selected) for size in sizes}
        new = rows_of(name, config, accuracy, results)
        table = add_rows(table, new, path)
        if progress:
            means = new.groupby("num_features")["accuracy"].mean().round(2).to_dict()
            print(f"{name}: retrained accuracy in percent by number of columns {means}")
    draw(table, workdir)
    run_folder.end_run(config, workdir)
    return table


def draw(table: pd.DataFrame, workdir: Path) -> None:
    """Draws ``accuracy.png``, the paper's Figure 1."""
    titled = table.assign(method=table["method"].replace(TITLES))
    run_folder.save_pictures({"accuracy": plot_accuracy(titled)}, workdir)


def summary(table: pd.DataFrame) -> str:
    """Mean accuracy over all sizes by data set and method, and statistics of the searches."""
    chosen = table[table["method"] != ALL]
    means = chosen.pivot_table(index="dataset", columns="method", values="accuracy", sort=False)
    lines = ["mean test accuracy in percent over all sizes and trials", means.round(2).to_string()]
    for name, part in chosen.dropna(subset=["search_steps"]).groupby("method", sort=False):
        exact = part["exact_selection"].mean()
        paper = functools.partial(artifacts.published_value, "binmask", "all", name)
        lines.append(
            f"{name}: {part['search_steps'].mean():.2f} trainings per search (paper "
            f"{paper('search_steps')}), exactly K columns in "
            f"{exact:.1f} %, {part['mask_converged'].mean():.2f} % of the masks converged (paper "
            f"{paper('mask_converged_pct')} %), undecided "
            f"{part['undecided_percentage'].mean():.1f} % of all gates and "
            f"{part['undecided_open_percentage'].mean():.1f} % of those above 0.15"
        )
    return "\n".join(lines)


def collect(workdir: Path) -> pd.DataFrame:
    """Collects the tables of all subfolders and draws them in one picture.

    Raises:
      ConfigError: if there is no table.
    """
    paths = sorted(workdir.glob("*/accuracy.csv"))
    if not paths:
        raise ConfigError(
            f"no */accuracy.csv under {workdir}; run a config first: "
            f"--config=configs/feature_selection.py:isolet --workdir={workdir}/isolet"
        )
    table = pd.concat([read_table(path) for path in paths], ignore_index=True)
    draw(table, workdir)
    artifacts.write_report(workdir)
    return table


def main(config: ConfigDict | None, workdir: Path, progress: bool) -> None:
    """Entry point, with the values of the flags; without a config it draws existing tables."""
    table = collect(workdir) if config is None else run(config, workdir, progress)
    print(summary(table))
    print(f"picture: {workdir / 'accuracy.png'}")


def start() -> None:
    """Entry point."""
    cli.run_config(main, workdir="runs/feature_selection/isolet")
