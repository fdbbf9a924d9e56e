"""``Run``, a checked run as a record, which training and choosing read, and ``Trained``."""

from __future__ import annotations

import functools
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import jax
import numpy as np

from fsjax.engine.control import Control
from fsjax.engine.prepare import Prepared
from fsjax.engine.rows import Arrays, HostRows, has_own_rows, take_rows
from fsjax.method import Method, PyTree, Spec, TrainState
from fsjax.registry import MethodStructure
from fsjax.tables.dataset import Dataset
from fsjax.tables.groups import any_column
from fsjax.tables.scaled import content_of


@dataclass(frozen=True, repr=False)
class Run:
    """A checked run, not trained yet: what :class:`fsjax.Plan` has besides its methods.

    Attributes:
      method: the method to train.
      structure, hyper: its structure, and the values of its traced arguments.
      dataset, prepared: the data, and its scaled rows.
      spec: static facts about the run.
      seeds: the S seeds.
      sizes: numbers of columns to select; empty if the method decides, or nothing is selected.
      axis, batch_devices: ``vmap``, ``map`` or ``shard``, and the number of devices per batch.
      progress, checkpoint_dir, checkpoint_every: see :func:`fsjax.plan`.
      control: decides when training ends early.
      start: stacked states of the S seeds to start from, or ``None``.
    """

    method: Method
    structure: MethodStructure
    hyper: Mapping[str, float]
    dataset: Dataset
    prepared: Prepared
    spec: Spec
    seeds: tuple[int, ...]
    sizes: tuple[int, ...]
    axis: str
    batch_devices: int
    progress: bool
    checkpoint_dir: Path | None
    checkpoint_every: int
    control: Control
    start: TrainState | None

    def __repr__(self) -> str:
        spec, splits, scaler = self.spec, self.prepared.splits, self.prepared.scalers[0]
        parts = zip(("training", "validation", "test"), splits[0], strict=True)
        own_splits = any(split is not splits[0] for split in splits)
        scales = max(np.size(part) for part in scaler)
        about = [
            f"{self.method.name} on {self.dataset.name}",
            spec.task,
            " + ".join(f"{len(rows)} {name}" for name, rows in parts) + " rows",
            f"{spec.num_columns} columns",
            f"K={', '.join(map(str, self.sizes)) or None}",
        ]
        if self.method.loss is not None:
            steps = f"{spec.num_epochs} epochs of {spec.steps_per_epoch} steps"
            about += [f"batch_size={spec.batch_size}", steps]
        about += [
            "scaled by column" if scales > 1 else "one scale for the table",
            "a split per seed" if own_splits else "one split for all seeds",
            f"seeds={self.seeds}",
        ]
        return f"{type(self).__name__}({', '.join(about)})"

    @functools.cached_property
    def usable(self) -> np.ndarray:
        """``(S, D)`` bool, the columns that may be selected, or ``(S, G)`` groups."""
        return any_column(self.prepared.feature_mask, self.spec.groups)

    def arrays_of(self, rows: np.ndarray) -> Arrays[HostRows]:
        """The scaled rows of some seeds, given by their places, or the rows that all share."""
        arrays = self.prepared.arrays
        return take_rows(arrays, rows) if has_own_rows(arrays) else arrays

    @functools.cached_property
    def _data_crc32(self) -> int:
        """The checksum of the training and validation rows."""
        # Computed once, because a search needs the identity in each of its rounds.
        rows = self.prepared.arrays.train.x
        return crc32((self.prepared.arrays, content_of(rows)))


#: Values by ``split/metric`` name, ``(R, E)`` each.
History = dict[str, np.ndarray]


class Trained(NamedTuple):
    """A trained run.

    Attributes:
      states: stacked states ``(S, ...)`` after the last epoch.
      history: recorded values by ``split/metric`` name, ``(S, E)`` each; NaN after the last epoch
        of a seed that finished before the others.
      cost: see ``FitResult.cost``.
    """

    states: TrainState
    history: History
    cost: dict[str, float]


def crc32(tree: PyTree) -> int:
    """The checksum of the arrays of a tree."""
    checksum = 0
    for leaf in jax.tree.leaves(tree):
        # Bytes, because not every dtype supports the buffer protocol.
        content = np.ascontiguousarray(leaf).reshape(-1).view(np.uint8)
        checksum = zlib.crc32(content.data, checksum)
    return checksum
