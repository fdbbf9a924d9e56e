"""The picture of a sweep: a line for one swept field, or a heat map for two."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fsjax.errors import ConfigError, nearest
from fsjax.report import style
from fsjax.report.curves import LABELS

#: Numbers in the cells of a heat map are drawn in white above this share of its range.
DARK = 0.55

#: The axis is logarithmic if the largest value is more than this many times the smallest.
LOG_FACTOR = 30.0


def plot_sweep(table: pd.DataFrame, names: tuple[str, ...], metric: str) -> Figure:
    """Draws a metric by the fields of a sweep: mean and standard deviation over the seeds.

    One field gives a line, two give a heat map. Of more fields, the two with most values are drawn;
    the mean is taken over the others, and the title says so.

    Args:
      table: from :meth:`fsjax.Sweep.table`.
      names: columns of the table that are swept fields.
      metric: another column.

    Raises:
      ConfigError: for a column that the table lacks.
    """
    for name in (*names, metric):
        if name not in table:
            raise ConfigError(f"the table has no column {name!r}: {nearest(name, table.columns)}")
    drawn = sorted(names, key=lambda name: table[name].astype(str).nunique(), reverse=True)[:2]
    drawn = [name for name in names if name in drawn]
    label = LABELS.get(metric.removeprefix("embedded_"), metric.replace("_", " "))
    rest = [name for name in names if name not in drawn]
    title = f"mean over {', '.join(rest)}" if rest else None
    figure = style.new_figure(4.2, title=title)
    axes = figure.subplots()
    if len(drawn) == 1:
        _line(axes, table, drawn[0], metric, label)
    else:
        _map(figure, axes, table, drawn, metric, label)
    return figure


def _line(axes: Axes, table: pd.DataFrame, name: str, metric: str, label: str) -> None:
    groups = table.groupby(name, sort=False)[metric]
    summary = groups.agg(["mean", lambda values: values.std(ddof=0)])
    mean, spread = summary.to_numpy(float).T
    numbers = pd.api.types.is_numeric_dtype(table[name])
    places = summary.index.to_numpy(float) if numbers else np.arange(len(summary))
    axes.errorbar(places, mean, spread, color=style.BLUE, marker="o", capsize=3)
    if numbers and places.min() > 0 and places.max() > LOG_FACTOR * places.min():
        axes.set_xscale("log")
    if not numbers:
        axes.set_xticks(places, [str(value) for value in summary.index])
    axes.set_xlabel(name)
    axes.set_ylabel(label)
    axes.grid(alpha=0.3)


def _map(
    figure: Figure, axes: Axes, table: pd.DataFrame, names: list[str], metric: str, label: str
) -> None:
    keys = [table[name].map(str) for name in names]
    grouped = table.groupby(keys, sort=False)[metric]
    mean, spread = grouped.mean().unstack(), grouped.std(ddof=0).unstack()
    order = [list(dict.fromkeys(key)) for key in keys]
    mean, spread = (matrix.reindex(index=order[0], columns=order[1]) for matrix in (mean, spread))
    values = mean.to_numpy(float)
    shown = axes.imshow(values, cmap=style.COLORS, aspect="auto")
    low, high = np.nanmin(values), np.nanmax(values)
    for (row, column), value in np.ndenumerate(values):
        dark = high > low and (value - low) / (high - low) > DARK
        axes.text(
            column,
            row,
            f"{value:.4g}\n± {spread.to_numpy(float)[row, column]:.2g}",
            ha="center",
            va="center",
            fontsize=8,
            color="white" if dark else "black",
        )
    axes.set_xticks(range(len(order[1])), order[1])
    axes.set_yticks(range(len(order[0])), order[0])
    axes.set_xlabel(names[1])
    axes.set_ylabel(names[0])
    style.colorbar(figure, shown, axes, label)
