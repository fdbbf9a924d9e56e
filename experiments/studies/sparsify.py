"""Compares sparse networks with the dense network and ProbMask (BinMask, section 4.2)."""

import math
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from ml_collections import ConfigDict

import fsjax
from experiments.artifacts.figures.sparsity import plot_accuracy_sparsity, plot_layer_sparsity
from experiments.artifacts.files import plain, write_json
from experiments.artifacts.statistics.trials import interval_text, mean_interval, rows_of_setting
from experiments.launch import cli, run_folder
from experiments.launch.csv_rows import add_rows, read_rows
from experiments.launch.experiment import load_data, make_plan
from fsjax import methods, sparsity
from fsjax.engine.train import Trained
from fsjax.errors import ConfigError

DENSE, BINMASK, PROBMASK = "dense", "binmask", "probmask"

#: Names of the methods in the figures.
TITLES = {DENSE: "dense", BINMASK: "BinMask", PROBMASK: "ProbMask"}

#: Points of accuracy that the network of the second figure may lose against the dense one.
SMALL_LOSS = 1.0

ABOUT = ("network", "method", "strength", "trial")

#: Columns of ``sparsity.csv``; accuracies are on the test rows, in percent.
POINTS = (*ABOUT, "sparsity", "accuracy", "finetuned_accuracy", "seconds_per_epoch")

#: Columns of ``layers.csv``.
LAYERS = (*ABOUT, "layer", "sparsity", "size")


class Setting(NamedTuple):
    """One training with all seeds."""

    method: str  # DENSE, BINMASK or PROBMASK
    strength: float = math.nan  # lambda of BinMask; for ProbMask, of the BinMask it is matched to
    hyper: Mapping[str, float] = {}  # traced float arguments: settings share one program

    @property
    def name(self) -> str:
        """The name in messages and of the folder of checkpoints."""
        return self.method if math.isnan(self.strength) else f"{self.method}-{self.strength:g}"


def set_up(config: ConfigDict, workdir: Path, progress: bool = False) -> dict[str, fsjax.Plan]:
    """Loads and checks everything without training or writing; returns a plan for each method.

    Raises:
      ConfigError, DataError: for settings and data that do not fit.
    """
    strengths = tuple(config.strengths)
    if not strengths or len(set(strengths)) < len(strengths):
        raise ConfigError(f"strengths={strengths}; give at least one, all of them different")
    if not all(0 <= strength < math.inf for strength in strengths):
        raise ConfigError(f"strengths={strengths}; choose finite values of at least 0")
    network = dict(config.network)
    built = {
        DENSE: methods.neural_network(**network),
        # Each training sets its own strength; built with one above 0, as 0 is another program.
        BINMASK: methods.binmask(masked="weights", **config.binmask, **network),
    }
    if config.probmask:
        built[PROBMASK] = methods.probmask(**config.probmask_options, **network)
    dataset = load_data(config)
    options = {"task": "classification", "valid_fraction": 0.0, "best_by": "last"}
    options |= {"record_test": True, "checkpoint_dir": workdir / "checkpoints"}
    return {
        name: make_plan(config, method, dataset, progress=progress, **options)
        for name, method in built.items()
    }


def layers_of(method: str, params: Any, row: int) -> list[tuple[str, float, int]]:
    """Name, sparsity in [0, 1] and number of weights of each masked layer, from the input on.

    They are those of one seed, a row of the stacked parameters; a dense network has none.
    """
    if method == DENSE:
        return []
    stacked = params.latents if method == BINMASK else params.probabilities
    values = {path: np.asarray(leaf[row]) for path, leaf in stacked.items()}
    rule = sparsity if method == BINMASK else sparsity.probmask
    shares = rule.layer_sparsity(values)

    def place(path: str) -> tuple[int, str]:
        # Convolutions come before dense layers, in all of these networks; block_2 before block_10.
        return -values[path].ndim, re.sub(r"\d+", lambda number: number[0].zfill(3), path)

    def name(path: str) -> str:
        # ``Dense_1`` for ``FanInDense_1/Dense_0/kernel``.
        return re.sub(r"FanInDense_(\d+)/Dense_0", r"Dense_\1", path.removesuffix("/kernel"))

    return [(name(path), shares[path], values[path].size) for path in sorted(values, key=place)]


def rows_of(config: ConfigDict, setting: Setting, trained: Trained) -> dict[str, pd.DataFrame]:
    """Makes the rows of a trained setting in ``layers.csv`` and ``sparsity.csv``."""
    finetune_epochs = config.network.finetune_epochs
    before = config.train.num_epochs - finetune_epochs - 1
    # A training that was only read from its checkpoint has no time.
    seconds = trained.cost["train_seconds"] / (trained.cost["trained_epochs"] or math.nan)
    points, layers = [], []
    for row, seed in enumerate(config.seeds):
        about = (network_of(config), setting.method, setting.strength, seed)
        of_seed = layers_of(setting.method, trained.states.params, row)
        layers += [(*about, *layer) for layer in of_seed]
        closed = sum(share * size for _, share, size in of_seed)
        share = closed / max(sum(size for *_, size in of_seed), 1)
        accuracy = trained.history["test/accuracy"][row].astype(float)
        last = accuracy[-1] if finetune_epochs else math.nan
        points.append((*about, share, accuracy[before], last, seconds))
    tables = {"layers": pd.DataFrame(layers, columns=LAYERS)}
    return tables | {"sparsity": pd.DataFrame(points, columns=POINTS)}


def network_of(config: ConfigDict) -> str:
    """The name of network and data set in tables and figures."""
    return f"{config.network.network} on {config.data.name}"


def read_tables(workdir: Path) -> dict[str, pd.DataFrame]:
    """Reads the rows of the finished settings of a folder, as :func:`rows_of` makes them."""
    layers, points = (read_rows(workdir / f"{name}.csv") for name in ("layers", "sparsity"))
    # A run may be killed between the two files, and one may be damaged: only settings in both
    # count. The dense network has no masks, and so no layers.
    dense = points[points["method"] == DENSE] if len(points) else points
    if not len(points) or not len(layers):
        return {"layers": layers[:0], "sparsity": dense}
    both, other = (table[["method", "strength"]].drop_duplicates() for table in (points, layers))
    both = both.merge(other)
    points = pd.concat([dense, points[points["method"] != DENSE].merge(both)], ignore_index=True)
    return {"layers": layers.merge(both), "sparsity": points}


def settings_of(config: ConfigDict, tables: Mapping[str, pd.DataFrame]) -> Iterator[Setting]:
    """Yields the settings in order; ProbMask gets the mean sparsity of each strength of BinMask.

    Strengths that closed all masks or none are skipped, as ProbMask has nothing to learn there. By
    the time ProbMask's settings are requested, the tables must have the rows of BinMask.
    """
    yield Setting(DENSE)
    for strength in config.strengths:
        yield Setting(BINMASK, strength, {"strength": strength})
    for strength in config.strengths if config.probmask else ():
        trained = rows_of_setting(tables["sparsity"], BINMASK, strength)
        density = 1.0 - float(trained["sparsity"].mean())
        if 0.0 < density < 1.0:
            yield Setting(PROBMASK, strength, {"density": density})


def run(config: ConfigDict, workdir: Path, progress: bool = True) -> dict[str, Any]:
    """Runs or resumes the comparison; returns the content of ``result.json``.

    Raises:
      ConfigError, DataError: for settings and data that do not fit, before anything is trained.
      NonFiniteLossError: if a training loss is not finite.
    """
    if (earlier := run_folder.finished_result(config, workdir, progress)) is not None:
        return earlier
    plans = set_up(config, workdir, progress)
    run_folder.begin_run(config, workdir)
    tables = read_tables(workdir)
    for setting in settings_of(config, tables):
        if len(rows_of_setting(tables["sparsity"], setting.method, setting.strength)):
            continue
        if progress:
            print(f"{network_of(config)}: {setting.name} {dict(setting.hyper) or ''}")
        hyper = {name: [value] * len(config.seeds) for name, value in setting.hyper.items()}
        trained = plans[setting.method].train(hyper=hyper, folder=setting.name)
        for name, rows in rows_of(config, setting, trained).items():
            tables[name] = add_rows(tables[name], rows, workdir / f"{name}.csv")
        shutil.rmtree(workdir / "checkpoints" / setting.name, ignore_errors=True)
    result = summarize(config, tables["sparsity"])
    draw(tables, result["settings"], workdir)
    write_json(result, workdir / "result.json")
    run_folder.end_run(config, workdir)
    shutil.rmtree(workdir / "checkpoints", ignore_errors=True)
    return plain(result)


def summarize(config: ConfigDict, points: pd.DataFrame) -> dict[str, Any]:
    """Computes means over the trials, with half the width of their 95 % confidence intervals.

    Returns:
      ``network``, ``dataset``, ``seeds`` and ``settings``, the dense one first. A setting has
      ``method``, ``strength`` (NaN for dense), ``seconds_per_epoch`` of all trials together, and
      pairs of mean and half width: ``sparsity`` in [0, 1], ``accuracy`` and
      ``finetuned_accuracy`` in percent, and ``loss``, the points below the dense network of the
      same trial, after fine-tuning where there is any.
    """
    last = "finetuned_accuracy" if config.network.finetune_epochs else "accuracy"
    dense = rows_of_setting(points, DENSE, math.nan).set_index("trial")[last]
    groups = points.groupby(["method", "strength"], sort=False, dropna=False)
    settings = [
        {
            "method": method,
            "strength": float(strength),
            "seconds_per_epoch": float(rows["seconds_per_epoch"].iloc[0]),
            "sparsity": mean_interval(rows["sparsity"]),
            "accuracy": mean_interval(rows["accuracy"]),
            "finetuned_accuracy": mean_interval(rows["finetuned_accuracy"]),
            "loss": mean_interval(dense - rows.set_index("trial")[last]),
        }
        for (method, strength), rows in groups
    ]
    about = {"network": config.network.network, "dataset": config.data.name}
    return {**about, "seeds": config.seeds, "settings": settings}


def draw(
    tables: Mapping[str, pd.DataFrame], settings: Sequence[Mapping[str, Any]], workdir: Path
) -> None:
    """Draws both figures; the second shows the layers at :func:`shown_strength`."""
    points = tables["sparsity"].assign(method=tables["sparsity"]["method"].map(TITLES))
    strength = shown_strength(settings)
    shown = [rows_of_setting(tables["layers"], method, strength) for method in (BINMASK, PROBMASK)]
    layers = pd.concat([rows for rows in shown if len(rows)])
    titles = layers["method"].map({**TITLES, BINMASK: f"BinMask, {strength:g}"})
    pictures = {
        "accuracy_sparsity": plot_accuracy_sparsity(points),
        "layer_sparsity": plot_layer_sparsity(layers.assign(method=titles)),
    }
    run_folder.save_pictures(pictures, workdir)


def shown_strength(settings: Sequence[Mapping[str, Any]]) -> float:
    """The strength of the sparsest BinMask that loses at most a point, else of the best one."""
    sparse = [setting for setting in settings if setting["method"] == BINMASK]
    near = [setting for setting in sparse if setting["loss"][0] <= SMALL_LOSS]
    if near:
        return max(near, key=lambda setting: setting["sparsity"][0])["strength"]
    return min(sparse, key=lambda setting: setting["loss"][0])["strength"]


def table_text(result: Mapping[str, Any]) -> str:
    """Formats the content of ``result.json`` as an aligned table."""

    def line(setting: Mapping[str, Any]) -> dict[str, str]:
        mean, half = setting["sparsity"]
        return {
            "method": setting["method"],
            "lambda": "" if setting["strength"] is None else f"{setting['strength']:g}",
            "sparsity (%)": interval_text(mean, half, digits=3, scale=100.0),
            "accuracy (%)": interval_text(*setting["accuracy"]),
            "fine-tuned (%)": interval_text(*setting["finetuned_accuracy"]),
            "points lost": "" if setting["method"] == DENSE else interval_text(*setting["loss"]),
        }

    lines = [line(setting) for setting in result["settings"]]
    about = f"{result['network']} on {result['dataset']}, {len(result['seeds'])} trials"
    note = "mean +- 95 % confidence interval; points lost against the dense network of the trial"
    return f"{about}: {note}\n{pd.DataFrame(lines).to_string(index=False)}"


def main(config: ConfigDict, workdir: Path, progress: bool) -> None:
    """Entry point, with the values of the flags."""
    print(table_text(run(config, workdir, progress)))
    print(f"pictures: {workdir / 'accuracy_sparsity.png'} and {workdir / 'layer_sparsity.png'}")


def start() -> None:
    """Entry point."""
    cli.run_config(main, config="configs/sparsify.py:mnist,lenet5", workdir="runs/sparsify")
