"""Samples of tables on disk, which the SVM and retrain protocols read into memory."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from fsjax.tables.dataset import Dataset
from fsjax.tables.splits import DEFAULT_SEED, Split

#: The default number of rows.
SAMPLE_ROWS: Final = 20_000

#: Selected columns ``(S, K)`` by the suffix of the metric.
SelectionsByName = Mapping[str, np.ndarray]


def sampled_rows(dataset: Dataset, split: Split, sample_rows: int) -> int | None:
    """The number of rows of a table on disk that are used; ``None`` if all rows are."""
    total = sum(map(len, split))
    if not dataset.table.on_disk or total <= sample_rows:
        return None
    return sum(map(len, _sample(split, sample_rows)))


def in_memory(
    dataset: Dataset, splits: Sequence[Split], selections: SelectionsByName, sample_rows: int
) -> tuple[Dataset, list[Split], dict[str, np.ndarray]]:
    """Read a sample of the rows, with only the selected columns, into memory.

    Args:
      dataset: a data set whose X is on disk.
      splits: of each seed, all of them equal.
      selections: columns ``(S, K)`` by name.
      sample_rows: the most rows; all parts are sampled in proportion, always in the same way.

    Returns:
      The table; its splits; and the selections with the column numbers of the new table.
    """
    split = _sample(splits[0], sample_rows)
    rows = np.sort(np.concatenate(split))
    columns = np.unique(np.concatenate([selected.ravel() for selected in selections.values()]))
    names = dataset.feature_names
    small = dataclasses.replace(
        dataset,
        X=dataset.table.block(rows, columns),
        y=None if dataset.y is None else dataset.y[rows],
        feature_names=None if names is None else tuple(names[column] for column in columns),
        official_split=None,
        # A part of an image is no image.
        image_shape=dataset.image_shape if len(columns) == dataset.num_features else None,
        informative=None,
    )
    placed = Split(*(np.searchsorted(rows, part).astype(np.int32) for part in split))
    places = {name: np.searchsorted(columns, selected) for name, selected in selections.items()}
    return small, [placed] * len(splits), places


def _sample(split: Split, sample_rows: int) -> Split:
    """A sample of the rows of a split, with at least one row of each part that has rows."""
    total = sum(map(len, split))
    if total <= sample_rows:
        return split
    rng = np.random.default_rng(DEFAULT_SEED)

    def drawn(part: np.ndarray) -> np.ndarray:
        count = min(max(sample_rows * len(part) // total, 1), len(part))
        return np.sort(rng.choice(part, count, replace=False))

    return Split(*map(drawn, split))
