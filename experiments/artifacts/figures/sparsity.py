"""Accuracy by sparsity (BinMask, Figure 2), and sparsity by layer."""

import math
from collections.abc import Mapping
from typing import Any, Final, Literal

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from experiments.artifacts.figures import marks
from experiments.artifacts.statistics.trials import Means, Rows, mean_interval, to_table
from fsjax.errors import DataError
from fsjax.report import style

#: The method that is drawn as a band, as it prunes nothing; letter case does not matter.
DENSE: Final = "dense"

#: Labels and line styles of the accuracy before and after fine-tuning.
STATES: Final[dict[str, tuple[str, Literal["-", "--"]]]] = {
    "accuracy": ("before fine-tuning", "-"),
    "finetuned_accuracy": ("after fine-tuning", "--"),
}

#: Multiples of powers of ten that may be ticks of the density, the most important first.
STEPS: Final = (1.0, 5.0, 2.0, 3.0, 7.0, 4.0, 1.5)

#: Smallest distance between two ticks, as a share of the axis.
TICK_SHARE: Final = 0.12

#: Inches: height of a panel, of a bar, of the gap between two layers, and around all bars.
PANEL_HEIGHT: Final = 3.3
BAR: Final = 0.135
BAR_GAP: Final = 0.11
BAR_FRAME: Final = 1.0


def plot_accuracy_sparsity(table: Rows) -> Figure:
    """Draws test accuracy against sparsity, one panel per network.

    Each method is a line, solid before fine-tuning and broken after it: means over the trials and
    their 95 % confidence intervals. Bands show the dense network. The axis is logarithmic in the
    density and labelled with the sparsity, so that equal steps are equal ratios of remaining
    weights. Lines are shifted sideways a little so as not to overlap.

    Args:
      table: one row for each trial of each setting, with the columns ``network``, ``method``
        (``dense`` for the bands), ``trial``, ``sparsity`` (0 to below 1; ignored for dense
        networks), ``accuracy`` and ``finetuned_accuracy`` (percent; NaN does not count). Trials of
        a method are grouped by the column ``strength`` if the method has it, otherwise by rank:
        the sparsest of each trial, the second sparsest, and so on.

    Returns:
      The figure, 1200 pixels wide.

    Raises:
      DataError: if there are no rows, a column is missing, or the trials of a method without
        ``strength`` have different numbers of rows.
    """
    rows = to_table(table, ("network", "method", "trial"), ("sparsity", *STATES), ("strength",))
    dense = rows["method"].astype(str).str.lower() == DENSE
    networks = rows["network"].unique()
    styles = marks.looks(rows.loc[~dense, "method"])
    across = min(len(networks), 2)
    figure, panels = marks.panels(networks, across, PANEL_HEIGHT, 0.5)
    for network, axes, outer in panels:
        here = rows["network"] == network
        _draw_panel(axes, rows[here & ~dense], rows[here & dense], styles)
        style.finish(axes, network, "sparsity (%)", "test accuracy (%)" if outer else "")
    handles = _legend(styles, bool(dense.any()), bool(rows["finetuned_accuracy"].notna().any()))
    columns = 5 if len(handles) == 5 else 4
    below: dict[str, Any] = {"loc": "outside lower center", "fontsize": 8, "frameon": False}
    figure.legend(handles=handles, ncols=columns, **below)
    return figure


def plot_layer_sparsity(table: Rows) -> Figure:
    """Draws the sparsity of each layer, a bar for each method, with the number of weights left.

    Args:
      table: one row for each layer of each trial, with the columns ``layer``, ``method`` or, if
        that is missing, ``setting``, ``trial``, ``sparsity`` (0 to 1; NaN does not count) and
        ``size`` (weights of the layer). Layers appear from the top in the order of the rows.

    Returns:
      The figure, 1200 pixels wide: means over the trials, and their 95 % confidence intervals.

    Raises:
      DataError: if there are no rows, or a column is missing.
    """
    by = "method" if "method" in pd.DataFrame(table).columns else "setting"
    rows = to_table(table, ("layer", by, "trial"), ("sparsity", "size"))
    layers = rows["layer"].unique()
    styles = marks.looks(rows[by])
    figure = style.new_figure(len(layers) * (BAR * len(styles) + BAR_GAP) + BAR_FRAME)
    axes = figure.add_subplot()
    width = BAR / (BAR * len(styles) + BAR_GAP)
    for number, (name, look) in enumerate(styles.items()):
        shift = (number - (len(styles) - 1) / 2) * width
        named_rows = rows[rows[by] == name]
        for place, layer in enumerate(layers):
            _draw_bar(axes, place + shift, width, named_rows[named_rows["layer"] == layer], look)
    sizes = rows.groupby("layer")["size"].max()
    names = [f"{style.shorten(layer)} ({number_text(sizes[layer])})" for layer in layers]
    note = "right of the bars: sparsity and weights left; in brackets: weights of the layer"
    style.finish(axes, "", f"sparsity (%); {note}")
    axes.set_yticks(range(len(layers)), [style.literal(name) for name in names])
    axes.set_ylim(len(layers) - 0.45, -0.55)
    axes.set_xticks(range(0, 101, 20))
    axes.set_xlim(0.0, 122.0)
    axes.spines["bottom"].set_bounds(0.0, 100.0)
    axes.grid(visible=False, axis="y")
    handles = [Patch(color=look.color, label=_legend_name(name)) for name, look in styles.items()]
    figure.legend(handles=handles, loc="outside upper center", ncols=4, fontsize=8, frameon=False)
    return figure


def sparsity_points(rows: pd.DataFrame, value: str) -> Means:
    """Means of an accuracy, a column, by density, for one method on one network.

    The places are the mean densities of the grouped trials; a density of 0 has no place on a
    logarithmic axis and is left out.

    Raises:
      DataError: as :func:`plot_accuracy_sparsity`.
    """
    groups = [group for _, group in rows.groupby(_levels(rows))]
    density = np.array([1.0 - group["sparsity"].mean() for group in groups])
    intervals = np.array([mean_interval(group[value]) for group in groups]).reshape(-1, 2)
    order = np.argsort(density)
    order = order[density[order] > 0]
    return Means(density[order], *intervals[order].T)


def sparsity_ticks(low: float, high: float) -> list[float]:
    """Round densities, far enough apart on a logarithmic axis, in increasing order.

    If there are fewer than two between the ends of the axis, which are above 0, the ends.
    """
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    candidates = [step * 10.0**power for step in STEPS for power in powers]
    shown = [math.log(density) for density in candidates if low <= density <= min(high, 1.0)]
    ticks = marks.apart(shown, math.log(high / low), TICK_SHARE)
    return [math.exp(value) for value in ticks] if len(ticks) > 1 else [low, min(high, 1.0)]


def sparsity_label(density: float, digits: int = 2) -> str:
    """Sparsity in percent, with ``digits`` digits of the density: ``90``, ``99.5``, ``99.95``."""
    percent = 100.0 * density
    if percent <= 0:
        return "100"
    decimals = max(0, digits - 1 - math.floor(math.log10(percent)))
    return np.format_float_positional(100.0 - percent, decimals, unique=False, trim="-")


def number_text(number: float) -> str:
    """Formats a number of weights: ``432``, ``36.9k``, ``2.36M``."""
    if number < 9999.5:
        return f"{number:.0f}"
    return f"{number / 1e3:.1f}k" if number < 999_950 else f"{number / 1e6:.2f}M"


def _levels(rows: pd.DataFrame) -> pd.Series:
    """Groups rows: those of equal values are trials of the same setting."""
    if rows["strength"].notna().all():
        return rows["strength"]
    counts = rows.groupby("trial").size()
    if counts.nunique() > 1:
        name = rows["method"].iloc[0]
        raise DataError(
            f"the trials of {name!r} have {counts.min()} to {counts.max()} sparsities; give every "
            "trial the same number, or add a column 'strength' by which to group them"
        )
    return rows.groupby("trial")["sparsity"].rank(method="first")


def _draw_panel(
    axes: Axes, rows: pd.DataFrame, dense: pd.DataFrame, styles: Mapping[str, marks.Look]
) -> None:
    lines = [
        (sparsity_points(rows[rows["method"] == name], value), look, linestyle)
        for value, (_, linestyle) in STATES.items()
        for name, look in styles.items()
    ]
    lines = [line for line in lines if np.isfinite(line[0].means).any()]
    every = np.concatenate([points.places for points, _, _ in lines] or [np.ones(1)])
    ratio = float(every.max() / every.min())
    for (points, look, linestyle), shift in zip(lines, marks.shifts(len(lines)), strict=True):
        moved = points._replace(places=points.places / ratio**shift)  # smaller to the right
        marks.draw_line(axes, moved, look, linestyle=linestyle)
    for value, (_, linestyle) in STATES.items():
        marks.draw_band(axes, dense[value], linestyle=linestyle)
    style.cap_percent(axes)
    axes.set_xscale("log")
    margin = max(ratio**0.05, 1.02)
    low, high = float(every.min() / margin), float(every.max() * margin)
    axes.set_xlim(high, low)
    ticks = sparsity_ticks(low, high)
    axes.minorticks_off()
    axes.set_xticks(ticks, [sparsity_label(tick, 3) for tick in ticks])


def _legend(styles: Mapping[str, marks.Look], dense: bool, finetuned: bool) -> list[Line2D]:
    handles = [
        Line2D([], [], color=look.color, marker=look.marker, markersize=4, label=_legend_name(name))
        for name, look in styles.items()
    ]
    if dense:
        handles.append(Line2D([], [], color=marks.BAND_COLOR, label="dense"))
    if finetuned:
        for label, linestyle in STATES.values():
            handles.append(Line2D([], [], color="black", lw=1, linestyle=linestyle, label=label))
    return handles


def _draw_bar(axes: Axes, place: float, width: float, rows: pd.DataFrame, look: marks.Look) -> None:
    mean, half = mean_interval(rows["sparsity"])
    if not np.isfinite(mean):
        return
    axes.barh(place, 100 * mean, height=0.9 * width, color=look.color)
    end = mean
    if np.isfinite(half):
        low, end = np.clip([mean - half, mean + half], 0.0, 1.0)
        sides = [[100 * (mean - low)], [100 * (end - mean)]]
        axes.errorbar(100 * mean, place, xerr=sides, color="black", elinewidth=0.8, capsize=1.5)
    left = float(((1 - rows["sparsity"]) * rows["size"]).mean())
    text = f"{sparsity_label(1 - mean)} %, {number_text(left)}"
    axes.text(100 * end + 1.0, place, text, va="center", fontsize=6)


def _legend_name(name: str) -> str:
    return style.literal(style.shorten(name, 20))
