"""Compares regularizers of a network by AUC and weight norms (BinMask, section 4.3, Table 1).

    python -m experiments.regularize --config=configs/regularize.py:ehr_like \
        --workdir=runs/regularize

For every method and strength, eight trials with splits and weights of their own. The folder gets
``regularization.csv``, ``table.txt``, ``regularization.png`` and ``config.json``. The command goes
on where it was stopped: strengths whose rows are in ``regularization.csv`` are not trained again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import jax
import jax.numpy as jnp
import ml_collections
import numpy as np
import pandas as pd

import fsjax
from experiments import cli
from experiments.figures.regularization import plot_regularization, regularization_table
from experiments.launch import check_workdir, settings
from experiments.statistics.norms import mean_weight_norms
from fsjax import report
from fsjax.atomic import write_text
from fsjax.data import load, make_split
from fsjax.data.dataset import Dataset
from fsjax.errors import ConfigError, DataError, nearest
from fsjax.methods import binmask, neural_network
from fsjax.tasks import roc_auc

#: The paper's names of the methods, in its order.
LABELS: Final = {"binmask": "BinMask", "l1": "L1", "l2": "L2", "dropout": "Dropout"}
LOGISTIC_REGRESSION: Final = "LR"

COLUMNS: Final = (
    "method",
    "strength",
    "trial",
    "train_auc",
    "valid_auc",
    "test_auc",
    "l0",
    "l1",
    "l2",
    "best_epoch",
)


class Setting(NamedTuple):
    """A method at one strength.

    Attributes:
      label: name of the method in the table.
      strength: its coefficient or rate; NaN for logistic regression.
      method: what is trained.
    """

    label: str
    strength: float
    method: fsjax.Method


def build(name: str, strength: float, network: Mapping[str, Any]) -> fsjax.Method:
    """A network under one regularizer.

    Args:
      name: a key of :data:`LABELS`.
      strength: BinMask's lambda, the weight of the L1 term, the weight decay or the dropout rate.
      network: options of :class:`fsjax.methods.shared.network.NetworkOptions`.

    Raises:
      ConfigError: for a value outside its range.
    """
    if name == "binmask":
        return binmask(masked="weights", strength=strength, **network)
    option = {"l1": "l1", "l2": "weight_decay", "dropout": "dropout"}[name]
    return neural_network(**{**network, option: strength})


def sweep(config: ml_collections.ConfigDict) -> list[Setting]:
    """All settings of a configuration, in the order in which they are trained.

    Raises:
      ConfigError: if there are none, for an unknown method, or a value outside its range.
    """
    for name in config.strengths:
        if name not in LABELS:
            raise ConfigError(f"strengths has {name!r}: {nearest(name, LABELS)}")
    network = dict(config.network)
    found = [
        Setting(label, float(strength), build(name, float(strength), network))
        for name, label in LABELS.items()
        for strength in config.strengths.get(name, ())
    ]
    if config.logistic_regression:
        linear = neural_network(**{**network, "hidden": ()})
        found.append(Setting(LOGISTIC_REGRESSION, float("nan"), linear))
    if not found:
        raise ConfigError("there is nothing to train; give strengths")
    return found


def rows_of(setting: Setting, planned: fsjax.Plan) -> list[dict[str, Any]]:
    """Trains one setting in all trials.

    Args:
      setting: what it is.
      planned: of its method.

    Returns:
      A row with :data:`COLUMNS` for each trial: AUCs in [0, 1] and mean weight norms at the epoch
      with the highest validation AUC.
    """
    result, dataset = planned.fit()[0], planned.dataset
    outputs = result.predict(dataset.X)
    # Not through probabilities, as those of a network that L2 has all but emptied round alike.
    margins = outputs[..., 1] - outputs[..., 0]
    rows = []
    for row, (trial, split) in enumerate(zip(result.seeds, result.splits, strict=True)):
        epoch = int(result.best_epoch[row])
        params = jax.tree.map(lambda leaf, row=row: leaf[row], result.states.params)
        rows.append(
            {
                "method": setting.label,
                "strength": setting.strength,
                "trial": trial,
                "train_auc": auc(margins[row], dataset, split.train),
                "valid_auc": float(result.history["valid/auc"][row, epoch - 1]),
                "test_auc": auc(margins[row], dataset, split.test),
                **mean_weight_norms(params),
                "best_epoch": epoch,
            }
        )
    return rows


def auc(margins: np.ndarray, dataset: Dataset, rows: np.ndarray) -> float:
    """Area under the ROC curve, in [0, 1], on some rows of a data set.

    Args:
      margins: ``(N,)``, of all rows; larger for class 1.
      dataset: N rows, two classes.
      rows: the numbers of those that count.
    """
    return float(roc_auc(jnp.asarray(margins[rows]), jnp.asarray(dataset.y[rows])))


def run(
    config: ml_collections.ConfigDict, workdir: str | Path, *, progress: bool = True
) -> pd.DataFrame:
    """The comparison on one data set; returns its table and leaves it in a folder.

    Args:
      config: see ``configs/regularize.py``.
      workdir: the folder; settings whose rows are there already are not trained again.
      progress: whether to show progress bars and notes.

    Raises:
      ConfigError, DataError: for settings or data that do not fit, before anything is trained.
    """
    workdir = Path(workdir)
    path = workdir / "regularization.csv"
    check_workdir(config, workdir)
    wanted = sweep(config)
    dataset = load_two_classes(config)
    splits = [
        make_split(dataset, config.data.split, seed=int(seed), fractions=config.data.fractions)
        for seed in config.seeds
    ]
    table = read_table(path)
    for setting in wanted:
        if _is_there(setting, table):
            continue
        planned = fsjax.plan(
            setting.method,
            dataset,
            seeds=config.seeds,
            split=splits,
            scaling=config.data.scaling,
            # Nothing is selected.
            num_features=dataset.num_features,
            progress=progress,
            **config.train,
        )
        # Only once everything was checked, so that a mistake leaves nothing behind.
        workdir.mkdir(parents=True, exist_ok=True)
        report.write_config_json(settings(config), workdir / "config.json")
        rows = rows_of(setting, planned)
        table = pd.DataFrame([*table.to_dict("records"), *rows], columns=COLUMNS)
        write_text(path, table.to_csv(index=False))
        if progress:
            print(_note(setting, rows))
    write_text(workdir / "table.txt", regularization_table(table) + "\n")
    report.save_figure(plot_regularization(table), workdir / "regularization.png")
    return table


def load_two_classes(config: ml_collections.ConfigDict) -> Dataset:
    """The data set of ``config.data``.

    Raises:
      DataError: if it cannot be loaded, or has another number of classes than two.
    """
    data = config.data
    dataset = load(data.name, data.dir, data.target, **data.options)
    if dataset.num_classes != 2:
        raise DataError(
            f"{data.name} has {dataset.num_classes} classes; the area under the ROC curve needs 2"
        )
    return dataset


def read_table(path: Path) -> pd.DataFrame:
    """The rows of ``regularization.csv``; none where there is no file."""
    if not path.exists():
        return pd.DataFrame(columns=COLUMNS)
    return pd.read_csv(path)


def _is_there(setting: Setting, table: pd.DataFrame) -> bool:
    own = table.loc[table["method"] == setting.label, "strength"].to_numpy(np.float64)
    return bool(np.isclose(own, setting.strength, rtol=1e-9, atol=0.0, equal_nan=True).any())


def _note(setting: Setting, rows: Sequence[Mapping[str, Any]]) -> str:
    means = {name: np.mean([row[name] for row in rows]) for name in ("valid_auc", "test_auc", "l0")}
    return (
        f"{setting.label} {setting.strength:g}: validation AUC {means['valid_auc']:.4f}, test AUC "
        f"{means['test_auc']:.4f}, L0 {means['l0']:.3f}"
    )


def main(config: ml_collections.ConfigDict, workdir: Path, progress: bool) -> None:
    """Entry point, with the values of the flags."""
    run(config, workdir, progress=progress)
    print((workdir / "table.txt").read_text(), end="")
    print(f"picture: {workdir / 'regularization.png'}")


if __name__ == "__main__":
    cli.run_config(main, "runs/regularize", "configs/regularize.py:ehr_like")
