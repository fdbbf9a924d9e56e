"""The arguments of :func:`fsjax.plan`, which documents them, in three records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from fsjax.engine.control import Callback
from fsjax.engine.result import FitResult
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
