"""The workdir of a run: checks what it holds, and begins and ends a run in it."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from ml_collections import ConfigDict

from experiments import artifacts
from experiments.artifacts.files import read_json, read_table
from experiments.launch import checksums
from experiments.launch.cli import is_launcher
from fsjax import report
from fsjax.engine.distributed import is_lead
from fsjax.errors import ConfigError
from fsjax.storage.atomic_files import remove_leftovers
from fsjax.storage.identity import Identity

TABLES = (
    "metrics.csv", "accuracy.csv", "sparsity.csv", "layers.csv", "regularization.csv",
    "sweep.csv", "table.txt", "sizes.json",
)  # fmt: skip
PICTURES = (
    "curves", "selection", "stability", "path", "accuracy", "accuracy_sparsity",
    "layer_sparsity", "regularization", "sweep",
)  # fmt: skip

#: The checksums of a table that is given by a path, and of own code, in ``config.json``.
_TABLE, _CODE = "sha256 of data.name", "sha256 of the files of method.name and task"

#: File formats of pictures.
FORMATS = ("png", "svg")

#: Artifacts of all launchers; a folder with any of them but no ``config.json`` is not a workdir.
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

    A folder that is empty or holds an unfinished run of this configuration is accepted.

    Raises:
      ConfigError: if the path is a file, or the folder holds another run or other files.
    """
    if workdir.exists() and not workdir.is_dir():
        raise ConfigError(f"workdir {workdir} is a file; name a folder")
    path = workdir / "config.json"
    # The checksums hold the configuration, too, in case config.json is damaged.
    earlier = checksums.identity_of(workdir)
    if earlier is None and path.exists():
        earlier = _identity_of_file(path)
    elif earlier is None and (names := [name for name in WRITTEN if (workdir / name).exists()]):
        raise ConfigError(
            f"workdir {workdir} has no config.json, but files that the run would replace "
            f"({', '.join(names)}); choose another folder"
        )
    now = identity(config)
    # Earlier versions did not record them, and a finished run is read without the table.
    recorded = [
        part for part in ("data", "code") if getattr(earlier, part, None) and getattr(now, part)
    ]
    parts = ("settings", *recorded)
    if earlier is not None and (changes := now.changes(earlier, parts)):
        raise ConfigError(
            f"workdir {workdir} holds another run ({changes}); choose another folder, or remove "
            "this one to start again"
        )
    return (workdir / "result.json").exists() and not checksums.damaged(workdir)


def identity(config: ConfigDict) -> Identity:
    """The identity of a configuration's run: two runs are the same if theirs are equal.

    It has the checksums of a table that is given by a path, and of the files of an own method or
    task, but not of what these import.
    """
    fields = json.loads(config.to_json())
    code = checksums.of_code((fields.get("method") or {}).get("name"), fields.get("task"))
    return _identity_of_fields(fields, checksums.of_table(fields.get("data") or {}), code)


def _identity_of_fields(fields: dict[str, Any], table: str | None, code: str | None) -> Identity:
    # A run may be resumed on other devices, so this field is not part of its identity.
    fields.get("train", {}).pop("batch_devices", None)
    data, own = {_TABLE: table} if table else {}, {_CODE: code} if code else {}
    return Identity(settings=fields, data=data, code=own)


def _identity_of_file(path: Path) -> Identity:
    """The identity of the run of a ``config.json``; ConfigError for any other file."""
    try:
        fields = json.loads(path.read_text())
        for added in ("versions", "device", "git_revision"):
            fields.pop(added)
        for added in ("command", "continued"):
            fields.pop(added, None)
        return _identity_of_fields(fields, fields.pop(_TABLE, None), fields.pop(_CODE, None))
    except (ValueError, KeyError, AttributeError, TypeError):
        raise ConfigError(
            f"{path} is not a configuration of fsjax; choose another workdir"
        ) from None


def finished_result(config: ConfigDict, workdir: Path, progress: bool) -> dict[str, Any] | None:
    """Reads ``result.json`` if the folder holds the finished run of this configuration.

    Raises:
      ConfigError: as :func:`check_workdir`.
    """
    if not check_workdir(config, workdir):
        return None
    result = read_json(workdir / "result.json")
    # The process may have been killed after result.json was written, and before the page was.
    if not all((workdir / name).exists() for name in ("report.html", checksums.NAME)):
        end_run(config, workdir)
    if progress:
        print(f"{workdir} already holds this finished run; its results are:")
    return result


def begin_run(config: ConfigDict, workdir: Path) -> None:
    """Writes ``config.json``; call it after all checks, so that a mistake leaves nothing behind.

    A resumed run keeps the record of where it began. Damaged files of a finished run are removed,
    together with its checksums, to be written again, and so is ``result.json``: a folder that has
    it counts as finished.
    """
    if names := checksums.damaged(workdir):
        print(f"{workdir}: missing or damaged, will be written again: {', '.join(names)}")
    for name in names:
        (workdir / name).unlink(missing_ok=True)
    (workdir / "result.json").unlink(missing_ok=True)
    checksums.remove_checksums(workdir)
    remove_leftovers(workdir)
    path = workdir / "config.json"
    earlier = json.loads(path.read_text()) if path.exists() else None
    now = identity(config)
    fields = {**json.loads(config.to_json()), **now.data, **now.code}
    artifacts.write_config_json(fields, path, _command(), earlier)


def end_run(config: ConfigDict, workdir: Path) -> None:
    """Marks the run as finished: writes ``report.html``, and the checksums of all other files."""
    artifacts.write_report(workdir)
    names, path = {"config.json", *WRITTEN} - {"report.html"}, workdir / "config.json"
    # The table and the code may have changed since the run began.
    began = _identity_of_file(path) if path.exists() else Identity()
    checksums.write_checksums(
        workdir, replace(identity(config), data=began.data, code=began.code), names
    )


def _command() -> str | None:
    """The command line if the process is a launcher, else ``None``."""
    if not is_launcher():
        return None
    module = sys.modules["__main__"].__spec__
    assert module is not None  # by is_launcher
    return shlex.join(["python", "-m", module.name, *sys.argv[1:]])


def save_pictures(pictures: Mapping[str, Figure], workdir: Path) -> None:
    """Writes each figure in all :data:`FORMATS`; only process 0 writes."""
    if not is_lead():
        return
    for name, figure in pictures.items():
        for suffix in FORMATS:
            report.save_figure(figure, workdir / f"{name}.{suffix}")


def recorded_accuracy(workdir: Path) -> np.ndarray | None:
    """Reads test accuracies in percent, ``(S, E)``, after each epoch from ``metrics.csv``.

    Epochs that were not recorded are NaN; ``None`` if fewer than two were recorded.
    """
    path = workdir / "metrics.csv"
    if not path.exists():
        return None
    table = read_table(path)
    table = table[(table["split"] == "test") & (table["metric"] == "accuracy")]
    if table["epoch"].nunique() < 2:
        return None
    by_epoch = table.pivot(index="seed", columns="epoch", values="value")
    return by_epoch.reindex(columns=range(1, table["epoch"].max() + 1)).to_numpy(float)
