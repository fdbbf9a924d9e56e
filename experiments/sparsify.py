"""Sparse networks against the dense one and ProbMask (BinMask, section 4.2, Figure 2).

    python -m experiments.sparsify --config=configs/sparsify.py:mnist,lenet5 \
        --workdir=runs/sparsify/mnist-lenet5

trains the dense network, BinMask on its weights with every strength (lambda), and ProbMask at the
sparsities that BinMask reached; prints how many points each of them loses; and leaves
``sparsity.csv``, ``layers.csv``, ``accuracy_sparsity.png``, ``layer_sparsity.png``,
``config.json`` and ``result.json``. When it is given again it goes on with what is missing.
"""

from __future__ import annotations

import json
import math
import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import ml_collections
import numpy as np
import pandas as pd

import fsjax
from experiments import cli
from experiments.figures.sparsity import plot_accuracy_sparsity, plot_layer_sparsity
from experiments.launch import check_workdir, load_data, settings
from experiments.statistics.trials import mean_interval
from fsjax import report
from fsjax.atomic import write_text
from fsjax.engine.train import Trained
from fsjax.errors import ConfigError
from fsjax.methods.binmask import binmask
from fsjax.methods.neural_network import neural_network
from fsjax.methods.probmask import probmask
from fsjax.report.artifacts import plain
from fsjax.sparsity import probmask as probabilities
from fsjax.sparsity.binmask import layer_sparsity

DENSE, BINMASK, PROBMASK = "dense", "binmask", "probmask"

#: In the figures.
TITLES = {DENSE: "dense", BINMASK: "BinMask", PROBMASK: "ProbMask"}

#: Points below the dense network that the layers of the second figure may be.
SMALL_LOSS = 1.0

#: Columns of ``sparsity.csv``; accuracies are on the test rows, in percent.
POINTS = (
    "network",
    "method",
    "strength",
    "trial",
    "sparsity",
    "accuracy",
    "finetuned_accuracy",
    "seconds_per_epoch",
)

#: Columns of ``layers.csv``.
LAYERS = ("network", "method", "strength", "trial", "layer", "sparsity", "size")


class Setup(NamedTuple):
    """What is trained: nothing yet.

    Attributes:
      config: see ``configs/sparsify.py``.
      plans: ``dense``, ``binmask`` and, where it takes part, ``probmask``.
    """

    config: ml_collections.ConfigDict
    plans: Mapping[str, fsjax.Plan]

    @property
    def network(self) -> str:
        """What is trained, for tables and figures."""
        return f"{self.config.network.network} on {self.config.data.name}"


class Setting(NamedTuple):
    """One training with all seeds.

    Attributes:
      method: a name in ``Setup.plans``.
      strength: lambda of BinMask, or of the BinMask whose sparsity ProbMask gets; NaN for dense.
      hyper: values of float arguments, with which all settings of a method share one program.
    """

    method: str
    strength: float = math.nan
    hyper: Mapping[str, float] = {}

    @property
    def name(self) -> str:
        """For notes and folders."""
        return self.method if math.isnan(self.strength) else f"{self.method}-{self.strength:g}"


class Tables(NamedTuple):
    """Rows of the finished settings: ``sparsity.csv`` and ``layers.csv``."""

    points: pd.DataFrame
    layers: pd.DataFrame


def set_up(config: ml_collections.ConfigDict, workdir: Path, progress: bool = False) -> Setup:
    """Loads and checks everything; trains nothing, and leaves nothing in the folder.

    Raises:
      ConfigError, DataError: for settings and data that do not fit.
    """
    _check_strengths(config.strengths)
    network = dict(config.network)
    methods = {
        DENSE: neural_network(**network),
        # Any strength above 0, in place of which each training gets its own: 0 is another program.
        BINMASK: binmask(masked="weights", **config.binmask, **network),
    }
    if config.probmask:
        methods[PROBMASK] = probmask(**config.probmask_options, **network)
    dataset = load_data(config)
    plans = {
        name: fsjax.plan(
            method,
            dataset,
            seeds=config.seeds,
            task="classification",
            split=config.data.split,
            scaling=config.data.scaling,
            valid_fraction=0.0,
            best_by="last",
            record_test=True,
            progress=progress,
            checkpoint_dir=workdir / "checkpoints",
            **config.train,
        )
        for name, method in methods.items()
    }
    return Setup(config, plans)


def _check_strengths(strengths: Sequence[float]) -> None:
    if not strengths or len(set(strengths)) < len(strengths):
        raise ConfigError(f"strengths={tuple(strengths)}; give different ones, at least one")
    if not all(0 <= strength < math.inf for strength in strengths):
        raise ConfigError(f"strengths={tuple(strengths)}; choose values from 0")


def train_setting(setup: Setup, setting: Setting) -> Trained:
    """Trains all seeds of a setting, from its newest checkpoint if there is one.

    Raises:
      NonFiniteLossError: if the training loss leaves the finite numbers.
    """
    hyper = {name: [value] * len(setup.config.seeds) for name, value in setting.hyper.items()}
    return setup.plans[setting.method].train(hyper=hyper, folder=setting.name)


def layers_of(method: str, params: Any, row: int) -> list[tuple[str, float, int]]:
    """Name, sparsity in [0, 1] and number of weights of each masked layer, from the input on.

    Args:
      method: ``dense`` has no masked layers.
      params: parameters of stacked states, ``(S, ...)``.
      row: which seed.
    """
    if method == DENSE:
        return []
    stacked = params.latents if method == BINMASK else params.probabilities
    values = {path: np.asarray(leaf[row]) for path, leaf in stacked.items()}
    shares = (layer_sparsity if method == BINMASK else probabilities.layer_sparsity)(values)
    # Convolutions come before dense layers, in all of these networks.
    order = sorted(values, key=lambda path: (-values[path].ndim, _numbers_last(path)))
    return [(layer_name(path), shares[path], values[path].size) for path in order]


def layer_name(path: str) -> str:
    """``Dense_1`` for ``FanInDense_1/Dense_0/kernel``."""
    return re.sub(r"FanInDense_(\d+)/Dense_0", r"Dense_\1", path.removesuffix("/kernel"))


def _numbers_last(path: str) -> list[tuple[str, int]]:
    """Sorts ``block_2`` before ``block_10``."""
    parts = (part.rpartition("_") for part in path.split("/"))
    return [(name, int(number) if number.isdigit() else 0) for name, _, number in parts]


def rows_of(setup: Setup, setting: Setting, trained: Trained) -> Tables:
    """The rows of a trained setting, one for each seed and for each of its layers."""
    config, history = setup.config, trained.history
    finetune_epochs = config.network.finetune_epochs
    before = config.train.num_epochs - finetune_epochs - 1
    # A training that only read its checkpoint tells no time.
    epochs = trained.cost["trained_epochs"] or math.nan
    points, layers = [], []
    for row, seed in enumerate(config.seeds):
        about = {
            "network": setup.network,
            "method": setting.method,
            "strength": setting.strength,
            "trial": seed,
        }
        found = layers_of(setting.method, trained.states.params, row)
        closed = sum(share * size for _, share, size in found)
        accuracy = history["test/accuracy"][row].astype(float)
        points.append(
            about
            | {
                "sparsity": closed / max(sum(size for *_, size in found), 1),
                "accuracy": accuracy[before],
                "finetuned_accuracy": accuracy[-1] if finetune_epochs else math.nan,
                "seconds_per_epoch": trained.cost["train_seconds"] / epochs,
            }
        )
        layers += [
            about | {"layer": name, "sparsity": share, "size": size} for name, share, size in found
        ]
    return Tables(pd.DataFrame(points, columns=POINTS), pd.DataFrame(layers, columns=LAYERS))


def read_tables(workdir: Path) -> Tables:
    """The finished settings of a folder; empty tables where there are none."""
    paths = workdir / "sparsity.csv", workdir / "layers.csv"
    if not paths[0].exists():
        return Tables(pd.DataFrame(columns=POINTS), pd.DataFrame(columns=LAYERS))
    points, layers = map(pd.read_csv, paths)
    # The layers are written first: those of a setting that is not in the other file are dropped.
    finished = points[["method", "strength"]].drop_duplicates()
    return Tables(points, layers.merge(finished)[list(LAYERS)])


def write_tables(tables: Tables, workdir: Path) -> None:
    """Writes both files; the second marks the settings as finished."""
    write_text(workdir / "layers.csv", tables.layers.to_csv(index=False))
    write_text(workdir / "sparsity.csv", tables.points.to_csv(index=False))


def of_setting(rows: pd.DataFrame, method: str, strength: float) -> pd.DataFrame:
    """The rows of one setting; the strength of dense ones is NaN."""
    # What was read from a file may differ in the last bit.
    same = np.isclose(rows["strength"].astype(float), strength, atol=0.0, equal_nan=True)
    return rows[(rows["method"] == method) & same]


def matched(setup: Setup, points: pd.DataFrame) -> list[Setting]:
    """ProbMask at the mean sparsity of each strength of BinMask.

    Left out are strengths that closed all masks or none, where ProbMask has nothing to learn.
    """
    if PROBMASK not in setup.plans:
        return []
    found = []
    for strength in setup.config.strengths:
        density = 1.0 - float(of_setting(points, BINMASK, strength)["sparsity"].mean())
        if 0.0 < density < 1.0:
            found.append(Setting(PROBMASK, strength, {"density": density}))
    return found


def run(config: ml_collections.ConfigDict, workdir: Path, progress: bool = True) -> dict[str, Any]:
    """The comparison, from what the folder already has; returns the content of ``result.json``.

    Raises:
      ConfigError, DataError: for settings and data that do not fit, before anything is trained.
      NonFiniteLossError: if a training loss leaves the finite numbers.
    """
    if check_workdir(config, workdir):
        if progress:
            print(f"{workdir} holds this finished run; its results:")
        return json.loads((workdir / "result.json").read_text())
    setup = set_up(config, workdir, progress)
    workdir.mkdir(parents=True, exist_ok=True)
    report.write_config_json(settings(config), workdir / "config.json")
    tables = read_tables(workdir)

    def train_all(wanted: Sequence[Setting], tables: Tables) -> Tables:
        for setting in wanted:
            if len(of_setting(tables.points, setting.method, setting.strength)):
                continue
            if progress:
                print(f"{setup.network}: {setting.name} {dict(setting.hyper) or ''}")
            trained = train_setting(setup, setting)
            new = rows_of(setup, setting, trained)
            pairs = zip(tables, new, strict=True)
            tables = Tables(*(_joined(old, added) for old, added in pairs))
            write_tables(tables, workdir)
            shutil.rmtree(workdir / "checkpoints" / setting.name, ignore_errors=True)
        return tables

    sparse = [Setting(BINMASK, strength, {"strength": strength}) for strength in config.strengths]
    tables = train_all([Setting(DENSE), *sparse], tables)
    tables = train_all(matched(setup, tables.points), tables)
    result = summarize(setup, tables.points)
    draw(tables, result["settings"], workdir)
    write_text(workdir / "result.json", json.dumps(plain(result), indent=2) + "\n")
    shutil.rmtree(workdir / "checkpoints", ignore_errors=True)
    return json.loads((workdir / "result.json").read_text())


def _joined(old: pd.DataFrame, new: pd.DataFrame) -> pd.DataFrame:
    # Tables without rows have no types either.
    return pd.concat([part for part in (old, new) if len(part)] or [new], ignore_index=True)


def summarize(setup: Setup, points: pd.DataFrame) -> dict[str, Any]:
    """Means over the trials with half the width of their 95 % confidence intervals.

    Returns:
      ``network``, ``dataset``, ``seeds`` and ``settings``, the dense one first. A setting has
      ``method``, ``strength`` (NaN for dense), ``seconds_per_epoch`` of all trials together, and
      pairs of mean and half width: ``sparsity`` in [0, 1], ``accuracy`` and
      ``finetuned_accuracy`` in percent, and ``loss``, the points below the dense network of the
      same trial, after fine-tuning where there is any.
    """
    last = "finetuned_accuracy" if setup.config.network.finetune_epochs else "accuracy"
    dense = of_setting(points, DENSE, math.nan).set_index("trial")[last]
    found = []
    for (method, strength), rows in points.groupby(
        ["method", "strength"], sort=False, dropna=False
    ):
        pairs = {
            name: mean_interval(rows[name])
            for name in ("sparsity", "accuracy", "finetuned_accuracy")
        }
        pairs["loss"] = mean_interval(dense - rows.set_index("trial")[last])
        seconds = float(rows["seconds_per_epoch"].iloc[0])
        about = {"method": method, "strength": float(strength), "seconds_per_epoch": seconds}
        found.append(about | pairs)
    return {
        "network": setup.config.network.network,
        "dataset": setup.config.data.name,
        "seeds": setup.config.seeds,
        "settings": found,
    }


def draw(tables: Tables, found: Sequence[Mapping[str, Any]], workdir: Path) -> None:
    """Both figures; the second is about the setting of :func:`shown_strength`."""
    points = tables.points.assign(method=tables.points["method"].map(TITLES))
    report.save_figure(plot_accuracy_sparsity(points), workdir / "accuracy_sparsity.png")
    strength = shown_strength(found)
    shown = [of_setting(tables.layers, method, strength) for method in (BINMASK, PROBMASK)]
    layers = pd.concat([rows for rows in shown if len(rows)])
    titles = layers["method"].map({**TITLES, BINMASK: f"BinMask, {strength:g}"})
    figure = plot_layer_sparsity(layers.assign(method=titles))
    report.save_figure(figure, workdir / "layer_sparsity.png")


def shown_strength(found: Sequence[Mapping[str, Any]]) -> float:
    """The sparsest BinMask within a point of the dense network, else the one nearest to it.

    Args:
      found: ``settings`` of :func:`summarize`.
    """
    sparse = [setting for setting in found if setting["method"] == BINMASK]
    near = [setting for setting in sparse if setting["loss"][0] <= SMALL_LOSS]
    if near:
        return max(near, key=lambda setting: setting["sparsity"][0])["strength"]
    return min(sparse, key=lambda setting: setting["loss"][0])["strength"]


def table_text(result: Mapping[str, Any]) -> str:
    """The content of ``result.json`` as an aligned table."""
    lines = [
        {
            "method": setting["method"],
            "lambda": "" if setting["strength"] is None else f"{setting['strength']:g}",
            "sparsity (%)": _pair(setting["sparsity"], 3, scale=100.0),
            "accuracy (%)": _pair(setting["accuracy"]),
            "fine-tuned (%)": _pair(setting["finetuned_accuracy"]),
            "points lost": "" if setting["method"] == DENSE else _pair(setting["loss"]),
        }
        for setting in result["settings"]
    ]
    about = f"{result['network']} on {result['dataset']}, {len(result['seeds'])} trials"
    note = "mean +- 95 % confidence interval; points lost against the dense network of the trial"
    return f"{about}: {note}\n{pd.DataFrame(lines).to_string(index=False)}"


def _pair(pair: Sequence[float | None], digits: int = 2, scale: float = 1.0) -> str:
    mean, half = pair
    if mean is None:
        return "-"
    text = f"{round(scale * mean, digits) + 0.0:.{digits}f}"  # no -0.00
    return text if half is None else f"{text} +- {scale * half:.{digits}f}"


def main(config: ml_collections.ConfigDict, workdir: Path, progress: bool) -> None:
    """Entry point, with the values of the flags."""
    print(table_text(run(config, workdir, progress)))
    print(f"pictures: {workdir / 'accuracy_sparsity.png'} and {workdir / 'layer_sparsity.png'}")


if __name__ == "__main__":
    cli.run_config(main, "runs/sparsify/mnist-lenet5", "configs/sparsify.py:mnist,lenet5")
