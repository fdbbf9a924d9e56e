"""Pictures of the arena: the front of rating and time, and ratings with their intervals."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.transforms import Bbox

from fsjax.report import style

#: Inches: height of a line with a name, and of the axis and its title.
_LINE, _HEAD = 0.17, 0.7

#: Half the width of the place around a point from which labels of others keep away, in pixels.
_POINT = 7.0


def plot_ratings(table: pd.DataFrame, ours: Collection[str]) -> Figure:
    """Draws ratings with their 95 % intervals, best first.

    Args:
      table: by selector ``elo``, ``low`` and ``high``.
      ours: names of the selectors that are drawn in colour; the others are grey.
    """
    figure = style.new_figure(_HEAD + _LINE * len(table))
    axes = figure.add_subplot()
    for place, (name, line) in enumerate(table.iterrows()):
        color = style.BLUE if name in ours else style.GREY
        axes.plot([line["low"], line["high"]], [place, place], color=color, linewidth=1.2)
        axes.plot([line["elo"]], [place], "o", color=color, markersize=4)
    axes.set_yticks(range(len(table)), [style.literal(str(name)) for name in table.index])
    axes.set_ylim(len(table) - 0.4, -0.6)
    axes.axvline(1000.0, color="black", linewidth=0.6, linestyle=":")
    style.finish(axes, "", "Elo, 95 % interval; random columns have 1000", "")
    return figure


def plot_front(table: pd.DataFrame, front: Sequence[str], ours: Collection[str]) -> Figure:
    """Draws ratings against CPU seconds; a line joins the selectors of the front.

    Args:
      table: by selector ``elo`` and ``seconds``.
      front: names, the fastest first.
    """
    figure = style.new_figure(5.0)
    axes = figure.add_subplot()
    timed = table.dropna(subset=["seconds"])
    seconds = timed["seconds"].clip(lower=0.01)
    axes.set_xscale("log")
    line = timed.loc[list(front)]
    axes.plot(seconds[line.index], line["elo"], color=style.ORANGE, linewidth=1.0, zorder=1)
    colors = [style.BLUE if name in ours else style.GREY for name in timed.index]
    axes.scatter(seconds, timed["elo"], 16, colors, zorder=2)
    axes.xaxis.set_major_formatter(style.plain_number)
    style.finish(axes, "", "CPU seconds, median over the tables", "Elo")
    # Labels are placed where the axes will be, and do not move them.
    figure.draw_without_rendering()
    points = axes.transData.transform(np.column_stack([seconds, timed["elo"]]))
    around = [Bbox.from_extents(*(point - _POINT), *(point + _POINT)) for point in points]
    taken: list[Bbox] = []
    for number, ((name, elo), color) in enumerate(zip(timed["elo"].items(), colors, strict=True)):
        weight = "bold" if name in front else "normal"
        labels = [
            axes.annotate(
                style.literal(str(name)), (seconds[name], elo), xytext=(3 * side, height),
                fontsize=7, textcoords="offset points", color=color, weight=weight,
                ha="left" if side > 0 else "right", in_layout=False,
            )
            for height in (3, -8, 11, -16, 19, -24) for side in (1, -1)
        ]  # fmt: skip
        boxes = [label.get_window_extent() for label in labels]
        # The first place that covers the fewest labels and points, and does not leave the axes.
        others = taken + around[:number] + around[number + 1 :]
        costs = [box.count_overlaps(others) + (box.x1 > axes.bbox.x1) for box in boxes]
        best = costs.index(min(costs))
        if best > 3:  # a line to a distant label
            axes.annotate(
                "", (seconds[name], elo), xytext=labels[best].xyann, textcoords="offset points",
                arrowprops={"arrowstyle": "-", "color": color, "linewidth": 0.5, "shrinkA": 0},
                in_layout=False,
            )  # fmt: skip
        taken.append(boxes[best])
        for place, label in enumerate(labels):
            if place != best:
                label.remove()
    return figure
