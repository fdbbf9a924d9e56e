"""The rows and columns of a table on disk that the SVM and retrain protocols take into memory."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from fsjax.tables.dataset import Dataset
from fsjax.tables.splits import DEFAULT_SEED, Split

#: Rows that are taken, unless another number is asked for.
SAMPLE_ROWS: Final = 20_000

#: Selected columns ``(S, K)`` by the name of the metric's ending.
Selections = Mapping[str, np.ndarray]


def sampled_rows(dataset: Dataset, split: Split, sample_rows: int) -> int | None:
    """How many rows of a table on disk are judged on; ``None`` where it is all of the split's."""
    total = sum(map(len, split))
    if not dataset.table.on_disk or total <= sample_rows:
        return None
    return sum(map(len, _sample(split, sample_rows)))


def in_memory(
    dataset: Dataset, splits: Sequence[Split], selections: Selections, sample_rows: int
) -> tuple[Dataset, list[Split], dict[str, np.ndarray]]:
    """A sample of the rows with the selected columns alone, as a table in memory.

    Args:
      dataset: whose X is on disk.
      splits: of each seed, one for all.
      selections: columns ``(S, K)`` by name.
      sample_rows: at most so many rows, each part in proportion, drawn once and for all.

    Returns:
      The table; its splits; and the selections by its column numbers, in the same order.
    """
    split = _sample(splits[0], sample_rows)
    rows = np.sort(np.concatenate(split))
    columns = np.unique(np.concatenate([selected.ravel() for selected in selections.values()]))
    names = dataset.feature_names
    small = dataclasses.replace(
        dataset,
        X=dataset.X.take(rows, columns),
        y=None if dataset.y is None else dataset.y[rows],
        feature_names=None if names is None else tuple(names[column] for column in columns),
        official_split=None,
    )
    placed = Split(*(np.searchsorted(rows, part).astype(np.int32) for part in split))
    places = {name: np.searchsorted(columns, selected) for name, selected in selections.items()}
    return small, [placed] * len(splits), places


def _sample(split: Split, sample_rows: int) -> Split:
    """At most so many rows of a split, at least one of each part that has any."""
    total = sum(map(len, split))
    if total <= sample_rows:
        return split
    rng = np.random.default_rng(DEFAULT_SEED)

    def drawn(part: np.ndarray) -> np.ndarray:
        count = min(max(sample_rows * len(part) // total, 1), len(part))
        return np.sort(rng.choice(part, count, replace=False))

    return Split(*map(drawn, split))
