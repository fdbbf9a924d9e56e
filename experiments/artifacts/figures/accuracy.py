"""Accuracy by the number of selected features (BinMask, Figure 1)."""

import math
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from experiments.artifacts.figures import marks
from experiments.artifacts.statistics.trials import Rows, means_by, to_table
from experiments.artifacts.text_tables import finite
from fsjax.report import style

#: The method that is drawn as a band, as it selects nothing.
ALL_FEATURES: Final = "all features"

#: The method whose strengths are on the top axis; letter case does not matter.
STRENGTH_OF: Final = "binmask"

#: Smallest distance between two ticks, as a share of the axis.
TICK_SHARE: Final = 0.13

#: How far intervals may extend beyond all means, in units of the range of the means.
INTERVAL_ROOM: Final = 0.5

#: Inches: height of a panel without its legend, of a single panel, and of a line of the legend.
PANEL_HEIGHT: Final = 2.7
ALONE_HEIGHT: Final = 3.5
LEGEND_LINE: Final = 0.17


def plot_accuracy(table: Rows) -> Figure:
    """Draws test accuracy against the number of selected features, one panel per data set.

    Each method is a line: the mean over the trials and its 95 % confidence interval. The band shows
    all features. The legend has the mean accuracy over all numbers of features in brackets. The top
    axis has the mean strength with which BinMask selected that many features and, in brackets, its
    standard deviation over the trials. Methods are shifted sideways a little so as not to overlap.

    Args:
      table: one row for each trial of each setting, with the columns ``dataset``, ``method``
        (``all features`` for the band), ``trial``, ``num_features`` (as requested; ignored for the
        band), ``accuracy`` (percent; NaN does not count) and, for the top axis, ``strength`` (may
        be NaN).

    Returns:
      The figure, 1200 pixels wide. Intervals that extend far beyond all means are clipped.

    Raises:
      DataError: if there are no rows, or a column is missing.
    """
    rows = to_table(
        table, ("dataset", "method", "trial"), ("num_features", "accuracy"), ("strength",)
    )
    datasets = rows["dataset"].unique()
    styles = marks.looks(name for name in rows["method"] if name != ALL_FEATURES)
    across = min(len(datasets), 2 if len(datasets) <= 4 else 3)
    columns, height = (4, ALONE_HEIGHT) if across == 1 else (2, PANEL_HEIGHT)
    height += LEGEND_LINE * math.ceil((len(styles) + 1) / columns)
    figure, panels = marks.panels(datasets, across, height)
    figure.set_layout_engine("constrained", h_pad=0.12)  # a legend belongs to the panel above it
    for dataset, axes, outer in panels:
        _draw_panel(axes, rows[rows["dataset"] == dataset], styles)
        style.finish(axes, dataset, "selected features", "test accuracy (%)" if outer else "")
        marks.draw_legend_below(axes, columns)
    return figure


def strength_labels(rows: pd.DataFrame) -> dict[float, str]:
    """Labels of the top axis for one data set, by number of features.

    A label is the mean strength and, if there are several trials, the population standard
    deviation. There are none if no row of BinMask has a strength.
    """
    methods = rows["method"].astype(str).str.lower()
    with_strength = rows[methods == STRENGTH_OF].dropna(subset="strength")
    labels = {}
    for size, values in with_strength.groupby("num_features")["strength"]:
        spread = f"\n({marks.scientific(values.std(ddof=0))})" if len(values) > 1 else ""
        labels[float(size)] = f"{marks.scientific(values.mean())}{spread}"
    return labels


def _draw_panel(axes: Axes, rows: pd.DataFrame, styles: Mapping[str, marks.Look]) -> None:
    selecting = rows[rows["method"] != ALL_FEATURES]
    sizes = np.unique(selecting["num_features"].dropna())
    span = float(np.ptp(sizes)) if sizes.size > 1 else 1.0
    every = {
        name: means_by(selecting[selecting["method"] == name], "num_features", "accuracy")
        for name in styles
    }
    lines = {name: points for name, points in every.items() if np.isfinite(points.means).any()}
    for (name, points), shift in zip(lines.items(), marks.shifts(len(lines)), strict=True):
        label = f"{style.shorten(name, 20)} ({pd.Series(points.means).mean():.1f})"
        moved = points._replace(places=points.places + shift * span)
        marks.draw_line(axes, moved, styles[name], style.literal(label))
    everything = rows.loc[rows["method"] == ALL_FEATURES, "accuracy"]
    marks.draw_band(axes, everything, f"{ALL_FEATURES} ({everything.mean():.1f})")
    _cut_intervals(axes, [everything.mean(), *(points.means for points in lines.values())])
    style.cap_percent(axes)

    if not sizes.size:
        return
    margin = 0.06 * span if sizes.size > 1 else 0.5
    axes.set_xlim(sizes[0] - margin, sizes[-1] + margin)
    ticks = marks.apart(sizes[::-1], span, TICK_SHARE)
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    _draw_strengths(axes, strength_labels(selecting), ticks)


def _cut_intervals(axes: Axes, means: Sequence[float | np.ndarray]) -> None:
    """Clips intervals of few trials that would compress the means into a small part of the axis."""
    values = finite(np.hstack(means))
    if not values.size:
        return
    room = INTERVAL_ROOM * max(float(np.ptp(values)), 2.0)
    low, high = axes.get_ylim()
    axes.set_ylim(max(low, values.min() - room), min(high, values.max() + room))


def _draw_strengths(axes: Axes, labels: Mapping[float, str], ticks: Sequence[float]) -> None:
    shown = [tick for tick in ticks if tick in labels]
    if not shown:
        return
    top = axes.secondary_xaxis("top")
    top.set_xticks(shown, [labels[tick] for tick in shown])
    top.tick_params(labelsize=6, length=2, pad=2)
    top.set_xlabel("BinMask λ", fontsize=7)
    top.spines["top"].set_linewidth(0.5)
