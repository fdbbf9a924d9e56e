"""The folder of a run: whether it holds one, how it begins, and how it ends."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from ml_collections import ConfigDict

from experiments import artifacts
from experiments.launch import checksums
from experiments.launch.cli import is_launcher
from fsjax import report
from fsjax.distributed import is_lead
from fsjax.errors import ConfigError
from fsjax.storage.atomic_files import remove_leftovers
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

#: File formats of pictures.
FORMATS = ("png", "svg")

#: Artifacts of all launchers; a folder that has some but no ``config.json`` is somebody else's.
WRITTEN = (
    "result.json",
    "report.html",
    "checkpoints",
    "cells",
    "scores.npz",
    *TABLES,
    *(f"{name}.{suffix}" for name in PICTURES for suffix in FORMATS),
)


def check_workdir(config: ConfigDict, workdir: Path) -> bool:
    """Whether the folder already holds the finished run of this configuration.

    An unfinished run of the same configuration is continued.

    Raises:
      ConfigError: if the folder is a file or holds another run.
    """
    if workdir.exists() and not workdir.is_dir():
        raise ConfigError(f"workdir {workdir} is a file; name a folder")
    path = workdir / "config.json"
    # Which also tell the configuration if that file is damaged.
    earlier = checksums.identity_of(workdir)
    if earlier is None and path.exists():
        earlier = _identity_of_file(path)
    elif earlier is None and (names := [name for name in WRITTEN if (workdir / name).exists()]):
        raise ConfigError(
            f"workdir {workdir} has files that are not of fsjax ({', '.join(names)}) and would "
            "be replaced; choose another folder"
        )
    if earlier is not None and (changes := identity(config).changes(earlier)):
        raise ConfigError(
            f"workdir {workdir} holds another run ({changes}); choose another folder, or remove it "
            "to start again"
        )
    return (workdir / "result.json").exists() and not checksums.damaged(workdir)


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


def finished_result(config: ConfigDict, workdir: Path, progress: bool) -> dict[str, Any] | None:
    """``result.json`` if the folder holds the finished run of this configuration.

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
            f"{path} is damaged ({error}); remove it, and the same command writes it again"
        ) from None


def begin_run(config: ConfigDict, workdir: Path) -> None:
    """Writes ``config.json``, once everything was checked: a mistake leaves nothing behind.

    A continued run keeps the record of where it began. Of a finished run with damaged files, these
    and its checksums are removed, to be written again.
    """
    if names := checksums.damaged(workdir):
        print(f"{workdir}: missing or damaged, and made again: {', '.join(names)}")
    for name in names:
        (workdir / name).unlink(missing_ok=True)
    checksums.remove_checksums(workdir)
    remove_leftovers(workdir)
    path = workdir / "config.json"
    earlier = json.loads(path.read_text()) if path.exists() else None
    artifacts.write_config_json(json.loads(config.to_json()), path, _command(), earlier)


def end_run(config: ConfigDict, workdir: Path) -> None:
    """Writes the page, and the checksums of everything else: the run is finished."""
    artifacts.write_report(workdir)
    names = {"config.json", *WRITTEN} - {"report.html"}
    checksums.write_checksums(workdir, identity(config), names)


def _command() -> str | None:
    """The command line, if it is that of a launcher."""
    if not is_launcher():
        return None
    module = sys.modules["__main__"].__spec__
    assert module is not None  # as is_launcher says
    return shlex.join(["python", "-m", module.name, *sys.argv[1:]])


def save_pictures(pictures: Mapping[str, Figure], workdir: Path) -> None:
    """Writes figures by name, in all :data:`FORMATS`; on process 0 alone."""
    if not is_lead():
        return
    for name, figure in pictures.items():
        for suffix in FORMATS:
            report.save_figure(figure, workdir / f"{name}.{suffix}")


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
