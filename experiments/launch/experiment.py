"""Runs one experiment from its configuration: data, method, fit, evaluation, artifacts."""

import dataclasses
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from ml_collections import ConfigDict

import fsjax
from experiments import artifacts
from experiments.artifacts.files import read_json
from experiments.launch.run_folder import (
    begin_run,
    check_workdir,
    end_run,
    finished_result,
    save_pictures,
)
from fsjax import report
from fsjax.data import Dataset, load
from fsjax.engine.distributed import is_lead
from fsjax.errors import ConfigError
from fsjax.evaluation import SAMPLE_ROWS, check_protocols, evaluate, sampled_rows
from fsjax.methods import get_method
from fsjax.storage.file_lock import exclusive

#: Fields that a configuration must have.
FIELDS = ("seeds", "task", "num_features", "method", "data", "train", "evaluation")


def check_fields(config: ConfigDict) -> None:
    """Raises ConfigError for a configuration that lacks one of :data:`FIELDS`."""
    if missing := [name for name in FIELDS if name not in config]:
        raise ConfigError(
            f"the config lacks {', '.join(missing)}; configs/any.py makes one for any method"
        )


def build_method(config: ConfigDict) -> fsjax.Method:
    """Builds the method of ``config.method`` for ``config.num_features`` columns.

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


def load_data(config: ConfigDict) -> Dataset:
    """Loads the data set of ``config.data``."""
    options = dict(config.data.get("options", {}))
    if config.data.get("impute") is not None:
        options["impute"] = config.data.impute
    if config.data.get("dense"):
        options["dense"] = True
    dataset = load(config.data.name, config.data.dir, config.data.target, **options)
    # Checked after loading, as a download creates the folder.
    if config.data.dir and not Path(config.data.dir).expanduser().is_dir():
        raise ConfigError(
            f"data.dir={config.data.dir!r} does not exist, and {config.data.name!r} was found "
            "elsewhere; correct data.dir or omit it"
        )
    return dataset


def plan_options(config: ConfigDict) -> dict[str, Any]:
    """Options for :func:`fsjax.plan` from the ``seeds``, ``train`` and ``data`` of a config."""
    fields = ("split", "split_per_seed", "scaling", "valid_fraction", "noise_std")
    data = {name: config.data[name] for name in fields if name in config.data}
    return {"seeds": config.seeds, **data, **config.train}


def make_plan(
    config: ConfigDict, method: fsjax.Method, dataset: Dataset, **options: Any
) -> fsjax.Plan:
    """Plans a run of the configuration; ``options`` take precedence over its fields."""
    return fsjax.plan(method, dataset, **{**plan_options(config), **options})


def run_experiment(
    config: ConfigDict, workdir: str | Path, *, progress: bool = True
) -> dict[str, Any]:
    """Runs a configuration and writes its artifacts; returns the content of ``result.json``.

    If the folder holds the finished run of this configuration, its result is read; an unfinished
    run of it resumes from its last checkpoint.

    Raises:
      ConfigError, DataError, NonFiniteLossError: as :func:`fsjax.fit`, before any training
        where that is possible.
      ConfigError: if another process is using the folder.
    """
    with exclusive(workdir):
        return _run_experiment(config, Path(workdir), progress)


def _run_experiment(config: ConfigDict, workdir: Path, progress: bool) -> dict[str, Any]:
    check_fields(config)
    missing = [name for name in ("metrics.csv", "scores.npz") if not (workdir / name).exists()]
    if not missing and (earlier := finished_result(config, workdir, progress)) is not None:
        return earlier
    if missing and check_workdir(config, workdir) and progress:
        print(f"{workdir} lacks {' and '.join(missing)}; the run is repeated to write it")
    method = build_method(config)
    dataset = load_data(config)
    check_evaluation(config, method, dataset)
    started = time.perf_counter()
    planned = make_plan(
        config,
        method,
        dataset,
        task=config.task,
        num_features=config.num_features,
        progress=progress,
        checkpoint_dir=workdir / "checkpoints",
    )
    begin_run(config, workdir)
    result = planned.fit()[0]
    constant = int(result.constant_columns.max())
    if constant and progress:
        print(
            f"{constant} of {dataset.num_features} columns are constant in the training rows; "
            "they are never preferred"
        )
    result = evaluated(config, result, dataset)
    write_artifacts(result, dataset, workdir, config)
    end_run(config, workdir)
    if progress:
        print(f"wrote the results to {workdir} after {time.perf_counter() - started:.1f} s")
    return read_json(workdir / "result.json")


def check_evaluation(config: ConfigDict, method: fsjax.Method, dataset: Dataset) -> None:
    """Checks the fields of ``config.evaluation`` before anything is trained.

    Raises:
      ConfigError, DataError: as :func:`fsjax.evaluation.check_protocols`.
    """
    check_protocols(
        config.evaluation.protocols,
        config.evaluation.num_features,
        dataset.num_features,
        num_classes=dataset.num_classes,
        task=config.task,
        predicts=method.predict is not None,
        on_disk=dataset.table.on_disk,
        **_evaluation_options(config),
    )


def evaluated(
    config: ConfigDict, result: fsjax.FitResult, dataset: Dataset, **changes: Any
) -> fsjax.FitResult:
    """Adds the metrics of ``config.evaluation`` to a result.

    Args:
      changes: ``noise_std`` and ``scaling`` of the fit if they differ from the configuration's.
    """
    protocols, options = config.evaluation.protocols, _evaluation_options(config)
    fields = options | {"scaling": config.data.scaling} | changes
    metrics = evaluate(result, dataset, protocols, config.evaluation.num_features, **fields)
    judged_on = None
    if set(protocols) != {"embedded"}:
        judged_on = sampled_rows(dataset, result.splits[0], options["sample_rows"])
    return dataclasses.replace(result, metrics=metrics, judged_on=judged_on)


def _evaluation_options(config: ConfigDict) -> dict[str, Any]:
    """Options that :func:`check_evaluation` and :func:`evaluated` share."""
    return {
        "noise_std": config.data.noise_std,
        "retrain": config.evaluation.retrain,
        "sample_rows": config.evaluation.get("sample_rows", SAMPLE_ROWS),
    }


def split_and_noise(config: ConfigDict, setting: Mapping[str, Any] = {}) -> tuple[str, float]:
    """The protocol of the split and the added noise of a run, or of a setting of a sweep."""
    data = {"split": "paper", "noise_std": 0.0, **config.data, **setting}
    return data["split"], data["noise_std"]


def write_artifacts(
    result: fsjax.FitResult, dataset: Dataset, workdir: Path, config: ConfigDict
) -> None:
    """Writes metrics, scores and pictures, and last ``result.json``, which marks the end."""
    artifacts.write_metrics_csv(result, workdir / "metrics.csv")
    artifacts.write_scores(result, workdir / "scores.npz")
    if is_lead():
        save_pictures(_pictures(result, dataset), workdir)
    artifacts.write_result_json(result, workdir / "result.json", *split_and_noise(config))


def _pictures(result: fsjax.FitResult, dataset: Dataset) -> dict[str, Figure]:
    shape, names = dataset.image_shape, dataset.feature_names
    rows = dataset.X[result.splits[0].train] if shape else None
    mean = rows.mean(axis=0) if isinstance(rows, np.ndarray) else None
    pictures = {"selection": report.plot_selection(result, shape, dataset.image_order, names, mean)}
    if result.history:
        pictures["curves"] = report.plot_curves(result)
    if "train/lambda" in result.history and (result.history["train/lambda"][0] > 0).any():
        pictures["path"] = report.plot_path(result)
    if len(result.seeds) > 1:
        pictures["stability"] = report.plot_stability(result, names)
    return pictures
