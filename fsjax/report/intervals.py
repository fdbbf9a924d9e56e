"""Means over trials with their confidence intervals, and how the figures show them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.transforms import offset_copy
from scipy import stats

from fsjax.errors import ConfigError, DataError
from fsjax.report import style

if TYPE_CHECKING:
    import pandas as pd

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


class Means(NamedTuple):
    """Means over trials, one for each of n places.

    Attributes:
      places: ``(n,)``, increasing.
      means: ``(n,)``.
      halves: ``(n,)`` half widths of the intervals; NaN where there is a single trial.
    """

    places: np.ndarray
    means: np.ndarray
    halves: np.ndarray


def mean_interval(values: Iterable[float], confidence: float = 0.95) -> tuple[float, float]:
    """Mean over trials and half the width of its confidence interval (Student's t).

    Args:
      values: one for each trial; those that are not finite do not count.
      confidence: share of such intervals that hold the true mean, above 0 and below 1.

    Returns:
      The mean, NaN where no value is finite, and the half width, NaN for fewer than two.

    Raises:
      ConfigError: if the confidence is out of its range.
    """
    if not 0.0 < confidence < 1.0:
        raise ConfigError(f"confidence={confidence!r}; choose a number above 0 and below 1")
    array = np.asarray(list(values), np.float64)
    array = array[np.isfinite(array)]
    if array.size < 2:
        return float(array[0]) if array.size else np.nan, np.nan
    quantile = stats.t.ppf(0.5 + confidence / 2, array.size - 1)
    return float(array.mean()), float(quantile * array.std(ddof=1) / np.sqrt(array.size))


def to_table(
    rows: pd.DataFrame | Sequence[Mapping[str, Any]],
    names: Sequence[str],
    numbers: Sequence[str],
    optional: Sequence[str] = (),
) -> pd.DataFrame:
    """A copy of the rows with checked columns.

    Args:
      rows: a DataFrame or dicts, one for each trial of each setting.
      names: columns that they must have, and that stay as they are.
      numbers: columns that they must have, and that become float64; ``None`` becomes NaN.
      optional: columns of numbers that become NaN where they are missing.

    Raises:
      DataError: if there are no rows, a column is missing, or a number is none.
    """
    import pandas as pd

    table = pd.DataFrame(rows)
    missing = [name for name in (*names, *numbers) if name not in table.columns]
    if missing or table.empty:
        what = "no rows" if table.empty else f"no column {missing[0]!r}"
        raise DataError(f"the table has {what}; give {', '.join((*names, *numbers))}")
    given = {name: table.get(name, np.nan) for name in (*numbers, *optional)}
    try:
        return table.assign(**given).astype(dict.fromkeys(given, np.float64))
    except (TypeError, ValueError) as error:
        raise DataError(f"{', '.join(given)} must be numbers: {error}") from error


def means_by(table: pd.DataFrame, place: str, value: str) -> Means:
    """Mean and 95 % interval of a column at each value of another one; NaN places are left out."""
    groups = [(at, mean_interval(rows[value])) for at, rows in table.groupby(place)]
    places, intervals = [at for at, _ in groups], [interval for _, interval in groups]
    means, halves = np.asarray(intervals, np.float64).reshape(-1, 2).T
    return Means(np.asarray(places, np.float64), means, halves)


def looks(methods: Iterable[str]) -> dict[str, Look]:
    """A colour and a shape for each method, in the order of their first appearance."""
    names = list(dict.fromkeys(methods))
    return {
        name: Look(COLORS[number % len(COLORS)], MARKERS[number % len(MARKERS)])
        for number, name in enumerate(names)
    }


def shifts(number: int) -> np.ndarray:
    """How far each of so many lines is moved sideways, because their bars would hide each other.

    Args:
      number: of lines, n.

    Returns:
      ``(n,)``, increasing, around 0, as shares of the axis.
    """
    total = min(SHIFT * (number - 1), MAX_SHIFT)
    return np.linspace(-total / 2, total / 2, number) if number > 1 else np.zeros(number)


def draw_line(
    axes: Axes,
    points: Means,
    look: Look,
    label: str = "",
    linestyle: str = "-",
) -> None:
    """A line through the means, with a bar for each interval; no bar where it is NaN.

    Broken lines have hollow marks.
    """
    axes.errorbar(
        points.places,
        points.means,
        yerr=points.halves if np.isfinite(points.halves).any() else None,
        color=look.color,
        marker=look.marker,
        markersize=4,
        markerfacecolor=look.color if linestyle == "-" else "white",
        markeredgewidth=0.9,
        linestyle=linestyle,
        linewidth=1.1,
        elinewidth=0.9,
        capsize=2,
        label=label,
    )


def draw_band(
    axes: Axes, values: Iterable[float], label: str = "", linestyle: str = "-"
) -> tuple[float, float]:
    """A horizontal line at the mean over trials and a band for its interval, across the axes.

    Returns:
      The mean and the half width.
    """
    mean, half = mean_interval(values)
    if np.isfinite(mean):
        axes.axhline(
            mean, color=BAND_COLOR, linewidth=1.1, linestyle=linestyle, label=label, zorder=1
        )
    if np.isfinite(half):
        axes.axhspan(mean - half, mean + half, color=BAND_COLOR, alpha=0.2, linewidth=0, zorder=0)
    return mean, half


def finish(axes: Axes, title: str = "", xlabel: str = "", ylabel: str = "") -> None:
    """Labels, grid and frame, as all these figures have them."""
    axes.set_title(style.literal(style.shorten(title)), fontsize=9)
    axes.set_xlabel(xlabel, fontsize=8)
    axes.set_ylabel(ylabel, fontsize=8)
    axes.tick_params(labelsize=7)
    axes.grid(alpha=0.25, linewidth=0.5)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def draw_legend_below(axes: Axes, columns: int = 2) -> None:
    """A legend beneath the label of the horizontal axis, where it hides nothing."""
    beneath = offset_copy(axes.transAxes, axes.figure, y=-LEGEND_DISTANCE, units="points")
    axes.legend(
        fontsize=7,
        frameon=False,
        loc="upper center",
        bbox_to_anchor=(0.5, 0.0),
        bbox_transform=beneath,
        borderpad=0.0,
        ncols=columns,
        columnspacing=1.0,
        handletextpad=0.5,
    )


def cap_percent(axes: Axes) -> None:
    """Ends a vertical axis of percentages a little above 100 at the latest."""
    low, high = axes.get_ylim()
    axes.set_ylim(low, min(high, 100.0 + 0.03 * (high - low)))


def apart(values: Iterable[float], span: float, least: float) -> list[float]:
    """The values that keep a distance, earlier ones first.

    Args:
      values: places on an axis, the most important first.
      span: length of the axis.
      least: smallest distance between two that are kept, as a share of the span.

    Returns:
      Those kept, in increasing order.
    """
    kept: list[float] = []
    for value in values:
        if all(abs(value - other) >= least * span for other in kept):
            kept.append(value)
    return sorted(kept)


def short_number(value: float, digits: int = 2) -> str:
    """``0.1``, ``50``, ``8.2e-4``: a number in few signs, small ones with an exponent."""
    if not np.isfinite(value):
        return "-"
    if value == 0 or 0.01 <= abs(value) < 1e4:
        return f"{value:.{digits}g}" if abs(value) < 10**digits else f"{value:.0f}"
    return scientific(value, digits)


def scientific(value: float, digits: int = 2) -> str:
    """``8.2e-4``, ``1e-3``, ``0``."""
    if value == 0:
        return "0"
    mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
    mantissa = mantissa.rstrip("0").rstrip(".") if "." in mantissa else mantissa
    return f"{mantissa}e{int(exponent)}"
