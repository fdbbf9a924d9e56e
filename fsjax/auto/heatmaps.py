"""Matrices as shaded HTML tables: correlations of columns, and confusion matrices."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import Final

import numpy as np
import pandas as pd
from scipy.cluster.hierarchy import leaves_list, linkage
from scipy.spatial.distance import squareform

from fsjax.report.html import rows_table

#: With more classes than this, only the most frequent confusions are shown.
MAX_CLASSES, _CONFUSIONS = 12, 12

HEATMAP_STYLE: Final = """
.heatmap td, .heatmap th { padding: 0.15rem 0.3rem; text-align: center; border: none; }
.heatmap th:first-child { text-align: left; position: sticky; left: 0; background: var(--page);
  font-weight: normal; max-width: 16em; overflow: hidden; text-overflow: ellipsis; }
.heatmap thead th { white-space: normal; vertical-align: bottom; }
.heatmap td { min-width: 2.3em; background: rgb(0 114 178 / calc(0.75 * var(--share))); }
.heatmap td:first-child { text-align: center; }
@media (max-width: 40rem) { .heatmap th:first-child { max-width: 9em; } }
"""


def likeness_heatmap(likeness: pd.DataFrame) -> str:
    """Absolute rank correlations, with correlated columns next to each other."""
    values = likeness.to_numpy()
    order = _side_by_side(values)
    names = [f"{number}. {likeness.index[place]}" for number, place in enumerate(order, 1)]
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


def confusion_table(counts: pd.DataFrame) -> str:
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
        return _shaded(predicted, [f"true {label}" for label in labels], texts, share)
    mistakes = values.copy()
    np.fill_diagonal(mistakes, 0.0)
    largest = np.argsort(-mistakes, axis=None, kind="stable")[:_CONFUSIONS]
    places = [divmod(int(place), len(labels)) for place in largest if mistakes.flat[place] > 0]
    rows = [
        [labels[true], str(counts.columns[other]), f"{values[true, other]:g}",
         f"{100 * share[true, other]:.0f} %"]
        for true, other in places
    ]  # fmt: skip
    return rows_table(["true", "predicted", "rows", "share of the class"], rows)


def _shaded(
    heads: Sequence[str], names: Sequence[str], texts: Sequence[Sequence[str]], shares: np.ndarray
) -> str:
    top = "".join(f"<th>{html.escape(text)}</th>" for text in heads)
    body = "".join(
        f"<tr><th title='{html.escape(name)}'>{html.escape(name)}</th>"
        + "".join(
            f"<td style='--share:{share:.2f}'>{text}</td>"
            for text, share in zip(row, row_shares, strict=True)
        )
        + "</tr>"
        for name, row, row_shares in zip(names, texts, shares, strict=True)
    )
    return (
        "<div class='scroll'><table class='heatmap'>"
        f"<thead><tr><th></th>{top}</tr></thead><tbody>{body}</tbody></table></div>"
    )
