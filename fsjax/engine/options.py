"""The arguments of :func:`fsjax.plan`, which documents them, in three groups of options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np

from fsjax.engine.control import Callback
from fsjax.engine.result import FitResult
from fsjax.errors import ConfigError, check_flag
from fsjax.method import Loss
from fsjax.tables.splits import Split
from fsjax.tasks import Task


@dataclass(frozen=True)
class DataOptions:
    """How the rows are split, scaled and weighted, and how many columns are selected."""

    task: str | Task | None = None
    num_features: int | Sequence[int] | None = None
    split: str | Split | Sequence[Split] = "paper"
    split_per_seed: bool = False
    scaling: str = "paper"
    valid_fraction: float | None = None
    noise_std: float = 0.0
    sample_weight: np.ndarray | None = None
    groups: Sequence[int] | np.ndarray | None = None
    columns: np.ndarray | None = None
    zero_others: bool = False
    record_test: bool = False


@dataclass(frozen=True)
class TrainOptions:
    """The loss, the batches and the length of training."""

    loss: Loss | None
    num_epochs: int
    batch_size: int | Literal["auto"] | None
    shuffle: bool
    drop_last: bool
    min_steps_per_epoch: int
    best_by: str | None
    early_stopping: int | None


@dataclass(frozen=True)
class RunOptions:
    """The seeds, the devices on which they train, checkpoints, and what ends a run."""

    seeds: Sequence[int]
    seed_axis: str
    batch_devices: int
    progress: bool
    checkpoint_dir: str | Path | None
    checkpoint_every: int
    max_time: float | None
    callback: Callback | None
    keep_partial: bool
    start: FitResult | None


T = TypeVar("T", DataOptions, TrainOptions, RunOptions)

#: The options that are true or false.
_FLAGS = (
    "split_per_seed",
    "zero_others",
    "record_test",
    "shuffle",
    "drop_last",
    "progress",
    "keep_partial",
)


def grouped(arguments: Mapping[str, Any]) -> tuple[DataOptions, TrainOptions, RunOptions]:
    """Groups the arguments of :func:`fsjax.plan`, given by name, into options."""
    values = {**arguments, **{name: check_flag(name, arguments[name]) for name in _FLAGS}}
    folder = values["checkpoint_dir"]
    if folder is not None and not isinstance(folder, str | Path):
        raise ConfigError(f"checkpoint_dir={folder!r}; give a path, or None")

    def options(kind: type[T]) -> T:
        return kind(**{field.name: values[field.name] for field in fields(kind)})

    return options(DataOptions), options(TrainOptions), options(RunOptions)
