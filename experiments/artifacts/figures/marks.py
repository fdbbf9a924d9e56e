"""How the figures show methods: colours, shapes, lines of means, bands, ticks and numbers."""

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

#: Six colours of Okabe and Ito, and seven shapes: also beyond six methods no two look alike.
COLORS: Final = (style.BLUE, style.ORANGE, style.GREEN, style.PURPLE, "#E69F00", "#56B4E9")
MARKERS: Final = ("o", "s", "^", "D", "v", "P", "X")

#: Of bands: what neither selects nor prunes, for comparison.
BAND_COLOR: Final = style.GREY

#: Sideways shift of one line's marks against the next one's, and of the first against the last at
#: most, as shares of the axis.
SHIFT: Final = 0.007
MAX_SHIFT: Final = 0.03

#: Points from the horizontal axis to a legend beneath its label.
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
    """A figure with a panel for each name, so many in a row, and which are the first of their row.

    Rows have a height in inches, and the figure some more.
    """
    down = math.ceil(len(names) / across)
    figure, axes_by_name = style.new_figure(down * height + more), []
    for number, name in enumerate(names):
        first = figure.axes[0] if number and sharey else None
        axes = figure.add_subplot(down, across, number + 1, sharey=first)
        axes_by_name.append((name, axes, number % across == 0))
    return figure, axes_by_name


def shifts(number: int) -> np.ndarray:
    """How far each of so many lines is moved sideways, because their bars would hide each other.

    Shares of the axis, increasing, around 0.
    """
    end = max(min(SHIFT * (number - 1), MAX_SHIFT), 0.0) / 2
    return np.linspace(-end, end, number)


def draw_line(axes: Axes, points: Means, look: Look, label: str = "", linestyle: str = "-") -> None:
    """A line through the means, broken ones with hollow marks; bars for finite intervals."""
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
    """A horizontal line at the mean over trials and a band for its interval, across the axes."""
    mean, half = mean_interval(values)
    if np.isfinite(mean):
        axes.axhline(
            mean, color=BAND_COLOR, linewidth=1.1, linestyle=linestyle, label=label, zorder=1
        )
    if np.isfinite(half):
        axes.axhspan(mean - half, mean + half, color=BAND_COLOR, alpha=0.2, linewidth=0, zorder=0)


def draw_legend_below(axes: Axes, columns: int = 2) -> None:
    """A legend beneath the label of the horizontal axis, where it hides nothing."""
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
    """Places on an axis, the most important first, that keep a distance; in increasing order.

    The distance is at least so large a share of the span, the length of the axis.
    """
    spaced: list[float] = []
    for value in values:
        if all(abs(value - other) >= least * span for other in spaced):
            spaced.append(value)
    return sorted(spaced)


def short_number(value: float, digits: int = 2) -> str:
    """``0.1``, ``50``, ``8.2e-4``: a number in few signs, small ones with an exponent."""
    if not np.isfinite(value):
        return "-"
    if value == 0 or 0.01 <= abs(value) < 1e4:
        return f"{value:.{digits}g}" if abs(value) < 10**digits else f"{value:.0f}"
    return scientific(value, digits)


def scientific(value: float, digits: int = 2) -> str:
    """``8.2e-4``, ``1e-3``, ``0``."""
    text = np.format_float_scientific(value, digits - 1, unique=False, trim="-", exp_digits=1)
    return text.replace(".e", "e").replace("e+", "e") if value else "0"
