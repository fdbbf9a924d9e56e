"""One experiment from a configuration: data, method, fit, artifacts."""

import dataclasses
import json
import shlex
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from ml_collections import ConfigDict

import fsjax
from experiments import artifacts
from experiments.launch import manifest
from experiments.launch.cli import is_launcher
from fsjax import report
from fsjax.data import Dataset, load
from fsjax.distributed import is_lead
from fsjax.errors import ConfigError
from fsjax.evaluation import SAMPLE_ROWS, check_protocols, evaluate, sampled_rows
from fsjax.methods import get_method
from fsjax.storage.atomic_files import remove_leftovers
from fsjax.storage.file_lock import exclusive
from fsjax.storage.identity import Identity

TABLES = (
    "metrics.csv",
    "accuracy.csv",
    "sparsity.csv",
    "layers.csv",
    "regularization.csv",
    "sweep.csv",
    "table.txt",
    "sizes.json",
)
PICTURES = (
    "curves",
    "selection",
    "stability",
    "path",
    "accuracy",
    "accuracy_sparsity",
    "layer_sparsity",
    "regularization",
    "sweep",
)

#: To look at, and for the page.
FORMATS = ("png", "svg")

#: Artifacts of all launchers: a folder with one of them and no ``config.json`` is somebody else's.
WRITTEN = (
    "result.json",
    "report.html",
    "checkpoints",
    "cells",
    "scores.npz",
    *TABLES,
    *(f"{name}.{suffix}" for name in PICTURES for suffix in FORMATS),
)


#: What the configuration of a run has.
FIELDS = ("seeds", "task", "num_features", "method", "data", "train", "evaluation")


def check_fields(config: ConfigDict) -> None:
    """ConfigError for a configuration of something else, or one that lacks a field."""
    if missing := [name for name in FIELDS if name not in config]:
        raise ConfigError(
            f"the config lacks {', '.join(missing)}; configs/any.py makes one for any method"
        )


def build_method(config: ConfigDict) -> fsjax.Method:
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


def load_data(config: ConfigDict) -> Dataset:
    """The data set of ``config.data``."""
    options = dict(config.data.get("options", {}))
    if config.data.get("impute") is not None:
        options["impute"] = config.data.impute
    if config.data.get("dense"):
        options["dense"] = True
    dataset = load(config.data.name, config.data.dir, config.data.target, **options)
    # A download makes the folder.
    if config.data.dir and not Path(config.data.dir).expanduser().is_dir():
        raise ConfigError(
            f"data.dir={config.data.dir!r} does not exist, and {config.data.name!r} was found "
            "elsewhere; correct it, or leave it out"
        )
    return dataset


def plan_options(config: ConfigDict) -> dict[str, Any]:
    """The options of :func:`fsjax.plan` in a configuration: its seeds, ``train`` and ``data``."""
    fields = ("split", "split_per_seed", "scaling", "valid_fraction", "noise_std")
    data = {name: config.data[name] for name in fields if name in config.data}
    return {"seeds": config.seeds, **data, **config.train}


def make_plan(
    config: ConfigDict, method: fsjax.Method, dataset: Dataset, **options: Any
) -> fsjax.Plan:
    """A plan with what the configuration says, but for the options."""
    return fsjax.plan(method, dataset, **{**plan_options(config), **options})


def check_workdir(config: ConfigDict, workdir: Path) -> bool:
    """Whether the folder already holds the finished run of this configuration.

    An unfinished run of the same configuration is continued.

    Raises:
      ConfigError: if the folder is a file or holds another run.
    """
    if workdir.exists() and not workdir.is_dir():
        raise ConfigError(f"workdir {workdir} is a file; name a folder")
    path = workdir / "config.json"
    # The manifest tells the configuration where that file is damaged.
    earlier = manifest.identity_of(workdir)
    if earlier is None and path.exists():
        earlier = _identity_of_file(path)
    elif earlier is None and (there := [one for one in WRITTEN if (workdir / one).exists()]):
        raise ConfigError(
            f"workdir {workdir} has files of another origin ({', '.join(there)}), which would "
            "be replaced; choose another folder"
        )
    if earlier is not None and (changes := identity(config).changes(earlier)):
        raise ConfigError(
            f"workdir {workdir} holds another run ({changes}); choose another folder, or remove it "
            "to start anew"
        )
    return (workdir / "result.json").exists() and not manifest.damaged(workdir)


def identity(config: ConfigDict) -> Identity:
    """What the run of a configuration is."""
    return _identity_of_fields(json.loads(config.to_json()))


def _identity_of_fields(fields: dict[str, Any]) -> Identity:
    # Where a run is trained may change, as the device; it may go on elsewhere.
    fields.get("train", {}).pop("batch_devices", None)
    return Identity(settings=fields)


def _identity_of_file(path: Path) -> Identity:
    """That of a ``config.json``; ConfigError for any other file."""
    try:
        fields = json.loads(path.read_text())
        for added in ("versions", "device", "git_revision"):
            fields.pop(added)
        for added in ("command", "continued"):
            fields.pop(added, None)
        return _identity_of_fields(fields)
    except (ValueError, KeyError, AttributeError, TypeError):
        raise ConfigError(
            f"{path} is not a configuration of fsjax; choose another workdir"
        ) from None


def finished(config: ConfigDict, workdir: Path, progress: bool) -> dict[str, Any] | None:
    """``result.json`` of a folder that holds the finished run of this configuration.

    Raises:
      ConfigError: as :func:`check_workdir`.
    """
    if not check_workdir(config, workdir):
        return None
    result = read_result(workdir)
    if not (workdir / "report.html").exists():
        artifacts.write_report(workdir)
    if progress:
        print(f"{workdir} holds this finished run; its results:")
    return result


def read_result(workdir: Path) -> dict[str, Any]:
    """``result.json`` of a folder.

    Raises:
      ConfigError: if it is damaged.
    """
    path = workdir / "result.json"
    try:
        return json.loads(path.read_text())
    except ValueError as error:
        raise ConfigError(
            f"{path} is damaged ({error}); remove it, and the same command makes it anew"
        ) from None


def begin(config: ConfigDict, workdir: Path) -> None:
    """Writes ``config.json``, once everything was checked: a mistake leaves nothing behind.

    Of a run that is continued it keeps where it began. What a finished run has lost goes, with its
    manifest, and is made anew.
    """
    if lost := manifest.damaged(workdir):
        print(f"{workdir}: made anew, as gone or not what was written: {', '.join(lost)}")
    for name in (*lost, manifest.NAME):
        (workdir / name).unlink(missing_ok=True)
    remove_leftovers(workdir)
    path = workdir / "config.json"
    earlier = json.loads(path.read_text()) if path.exists() else None
    artifacts.write_config_json(json.loads(config.to_json()), path, _command(), earlier)


def end(config: ConfigDict, workdir: Path) -> None:
    """Writes the page, and the manifest of all else: the run is finished."""
    artifacts.write_report(workdir)
    names = {"config.json", *WRITTEN} - {"report.html"}
    manifest.write_manifest(workdir, identity(config), names)


def _command() -> str | None:
    """The command line, if it is that of a launcher."""
    if not is_launcher():
        return None
    module = sys.modules["__main__"].__spec__
    assert module is not None  # as is_launcher says
    return shlex.join(["python", "-m", module.name, *sys.argv[1:]])


def save_pictures(pictures: Mapping[str, Figure], workdir: Path) -> None:
    """Writes figures by their names, in all :data:`FORMATS`; one of several processes does so."""
    if not is_lead():
        return
    for name, figure in pictures.items():
        for suffix in FORMATS:
            report.save_figure(figure, workdir / f"{name}.{suffix}")


def of_setting(table: pd.DataFrame, method: str, strength: float) -> pd.DataFrame:
    """The rows of a method at one strength, which is NaN where the method has none."""
    if table.empty:
        return table
    # What was read from a file may differ in the last bit.
    there = table["strength"].to_numpy(np.float64)
    same = np.isclose(there, strength, rtol=1e-9, atol=0.0, equal_nan=True)
    return table[(table["method"] == method) & same]


def run_experiment(
    config: ConfigDict, workdir: str | Path, *, progress: bool = True
) -> dict[str, Any]:
    """Runs a configuration and leaves its artifacts in a folder; the content of ``result.json``.

    A folder that holds the finished run of this configuration is only read; one with an unfinished
    run of it is continued from its last checkpoint.

    Raises:
      ConfigError, DataError, NonFiniteLossError: as :func:`fsjax.fit`, before any training
        where that is possible.
      ConfigError: if another process is at work in the folder.
    """
    with exclusive(workdir):
        return _run_experiment(config, Path(workdir), progress)


def _run_experiment(config: ConfigDict, workdir: Path, progress: bool) -> dict[str, Any]:
    check_fields(config)
    lost = [name for name in ("metrics.csv", "scores.npz") if not (workdir / name).exists()]
    if not lost and (there := finished(config, workdir, progress)) is not None:
        return there
    if lost and check_workdir(config, workdir) and progress:
        print(f"{workdir} lacks {' and '.join(lost)}, which are made anew")
    method = build_method(config)
    dataset = load_data(config)
    check_evaluation(config, method, dataset)
    started = time.perf_counter()
    about = {"task": config.task, "num_features": config.num_features}
    saved = {"progress": progress, "checkpoint_dir": workdir / "checkpoints"}
    planned = make_plan(config, method, dataset, **about, **saved)
    begin(config, workdir)
    result = planned.fit()[0]
    constant = int(result.constant_columns.max())
    if constant and progress:
        print(
            f"{constant} of {dataset.num_features} columns are constant in the training rows; "
            "they are never preferred"
        )
    result = evaluated(config, result, dataset)
    write_artifacts(result, dataset, workdir)
    end(config, workdir)
    if progress:
        print(f"artifacts in {workdir} after {time.perf_counter() - started:.1f} s")
    return read_result(workdir)


def check_evaluation(config: ConfigDict, method: fsjax.Method, dataset: Dataset) -> None:
    """Checks what ``config.evaluation`` asks for, before anything is trained.

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
        **_evaluation_options(config),
    )


def evaluated(
    config: ConfigDict, result: fsjax.FitResult, dataset: Dataset, **changes: Any
) -> fsjax.FitResult:
    """The result with the metrics that ``config.evaluation`` asks for.

    Args:
      config: the configuration.
      result: the fit.
      dataset: its data.
      changes: ``noise_std`` and ``scaling``, where those of the fit are not the configuration's.
    """
    protocols, options = config.evaluation.protocols, _evaluation_options(config)
    fields = options | {"scaling": config.data.scaling} | changes
    metrics = evaluate(result, dataset, protocols, config.evaluation.num_features, **fields)
    judged_on = None
    if set(protocols) != {"embedded"}:
        judged_on = sampled_rows(dataset, result.splits[0], options["sample_rows"])
    return dataclasses.replace(result, metrics=metrics, judged_on=judged_on)


def _evaluation_options(config: ConfigDict) -> dict[str, Any]:
    """What checks and evaluation are both given."""
    return {
        "noise_std": config.data.noise_std,
        "retrain": config.evaluation.retrain,
        "sample_rows": config.evaluation.get("sample_rows", SAMPLE_ROWS),
    }


def write_artifacts(result: fsjax.FitResult, dataset: Dataset, workdir: Path) -> None:
    """All but ``config.json``, checkpoints and page; ``result.json`` last, to mark the end."""
    artifacts.write_metrics_csv(result, workdir / "metrics.csv")
    artifacts.write_scores(result, workdir / "scores.npz")
    if is_lead():
        save_pictures(_pictures(result, dataset), workdir)
    artifacts.write_result_json(result, workdir / "result.json")


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


def recorded_accuracy(workdir: Path) -> np.ndarray | None:
    """Test accuracy in percent ``(S, E)`` after each epoch, from a run's ``metrics.csv``.

    Epochs that were not recorded are NaN; ``None`` for a run that recorded no more than one.
    """
    path = workdir / "metrics.csv"
    if not path.exists():
        return None
    table = pd.read_csv(path)
    table = table[(table["split"] == "test") & (table["metric"] == "accuracy")]
    if table["epoch"].nunique() < 2:
        return None
    by_epoch = table.pivot(index="seed", columns="epoch", values="value")
    return by_epoch.reindex(columns=range(1, table["epoch"].max() + 1)).to_numpy(float)
