"""The critical-difference diagram of Demsar (JMLR 2006): mean ranks, and which do not differ."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from matplotlib.figure import Figure

from experiments.artifacts.statistics.ranks import Ranks, cliques
from fsjax.report import style

#: Inches: height of a line with a name, and of the axis above.
_LINE, _HEAD = 0.19, 0.9

#: Width of a bar that joins methods, in points.
_BAR: Final = 3.0


def plot_ranks(ranks: Ranks, ours: Collection[str]) -> Figure:
    """Draws mean ranks on an axis, best at the left; bars join methods that do not differ.

    Args:
      ours: names of the methods that are drawn in colour; the others are grey.
    """
    names, values = list(ranks.mean.index), ranks.mean.to_numpy()
    joined = cliques(ranks.mean, ranks.critical_difference)
    left = (len(names) + 1) // 2
    figure = style.new_figure(_HEAD + _LINE * (left + len(joined)))
    axes = figure.add_subplot()
    best, worst = float(int(values.min())), float(int(values.max()) + 1)
    span = worst - best
    axes.set_xlim(best - 0.45 * span, worst + 0.45 * span)
    axes.axis("off")
    axes.plot([best, worst], [0, 0], color="black", linewidth=1.0)
    step = max(1, round(span / 8))
    for tick in range(int(best), int(worst) + 1, step):
        axes.plot([tick, tick], [0, 0.35], color="black", linewidth=1.0)
        axes.text(tick, 0.5, str(tick), ha="center", va="bottom", fontsize=8)
    for number, (first, last) in enumerate(joined):
        depth = -0.6 - 0.8 * number
        axes.plot(values[[first, last]], [depth, depth], color="black", linewidth=_BAR,
                  solid_capstyle="butt")  # fmt: skip
    below = -0.8 - 0.8 * len(joined)
    for place, (name, value) in enumerate(zip(names, values, strict=True)):
        near = place < left
        depth = below - (place if near else len(names) - 1 - place)
        edge, side = (best - 0.03 * span, "right") if near else (worst + 0.03 * span, "left")
        color = style.BLUE if name in ours else "dimgrey"
        axes.plot([value, value, edge], [0, depth, depth], color=color, linewidth=0.7)
        text = f"{name}  {value:.1f}" if near else f"{value:.1f}  {name}"
        gap = -0.01 * span if near else 0.01 * span
        axes.text(edge + gap, depth, text, ha=side, va="center", fontsize=8, color=color)
    top = 2.2
    end = min(best + ranks.critical_difference, worst)
    axes.plot([best, end], [top, top], color="black", linewidth=1.0)
    axes.text(end + 0.02 * span, top, f"critical difference {ranks.critical_difference:.1f}",
              va="center", fontsize=8)  # fmt: skip
    axes.set_ylim(below - left, top + 0.7)
    return figure
