"""The options of ``fit`` as one value, which ``fit`` and ``fit_sizes`` share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fsjax.data.splits import Split
from fsjax.errors import ConfigError, check_flag, check_whole


@dataclass(frozen=True)
class FitOptions:
    """Keyword arguments of :func:`fsjax.fit`, which documents them; the defaults are there too.

    Raises:
      ConfigError: for counts that are not whole numbers from 1, and values of another type.
    """

    seeds: Sequence[int]
    task: str | None
    num_epochs: int
    batch_size: int
    shuffle: bool
    drop_last: bool
    min_steps_per_epoch: int
    split: str | Split | Sequence[Split]
    split_per_seed: bool
    scaling: str
    valid_fraction: float | None
    noise_std: float
    sample_weight: np.ndarray | None
    groups: Sequence[int] | None
    best_by: str | None
    record_test: bool
    seed_axis: str
    progress: bool
    checkpoint_dir: str | Path | None
    checkpoint_every: int
    before_training: Callable[[], None] | None

    def __post_init__(self) -> None:
        for name in ("shuffle", "drop_last", "split_per_seed", "record_test", "progress"):
            check_flag(name, getattr(self, name))
        for name, kind, told in (
            ("checkpoint_dir", str | Path, "a folder"),
            ("before_training", Callable, "a function without arguments"),
        ):
            value = getattr(self, name)
            if value is not None and not isinstance(value, kind):
                raise ConfigError(f"{name}={value!r}; give {told}, or None")
        for name in ("num_epochs", "batch_size", "min_steps_per_epoch", "checkpoint_every"):
            object.__setattr__(self, name, check_whole(name, getattr(self, name)))
