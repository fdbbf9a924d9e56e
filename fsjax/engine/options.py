"""The arguments of :func:`fsjax.plan`, which documents them, in three groups of options."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np

from fsjax.engine.control import Callback
from fsjax.engine.result import FitResult
from fsjax.errors import ConfigError, check_flag
from fsjax.method import Loss
from fsjax.tables.splits import Split
from fsjax.tasks import Task

T = TypeVar("T")


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

    def __post_init__(self) -> None:
        _check_flags(self, "split_per_seed", "zero_others", "record_test")


@dataclass(frozen=True)
class TrainOptions:
    """The loss, the batches and the length of training."""

    loss: Loss | None = None
    num_epochs: int = 200
    batch_size: int | Literal["auto"] | None = "auto"
    shuffle: bool = True
    drop_last: bool = False
    min_steps_per_epoch: int = 1
    best_by: str | None = None
    early_stopping: int | None = None

    def __post_init__(self) -> None:
        _check_flags(self, "shuffle", "drop_last")


@dataclass(frozen=True)
class RunOptions:
    """The seeds, the devices on which they train, checkpoints, and what ends a run."""

    seeds: Sequence[int] = (0,)
    seed_axis: str = "auto"
    batch_devices: int = 1
    progress: bool = False
    checkpoint_dir: str | Path | None = None
    checkpoint_every: int = 20
    max_time: float | None = None
    callback: Callback | None = None
    keep_partial: bool = False
    start: FitResult | None = None

    def __post_init__(self) -> None:
        _check_flags(self, "progress")
        if self.checkpoint_dir is not None and not isinstance(self.checkpoint_dir, str | Path):
            raise ConfigError(f"checkpoint_dir={self.checkpoint_dir!r}; give a path, or None")


def grouped(arguments: Mapping[str, Any]) -> tuple[DataOptions, TrainOptions, RunOptions]:
    """Groups the arguments of :func:`fsjax.plan`, given by name, into options."""

    def options(kind: Callable[..., T]) -> T:
        return kind(**{name: arguments[name] for name in inspect.signature(kind).parameters})

    return options(DataOptions), options(TrainOptions), options(RunOptions)


def _check_flags(options: Any, *names: str) -> None:
    for name in names:
        check_flag(name, getattr(options, name))
