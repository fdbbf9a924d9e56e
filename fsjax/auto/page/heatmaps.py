"""Shaded tables of the page: correlations of columns, and the confusion matrix."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.cluster.hierarchy import leaves_list, linkage
from scipy.spatial.distance import squareform

from fsjax.report.wording import shorten_all

#: With more classes than this, only the most frequent confusions are shown.
MAX_CLASSES, _CONFUSIONS = 12, 12


class ShadedRow(NamedTuple):
    """A row of a shaded table: its name, and the text and the shade, in [0, 1], of each cell."""

    name: str
    cells: list[tuple[str, str]]


class ShadedTable(NamedTuple):
    """A table whose cells are shaded."""

    head: list[str]
    rows: list[ShadedRow]


class Confusion(NamedTuple):
    """The confusion matrix.

    Attributes:
      shaded: all counts, with a row for each class; ``None`` for many classes.
      mistakes: of many classes, the most frequent confusions: true and predicted class, rows, and
        their share of the class.
    """

    shaded: ShadedTable | None
    mistakes: list[tuple[str, str, str, str]]


def likeness_heatmap(likeness: pd.DataFrame) -> ShadedTable:
    """Absolute rank correlations, with correlated columns next to each other."""
    values = likeness.to_numpy()
    order = _side_by_side(values)
    labels = shorten_all(likeness.index[order])
    names = [f"{number}. {label}" for number, label in enumerate(labels, 1)]
    shown = values[np.ix_(order, order)]
    texts = [[f"{value:.2f}".lstrip("0").replace("1.00", "1") for value in row] for row in shown]
    return _shaded([str(number) for number in range(1, len(order) + 1)], names, texts, shown)


def _side_by_side(likeness: np.ndarray) -> list[int]:
    """The order of the leaves of a tree of average linkage."""
    if len(likeness) < 3:
        return list(range(len(likeness)))
    distance = 1.0 - (likeness + likeness.T) / 2
    np.fill_diagonal(distance, 0.0)
    tree = linkage(squareform(distance, checks=False), "average", optimal_ordering=True)
    return leaves_list(tree).tolist()


def confusion_of(counts: pd.DataFrame) -> Confusion:
    """Out-of-fold predictions, a row for each class; for many classes only their confusions."""
    values = counts.to_numpy(float)
    share = values / np.maximum(values.sum(axis=1, keepdims=True), 1e-300)
    labels = [str(label) for label in counts.index]
    if len(labels) <= MAX_CLASSES:
        texts = [
            [f"{value:g} ({100 * part:.0f} %)" for value, part in zip(*rows, strict=True)]
            for rows in zip(values.round(1), share, strict=True)
        ]
        predicted = [f"predicted {label}" for label in counts.columns]
        return Confusion(
            _shaded(predicted, [f"true {label}" for label in labels], texts, share), []
        )
    mistakes = values.copy()
    np.fill_diagonal(mistakes, 0.0)
    largest = np.argsort(-mistakes, axis=None, kind="stable")[:_CONFUSIONS]
    places = [divmod(int(place), len(labels)) for place in largest if mistakes.flat[place] > 0]
    rows = [
        (labels[true], str(counts.columns[other]), f"{values[true, other]:g}",
         f"{100 * share[true, other]:.0f} %")
        for true, other in places
    ]  # fmt: skip
    return Confusion(None, rows)


def _shaded(
    head: list[str], names: Sequence[str], texts: Sequence[Sequence[str]], shares: np.ndarray
) -> ShadedTable:
    rows = [
        ShadedRow(
            name, [(text, f"{share:.2f}") for text, share in zip(row, row_shares, strict=True)]
        )
        for name, row, row_shares in zip(names, texts, shares, strict=True)
    ]
    return ShadedTable(head, rows)
