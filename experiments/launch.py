"""One experiment from a configuration: data, method, fit, artifacts."""

from __future__ import annotations

import dataclasses
import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import ml_collections

import fsjax
from fsjax import report
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
    options = {} if config.data.impute is None else {"impute": config.data.impute}
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
        there = [name for name in WRITTEN if (workdir / name).exists()]
        if there:
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
    here = settings(config)
    differing = _differences(there, here)
    if differing:
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
    if check_workdir(config, workdir):
        if progress:
            print(f"{workdir} holds this finished run; its results:")
        return json.loads((workdir / "result.json").read_text())
    method = build_method(config)
    dataset = load_data(config)
    protocols, further = config.evaluation.protocols, config.evaluation.num_features
    check_protocols(
        protocols,
        further,
        dataset.num_features,
        num_classes=dataset.num_classes,
        noise_std=config.data.noise_std,
        retrain=config.evaluation.retrain,
        task=config.task,
        predicts=method.predict is not None,
    )
    started = time.perf_counter()
    planned = fsjax.plan(
        method,
        dataset,
        seeds=config.seeds,
        task=config.task,
        num_features=config.num_features,
        split=config.data.split,
        split_per_seed=config.data.split_per_seed,
        scaling=config.data.scaling,
        valid_fraction=config.data.valid_fraction,
        noise_std=config.data.noise_std,
        progress=progress,
        checkpoint_dir=workdir / "checkpoints",
        **config.train,
    )
    # Written only once everything was checked, so that a mistake leaves nothing behind.
    workdir.mkdir(parents=True, exist_ok=True)
    report.write_config_json(settings(config), workdir / "config.json")
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
        protocols,
        further,
        noise_std=config.data.noise_std,
        scaling=config.data.scaling,
        retrain=config.evaluation.retrain,
    )
    result = dataclasses.replace(result, metrics=metrics)
    write_artifacts(result, dataset, workdir)
    if progress:
        print(f"artifacts in {workdir} after {time.perf_counter() - started:.1f} s")
    return json.loads((workdir / "result.json").read_text())


def write_artifacts(result: fsjax.FitResult, dataset: Dataset, workdir: Path) -> None:
    """All but ``config.json`` and the checkpoints; ``result.json`` last, to mark the end."""
    report.write_metrics_csv(result, workdir / "metrics.csv")
    report.write_scores(result, workdir / "scores.npz")
    if result.history:
        report.save_figure(report.plot_curves(result), workdir / "curves.png")
    if "train/lambda" in result.history and (result.history["train/lambda"][0] > 0).any():
        report.save_figure(report.plot_path(result), workdir / "path.png")
    background = None
    if dataset.image_shape:
        background = dataset.X[result.splits[0].train].mean(axis=0)
    figure = report.plot_selection(
        result, dataset.image_shape, dataset.image_order, dataset.feature_names, background
    )
    report.save_figure(figure, workdir / "selection.png")
    if len(result.seeds) > 1:
        figure = report.plot_stability(result, dataset.feature_names)
        report.save_figure(figure, workdir / "stability.png")
    report.write_result_json(result, workdir / "result.json")
