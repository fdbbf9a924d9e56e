"""Draws the rows of any figure: lines, bars and maps of pixels in panels."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy import stats

from experiments.artifacts.figures import marks
from experiments.artifacts.statistics.trials import Means
from experiments.papers.equivalence import CONFIDENCE
from experiments.papers.figures.entries import Entry
from experiments.papers.figures.rows import COST
from fsjax.methods import METHODS
from fsjax.report import style

#: Inches of a row of panels, and of the legend.
HEIGHT, LEGEND = 2.1, 0.35

#: Width of a picture in inches: it stands beside text.
WIDTH = 6.4

#: One more colour than the figures of a launcher have.
SEVENTH = marks.Look(style.GREY, "X")


def half_width(std: float, seeds: float) -> float:
    """Half the width of the 90 % interval of a mean; NaN for fewer than two seeds."""
    if seeds < 2:
        return math.nan
    quantile = float(stats.t.ppf(0.5 + CONFIDENCE / 2, seeds - 1))
    return quantile * std / math.sqrt(seeds - 1)


def draw(entry: Entry, table: pd.DataFrame) -> Figure:
    """The picture of a figure from its rows, in the way that its entry says."""
    picture = entry.picture
    table = table[table["metric"] != COST]
    if picture.metrics:
        table = table[table["metric"].isin(picture.metrics)]
    series = list(picture.series) or list(dict.fromkeys(table["series"]))
    table = table[table["series"].isin(series)]
    is_map = table["metric"].isin(picture.maps)
    # A map has one panel for each series, all others one for all of them; maps come last.
    table = table.assign(part=table["series"].where(is_map, ""))
    table = pd.concat([table[~is_map], table[is_map]])
    parts = {key: part for key, part in table.groupby(["panel", "metric", "part"], sort=False)}
    across = min(picture.across, len(parts))
    rows = math.ceil(len(parts) / across)
    wide = WIDTH if across > 1 else 0.7 * WIDTH
    figure = style.new_figure(rows * HEIGHT + LEGEND, width=wide)
    looks = {**marks.looks(series), **dict.fromkeys(series[6:7], SEVENTH)}
    several = len(set(table.loc[~is_map, "metric"])) > 1
    for number, ((panel, metric, name), part) in enumerate(parts.items()):
        axes = figure.add_subplot(rows, across, number + 1)
        if metric in picture.maps:
            _map(axes, part, picture.width, ", ".join(filter(None, (panel, label(name)))))
            continue
        drawn = _bars if picture.kind == "bars" else _lines
        drawn(axes, part, looks)
        y = metric.replace("_", " ") if several or not picture.y else picture.y
        first = number % across == 0 or several
        last = number >= sum(key[1] not in picture.maps for key in parts) - across
        style.finish(axes, str(panel), picture.x if last else "", y if first else "")
        axes.title.set_fontsize(8)
        log = picture.log if metric in (picture.log_metrics or (metric,)) else ""
        for name in log:
            axes.set(**{f"{name}scale": "log"})
        if picture.kind == "bars" and "y" not in log and part["mean"].min() >= 0.0:
            axes.set_ylim(bottom=0.0)
    if len(series) > 1:
        handles = {
            label: handle
            for axes in figure.axes
            for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
        }
        figure.legend(
            [handles[name] for name in series if name in handles],
            [label(name) for name in series if name in handles],
            loc="outside lower center",
            ncols=min(int(wide / 1.5), len(handles)),
            fontsize=7,
            frameon=False,
        )
    return figure


def label(series: str) -> str:
    """The name of a series in the picture; a method's is that of its estimator."""
    name, comma, rest = series.partition(",")
    known = METHODS.get(name)
    return f"{known.registration.estimator if known else name}{comma}{rest}"


def _places(values: Sequence[str]) -> tuple[np.ndarray, list[str] | None]:
    """Places of values on an axis, and their words if they are not numbers."""
    try:
        return np.array([float(value) for value in values]), None
    except ValueError:
        return np.arange(len(values), dtype=float), list(values)


def _lines(axes: Axes, part: pd.DataFrame, looks: dict[str, marks.Look]) -> None:
    every = list(dict.fromkeys(part["x"]))
    numbers, words = _places(every)
    place = dict(zip(every, numbers, strict=True))
    for name, rows in part.groupby("series", sort=False):
        halves = [half_width(*pair) for pair in zip(rows["std"], rows["seeds"], strict=True)]
        where = np.array([place[x] for x in rows["x"]])
        points = Means(where, rows["mean"].to_numpy(), np.array(halves))
        marks.draw_line(axes, points, looks[str(name)], str(name))
    if words is not None:
        axes.set_xticks(numbers, words)


def _bars(axes: Axes, part: pd.DataFrame, looks: dict[str, marks.Look]) -> None:
    every = list(dict.fromkeys(part["x"]))
    names = [name for name in looks if name in set(part["series"])]
    width = 0.8 / len(names)
    for number, name in enumerate(names):
        rows = part[part["series"] == name]
        where = np.array([every.index(x) for x in rows["x"]], float)
        where += (number - (len(names) - 1) / 2) * width
        halves = [half_width(*pair) for pair in zip(rows["std"], rows["seeds"], strict=True)]
        axes.bar(where, rows["mean"], 0.9 * width, color=looks[name].color, label=name)
        if np.isfinite(halves).any():
            axes.errorbar(
                where, rows["mean"], halves, fmt="none", ecolor="black", elinewidth=0.8, capsize=2
            )
    axes.set_xticks(*((range(len(every)), every) if every != [""] else ([], [])))
    if sum(map(len, every)) > 40:
        axes.set_xticks(range(len(every)), every, rotation=30, ha="right", rotation_mode="anchor")


def _map(axes: Axes, part: pd.DataFrame, width: int, title: str) -> None:
    values = part.sort_values("x", key=lambda x: x.astype(int))["mean"].to_numpy()
    image = axes.imshow(values.reshape(-1, width), cmap=style.COLORS)
    axes.set_title(title, fontsize=8)
    axes.set_xticks([])
    axes.set_yticks([])
    bar = axes.get_figure(root=True).colorbar(image, ax=axes, shrink=0.9)
    bar.ax.tick_params(labelsize=6)
