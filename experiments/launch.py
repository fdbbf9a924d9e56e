"""One experiment from a configuration: data, method, fit, artifacts."""

import dataclasses
import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import ml_collections
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

import fsjax
from fsjax import report
from fsjax.atomic import write_text
from fsjax.data import load
from fsjax.data.dataset import Dataset
from fsjax.errors import ConfigError
from fsjax.evaluation import check_protocols, evaluate
from fsjax.methods import get_method

#: Artifacts of all launchers: a folder with one of them and no ``config.json`` is somebody else's.
WRITTEN = (
    "result.json",
    "checkpoints",
    "metrics.csv",
    "scores.npz",
    "curves.png",
    "selection.png",
    "stability.png",
    "path.png",
    "accuracy.csv",
    "accuracy.png",
    "sparsity.csv",
    "regularization.csv",
)


def build_method(config: ml_collections.ConfigDict) -> fsjax.Method:
    """The method of ``config.method`` for ``config.num_features`` columns.

    Raises:
      ConfigError: for an unknown method or a field that it does not have.
    """
    fields = dict(config.method)
    name = fields.pop("name")
    if name is None:
        raise ConfigError(
            "config.method.name is empty; name a method in the variant, as in "
            "configs/any.py:ip_cae, or as --config.method.name=module:function"
        )
    build = get_method(name)
    if build.registration.takes_number:
        fields["num_features"] = config.num_features
    try:
        return build(**fields)
    except TypeError as error:
        raise ConfigError(
            f"config.method does not fit {name}: {error}; configs/any.py:{name} has its fields"
        ) from None


def load_data(config: ml_collections.ConfigDict) -> Dataset:
    """The data set of ``config.data``."""
    options = dict(config.data.get("options", {}))
    if config.data.get("impute") is not None:
        options["impute"] = config.data.impute
    return load(config.data.name, config.data.dir, config.data.target, **options)


def settings(config: ml_collections.ConfigDict) -> dict[str, Any]:
    """The configuration as plain JSON values."""
    return json.loads(config.to_json())


def check_workdir(config: ml_collections.ConfigDict, workdir: Path) -> bool:
    """Whether the folder already holds the finished run of this configuration.

    An unfinished run of the same configuration is continued.

    Raises:
      ConfigError: if the folder is a file or holds another run.
    """
    if workdir.exists() and not workdir.is_dir():
        raise ConfigError(f"workdir {workdir} is a file; name a folder")
    found = workdir / "config.json"
    if not found.exists():
        if there := [name for name in WRITTEN if (workdir / name).exists()]:
            raise ConfigError(
                f"workdir {workdir} has files of another origin ({', '.join(there)}), which would "
                "be replaced; choose another folder"
            )
        return False
    try:
        there = json.loads(found.read_text())
        for added in ("versions", "device", "git_revision"):
            there.pop(added)
    except (ValueError, KeyError, AttributeError, TypeError):
        raise ConfigError(
            f"{found} is not a configuration of fsjax; choose another workdir"
        ) from None
    if differing := _differences(there, settings(config)):
        raise ConfigError(
            f"workdir {workdir} holds another run ({'; '.join(differing[:3])}); choose another "
            "folder, or remove it to start anew"
        )
    return (workdir / "result.json").exists()


def _differences(there: Mapping[str, Any], here: Mapping[str, Any], prefix: str = "") -> list[str]:
    told = []
    for name in sorted({*there, *here}):
        old, new = there.get(name), here.get(name)
        if isinstance(old, Mapping) and isinstance(new, Mapping):
            told += _differences(old, new, f"{prefix}{name}.")
        elif old != new:
            told.append(f"{prefix}{name} is {old!r} there and {new!r} here")
    return told


def finished(
    config: ml_collections.ConfigDict, workdir: Path, progress: bool
) -> dict[str, Any] | None:
    """``result.json`` of a folder that holds the finished run of this configuration.

    Raises:
      ConfigError: as :func:`check_workdir`.
    """
    if not check_workdir(config, workdir):
        return None
    if progress:
        print(f"{workdir} holds this finished run; its results:")
    return json.loads((workdir / "result.json").read_text())


def begin(config: ml_collections.ConfigDict, workdir: Path) -> None:
    """Writes ``config.json``, once everything was checked: a mistake leaves nothing behind."""
    report.write_config_json(settings(config), workdir / "config.json")


def read_table(path: Path) -> pd.DataFrame:
    """The rows of a file that :func:`add_rows` wrote; none where there is no file."""
    return pd.read_csv(path) if path.exists() else pd.DataFrame()


def add_rows(table: pd.DataFrame, rows: Any, path: Path) -> pd.DataFrame:
    """The table with further rows, which is written as well."""
    new = pd.DataFrame(rows)
    # Tables without rows have no types either.
    table = pd.concat([part for part in (table, new) if len(part)] or [new], ignore_index=True)
    write_text(path, table.to_csv(index=False))
    return table


def of_setting(table: pd.DataFrame, method: str, strength: float) -> pd.DataFrame:
    """The rows of a method at one strength, which is NaN where the method has none."""
    if table.empty:
        return table
    # What was read from a file may differ in the last bit.
    there = table["strength"].to_numpy(np.float64)
    same = np.isclose(there, strength, rtol=1e-9, atol=0.0, equal_nan=True)
    return table[(table["method"] == method) & same]


def run_experiment(
    config: ml_collections.ConfigDict, workdir: str | Path, *, progress: bool = True
) -> dict[str, Any]:
    """Runs a configuration and leaves its artifacts in a folder.

    Args:
      config: see ``configs/``.
      workdir: the folder. One that holds the finished run of this configuration is only read;
        one with an unfinished run of it is continued from its last checkpoint.
      progress: whether to show the progress bar and notes.

    Returns:
      The content of ``result.json``.

    Raises:
      ConfigError, DataError, NonFiniteLossError: as :func:`fsjax.fit`, before any training
        where that is possible.
    """
    workdir = Path(workdir)
    if (there := finished(config, workdir, progress)) is not None:
        return there
    method = build_method(config)
    dataset = load_data(config)
    data, judged = config.data, config.evaluation
    check_protocols(
        judged.protocols,
        judged.num_features,
        dataset.num_features,
        num_classes=dataset.num_classes,
        noise_std=data.noise_std,
        retrain=judged.retrain,
        task=config.task,
        predicts=method.predict is not None,
    )
    started = time.perf_counter()
    fields = ("split", "split_per_seed", "scaling", "valid_fraction", "noise_std")
    planned = fsjax.plan(
        method,
        dataset,
        seeds=config.seeds,
        task=config.task,
        num_features=config.num_features,
        progress=progress,
        checkpoint_dir=workdir / "checkpoints",
        **{name: data[name] for name in fields},
        **config.train,
    )
    begin(config, workdir)
    result = planned.fit()[0]
    constant = int(result.constant_columns.max())
    if constant and progress:
        print(
            f"{constant} of {dataset.num_features} columns are constant in the training rows; "
            "they are never preferred"
        )
    metrics = evaluate(
        result,
        dataset,
        judged.protocols,
        judged.num_features,
        noise_std=data.noise_std,
        scaling=data.scaling,
        retrain=judged.retrain,
    )
    result = dataclasses.replace(result, metrics=metrics)
    write_artifacts(result, dataset, workdir)
    if progress:
        print(f"artifacts in {workdir} after {time.perf_counter() - started:.1f} s")
    return json.loads((workdir / "result.json").read_text())


def write_artifacts(result: fsjax.FitResult, dataset: Dataset, workdir: Path) -> None:
    """All but ``config.json`` and the checkpoints; ``result.json`` last, to mark the end."""

    def save(figure: Figure, name: str) -> None:
        report.save_figure(figure, workdir / f"{name}.png")

    report.write_metrics_csv(result, workdir / "metrics.csv")
    report.write_scores(result, workdir / "scores.npz")
    if result.history:
        save(report.plot_curves(result), "curves")
    if "train/lambda" in result.history and (result.history["train/lambda"][0] > 0).any():
        save(report.plot_path(result), "path")
    shape, names = dataset.image_shape, dataset.feature_names
    mean = dataset.X[result.splits[0].train].mean(axis=0) if shape else None
    save(report.plot_selection(result, shape, dataset.image_order, names, mean), "selection")
    if len(result.seeds) > 1:
        save(report.plot_stability(result, names), "stability")
    report.write_result_json(result, workdir / "result.json")
