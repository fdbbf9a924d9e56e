"""Compares regularizers by AUC and weight norms (BinMask, section 4.3)."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
from ml_collections import ConfigDict

import fsjax
from experiments.artifacts.figures import regularization as figures
from experiments.artifacts.statistics.trials import rows_of_setting
from experiments.launch import cli, run_folder
from experiments.launch.csv_rows import add_rows, read_rows
from experiments.launch.experiment import load_data, make_plan
from experiments.studies.known_arrays import dense_arrays
from fsjax.data import make_split
from fsjax.errors import ConfigError, DataError, check_names
from fsjax.methods import binmask, neural_network
from fsjax.sparsity import Masked, masked_weights
from fsjax.storage.atomic_files import write_text
from fsjax.tasks import roc_auc
from fsjax.typing import PyTree

#: The paper's names of the methods, in its order.
LABELS: Final = {"binmask": "BinMask", "l1": "L1", "l2": "L2", "dropout": "Dropout"}
LOGISTIC_REGRESSION: Final = "LR"

COLUMNS: Final = ("method", "strength", "trial", *figures.AUCS, *figures.NORMS, "best_epoch")

#: Weights count for L0 if their absolute value is at least this (Table 1, notes).
NONZERO: Final = 1e-4


class Setting(NamedTuple):
    """A method at one strength, its coefficient or rate; NaN for logistic regression."""

    label: str
    strength: float
    method: fsjax.Method


def build(name: str, strength: float, network: Mapping[str, Any]) -> fsjax.Method:
    """Builds a network with the given ``NetworkOptions`` and a regularizer of :data:`LABELS`.

    The strength is BinMask's lambda, the weight of the L1 term, the weight decay or the dropout
    rate.

    Raises:
      ConfigError: for a value outside its range.
    """
    if name == "binmask":
        return binmask(masked="weights", strength=strength, **network)
    option = "weight_decay" if name == "l2" else name
    return neural_network(**{**network, option: strength})


def sweep(config: ConfigDict) -> list[Setting]:
    """Lists all settings of a configuration, in the order in which they are trained.

    Raises:
      ConfigError: if there are none, for an unknown method, or a value outside its range.
    """
    check_names("unknown method in strengths,", config.strengths, LABELS)
    network = dict(config.network)
    settings = [
        Setting(label, float(strength), build(name, float(strength), network))
        for name, label in LABELS.items()
        for strength in config.strengths.get(name, ())
    ]
    if config.logistic_regression:
        linear = neural_network(**{**network, "hidden": ()})
        settings.append(Setting(LOGISTIC_REGRESSION, float("nan"), linear))
    if not settings:
        raise ConfigError("the config has no settings to train; give strengths")
    return settings


def mean_weight_norms(weights: PyTree) -> dict[str, float]:
    """Mean weight norms of one network, as the notes of BinMask's Table 1 define them.

    The mean is over the entries of all kernels, the arrays with two or more dimensions. Biases do
    not count: BinMask masks kernels only, and so does the L1 term of ``NetworkOptions``.

    Args:
      weights: arrays of one network (one seed), or its ``Masked`` parameters, whose weights are
        multiplied by their masks first.

    Returns:
      ``l0``, the share, in [0, 1], of the weights with ``|w| >= 1e-4``; ``l1`` and ``l2``, the
      mean over the weights of ``|w|^p``, to the power of ``1/p``; at least 0.

    Raises:
      ConfigError: if there is no kernel.
    """
    if isinstance(weights, Masked):
        weights = masked_weights(weights)
    leaves = [np.asarray(leaf, np.float32) for leaf in jax.tree.leaves(weights)]
    kernels = [leaf.ravel() for leaf in leaves if leaf.ndim >= 2]
    if not kernels:
        raise ConfigError("there are no kernels; give weights with two or more dimensions")
    absolute = np.abs(np.concatenate(kernels))
    # Compared in float32, the type of the weights, so that a weight of 1e-4 counts.
    nonzero = absolute >= np.float32(NONZERO)
    absolute = absolute.astype(np.float64)
    return {
        "l0": float(nonzero.mean()),
        "l1": float(absolute.mean()),
        "l2": float(np.sqrt(np.square(absolute).mean())),
    }


def rows_of(setting: Setting, planned: fsjax.Plan) -> list[dict[str, Any]]:
    """Trains one setting in all trials; returns a row with :data:`COLUMNS` for each trial.

    AUCs, in [0, 1], and mean weight norms are those of the epoch with the highest validation AUC.
    """
    result, dataset = planned.fit()[0], planned.dataset
    X, y = dense_arrays(dataset)
    outputs = result.predict(X)
    # Not probabilities: if L2 has shrunk all weights, they are equal after rounding.
    margins = outputs[..., 1] - outputs[..., 0]

    def auc(row: int, which: np.ndarray) -> float:
        return float(jax.jit(roc_auc)(jnp.asarray(margins[row, which]), jnp.asarray(y[which])))

    def norms(row: int) -> dict[str, float]:
        return mean_weight_norms(jax.tree.map(lambda leaf: leaf[row], result.states.params))

    trials = zip(result.seeds, result.splits, result.best_epoch.tolist(), strict=True)
    return [
        {
            "method": setting.label,
            "strength": setting.strength,
            "trial": trial,
            "train_auc": auc(row, split.train),
            "valid_auc": float(result.history["valid/auc"][row, epoch - 1]),
            "test_auc": auc(row, split.test),
            **norms(row),
            "best_epoch": epoch,
        }
        for row, (trial, split, epoch) in enumerate(trials)
    ]


def run(config: ConfigDict, workdir: Path, progress: bool = True) -> pd.DataFrame:
    """Runs the comparison on one data set; writes and returns its table.

    Settings whose rows are in the folder are not trained again.

    Raises:
      ConfigError, DataError: for settings or data that do not fit, before anything is trained.
    """
    path = workdir / "regularization.csv"
    run_folder.check_workdir(config, workdir)
    settings = sweep(config)
    dataset = load_data(config)
    if dataset.num_classes != 2:
        raise DataError(
            f"{config.data.name} has {dataset.num_classes} classes; the area under the ROC curve "
            "needs 2"
        )
    splits = [
        make_split(dataset, config.data.split, seed=int(seed), fractions=config.data.fractions)
        for seed in config.seeds
    ]
    table = read_rows(path)
    for setting in settings:
        if len(rows_of_setting(table, setting.label, setting.strength)):
            continue
        # No columns are selected.
        options = {"split": splits, "num_features": dataset.num_features, "progress": progress}
        planned = make_plan(config, setting.method, dataset, **options)
        run_folder.begin_run(config, workdir)
        rows = pd.DataFrame(rows_of(setting, planned), columns=COLUMNS)
        table = add_rows(table, rows, path)
        if progress:
            means = rows[["valid_auc", "test_auc", "l0"]].mean()
            strength = "" if math.isnan(setting.strength) else f" {setting.strength:g}"
            print(
                f"{setting.label}{strength}: validation AUC {means['valid_auc']:.4f}, "
                f"test AUC {means['test_auc']:.4f}, L0 {means['l0']:.3f}"
            )
    write_text(workdir / "table.txt", figures.regularization_table(table) + "\n")
    run_folder.save_pictures({"regularization": figures.plot_regularization(table)}, workdir)
    run_folder.end_run(config, workdir)
    return table


def main(config: ConfigDict, workdir: Path, progress: bool) -> None:
    """Entry point, with the values of the flags."""
    run(config, workdir, progress=progress)
    print((workdir / "table.txt").read_text(), end="")
    print(f"picture: {workdir / 'regularization.png'}")


def start() -> None:
    """Entry point."""
    cli.run_config(main, config="configs/regularize.py:ehr_like", workdir="runs/regularize")
