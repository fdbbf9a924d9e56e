"""Shared by the figures: colours and shapes of methods, lines, bands, ticks and numbers."""

import math
from collections.abc import Collection, Iterable
from itertools import cycle
from typing import Any, Final, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.transforms import offset_copy

from experiments.artifacts.statistics.trials import Means, mean_interval
from fsjax.report import style

#: Six colours of Okabe and Ito, and seven shapes: up to 42 methods all look different.
COLORS: Final = (style.BLUE, style.ORANGE, style.GREEN, style.PURPLE, "#E69F00", "#56B4E9")
MARKERS: Final = ("o", "s", "^", "D", "v", "P", "X")

#: The colour of bands, which show a baseline that neither selects nor prunes.
BAND_COLOR: Final = style.GREY

#: Sideways shift between the marks of successive lines, and its maximum over all lines, as shares
#: of the axis.
SHIFT: Final = 0.007
MAX_SHIFT: Final = 0.03

#: Points from the horizontal axis to a legend below its label.
LEGEND_DISTANCE: Final = 32


class Look(NamedTuple):
    """Colour and shape of a method's marks."""

    color: str
    marker: str


def looks(methods: Iterable[str]) -> dict[str, Look]:
    """A colour and a shape for each method, in the order of their first appearance."""
    pairs = zip(cycle(COLORS), cycle(MARKERS), strict=False)
    return {name: Look(*pair) for name, pair in zip(dict.fromkeys(methods), pairs, strict=False)}


def panels(
    names: Collection[str], across: int, height: float, more: float = 0.0, sharey: bool = False
) -> tuple[Figure, list[tuple[str, Axes, bool]]]:
    """Makes a figure with a panel for each name, ``across`` panels per row.

    Returns:
      The figure, whose height is ``height`` inches per row plus ``more``; and for each panel its
      name, its axes, and whether it is the first of its row.
    """
    down = math.ceil(len(names) / across)
    figure, axes_by_name = style.new_figure(down * height + more), []
    for number, name in enumerate(names):
        first = figure.axes[0] if number and sharey else None
        axes = figure.add_subplot(down, across, number + 1, sharey=first)
        axes_by_name.append((name, axes, number % across == 0))
    return figure, axes_by_name


def shifts(number: int) -> np.ndarray:
    """Sideways shifts of lines, so that their error bars do not hide each other.

    They are shares of the axis, increasing and symmetric around 0.
    """
    end = max(min(SHIFT * (number - 1), MAX_SHIFT), 0.0) / 2
    return np.linspace(-end, end, number)


def draw_line(axes: Axes, points: Means, look: Look, label: str = "", linestyle: str = "-") -> None:
    """Draws a line through the means, with bars for finite intervals; broken with hollow marks."""
    face = look.color if linestyle == "-" else "white"
    mark: dict[str, Any] = {"markersize": 4, "markerfacecolor": face, "markeredgewidth": 0.9}
    lines: dict[str, Any] = {
        "linestyle": linestyle,
        "linewidth": 1.1,
        "elinewidth": 0.9,
        "capsize": 2,
    }
    halves = points.halves if np.isfinite(points.halves).any() else None
    places, means = points.places, points.means
    axes.errorbar(places, means, halves, **look._asdict(), **mark, **lines, label=label)


def draw_band(axes: Axes, values: Iterable[float], label: str = "", linestyle: str = "-") -> None:
    """Draws a horizontal line at the mean over trials and a band for its interval."""
    mean, half = mean_interval(values)
    if np.isfinite(mean):
        axes.axhline(
            mean, color=BAND_COLOR, linewidth=1.1, linestyle=linestyle, label=label, zorder=1
        )
    if np.isfinite(half):
        axes.axhspan(mean - half, mean + half, color=BAND_COLOR, alpha=0.2, linewidth=0, zorder=0)


def draw_legend_below(axes: Axes, columns: int = 2) -> None:
    """Draws a legend below the label of the horizontal axis, where it hides nothing."""
    beneath = offset_copy(
        axes.transAxes, axes.get_figure(root=True), y=-LEGEND_DISTANCE, units="points"
    )
    place: dict[str, Any] = {
        "loc": "upper center",
        "bbox_to_anchor": (0.5, 0.0),
        "bbox_transform": beneath,
    }
    spaces: dict[str, Any] = {"borderpad": 0.0, "columnspacing": 1.0, "handletextpad": 0.5}
    axes.legend(fontsize=7, frameon=False, ncols=columns, **place, **spaces)


def apart(values: Iterable[float], span: float, least: float) -> list[float]:
    """Selects values on an axis that keep a distance from each other; returns them sorted.

    Args:
      values: the most important first.
      span: the length of the axis.
      least: the smallest distance, as a share of the span.
    """
    spaced: list[float] = []
    for value in values:
        if all(abs(value - other) >= least * span for other in spaced):
            spaced.append(value)
    return sorted(spaced)


def short_number(value: float) -> str:
    """Formats a number in few characters: ``0.1``, ``50``, ``8.2e-4``."""
    if not np.isfinite(value):
        return "-"
    if value == 0 or 0.01 <= abs(value) < 1e4:
        return f"{value:.2g}" if abs(value) < 100 else f"{value:.0f}"
    return scientific(value)


def scientific(value: float) -> str:
    """Formats a number in scientific notation: ``8.2e-4``, ``1e-3``, ``0``."""
    text = np.format_float_scientific(value, 1, unique=False, trim="-", exp_digits=1)
    return text.replace(".e", "e").replace("e+", "e") if value else "0"
