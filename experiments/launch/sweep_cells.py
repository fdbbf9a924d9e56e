"""Plans, trains and evaluates a sweep of a configuration, as a whole or setting by setting."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import ml_collections

import fsjax
from experiments.cluster import Cell
from experiments.launch.experiment import (
    build_method,
    check_evaluation,
    evaluated,
    load_data,
    plan_options,
)
from fsjax.data import Dataset
from fsjax.engine.sweep import PlannedSweep, plan_sweep
from fsjax.errors import DataError
from fsjax.storage.file_lock import exclusive

#: The values of each field.
Grid = Mapping[str, Sequence[Any]]


def plan_of(
    config: ml_collections.ConfigDict, grid: Grid, folder: Path, progress: bool
) -> tuple[PlannedSweep, Dataset]:
    """Plans and checks a sweep with its checkpoints in a folder; returns it with its data.

    Raises:
      ConfigError, DataError: as :func:`fsjax.sweep` and :func:`fsjax.evaluation.check_protocols`.
    """
    method, dataset = build_method(config), load_data(config)
    check_evaluation(config, method, dataset)
    options = plan_options(config) | {
        "task": config.task,
        "num_features": config.num_features,
        "progress": progress,
        "checkpoint_dir": folder / "checkpoints",
    }
    varied = {field.rpartition(".")[2]: values for field, values in grid.items()}
    options = {name: value for name, value in options.items() if name not in varied}
    return plan_sweep(method, dataset, varied, **options), dataset


def fitted(
    planned: PlannedSweep, dataset: Dataset, config: ml_collections.ConfigDict
) -> fsjax.Sweep:
    """Trains a sweep and evaluates its results by the protocols of the configuration."""
    swept = planned.fit()
    results = [
        evaluated(
            config,
            result,
            dataset,
            noise_std=setting.get("noise_std", config.data.noise_std),
            scaling=setting.get("scaling", config.data.scaling),
        )
        for setting, result in zip(swept.settings, swept.results, strict=True)
    ]
    return dataclasses.replace(swept, results=tuple(results))


def cells_of(
    config: ml_collections.ConfigDict,
    grid: Grid,
    settings: Sequence[Mapping[str, Any]],
    folder: Path,
) -> list[Cell]:
    """Makes a cell of each setting, with all its seeds, in the order of the grid.

    Args:
      settings: for each setting its values, by the last part of the field's name.
    """
    cells = []
    for index, setting in enumerate(settings):
        grid_of_cell = {field: (setting[field.rpartition(".")[2]],) for field in grid}
        label = ",".join(f"{name}={value}" for name, value in setting.items())
        cell_folder = folder.absolute() / "cells" / f"{index:04d}"
        arguments = (config, grid_of_cell, cell_folder)
        cells.append(Cell(f"sweep-{index:04d}-{label}", fit_cell, arguments))
    return cells


def fit_cell(config: ml_collections.ConfigDict, grid: Grid, folder: Path) -> Path:
    """Trains and evaluates a setting unless its folder has the result; returns the path of it."""
    path = folder / "result.npz"
    with exclusive(folder):
        planned, dataset = plan_of(config, grid, folder, progress=False)
        if path.exists():
            # A damaged result is computed again.
            with contextlib.suppress(DataError):
                fsjax.load(path)
                return path
        fsjax.save(fitted(planned, dataset, config).results[0], path)
    return path
