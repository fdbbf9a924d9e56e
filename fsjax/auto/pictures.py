"""Pictures of a selection: scores by the number of columns, and the columns themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullLocator

from fsjax.auto.compete import ALL
from fsjax.auto.models import METRICS
from fsjax.report import style

if TYPE_CHECKING:
    from fsjax.auto.selection import Selection

#: Colour, marker and dashes by method; others take the rest in turn.
_LOOKS: Final = {
    "random": (style.GREY, "", ":"),
    "univariate": ("#E69F00", "s", "-"),
    "l1": (style.BLUE, "o", "-"),
    "forest": (style.GREEN, "^", "-"),
}
_REST: Final = (style.ORANGE, style.PURPLE, "#56B4E9", "#000000", "#8B5A2B", "#6A3D9A", "#B15928")

#: Bars of columns, at most.
_BARS: Final = 25


def plot_curves(selection: Selection) -> Figure:
    """The score against the number of columns for every method, with one standard error.

    A grey band is within one standard error of the best, a ring marks the choice.
    """
    facts, metric = selection.facts, METRICS[selection.metric]
    figure = style.new_figure(5.0)
    axes = figure.subplots()
    low, best = facts["best_score"] - facts["standard_error"], facts["best_score"]
    axes.axhspan(low, best, color="#9AA3AD", alpha=0.25, linewidth=0)
    axes.axhline(
        selection.score_chance, color=style.GREY, linewidth=1, linestyle=(0, (1, 3)),
        label="without any column",
    )  # fmt: skip
    rest = iter(_REST * 5)
    for name, rows in selection.curves.groupby("method", sort=False):
        rows = rows.sort_values("num_features")
        if name == ALL:
            mean = rows["mean"].iloc[0]
            axes.axhline(mean, color="black", linewidth=1, linestyle="--", label="all columns")
            continue
        color, marker, line = _LOOKS.get(str(name)) or (next(rest), "D", "-")
        axes.errorbar(
            rows["num_features"], rows["mean"], rows["error"], color=color, marker=marker,
            linestyle=line, markersize=4, linewidth=1.4, elinewidth=0.8, label=str(name),
        )  # fmt: skip
    if selection.method != ALL and selection.better_than_chance:
        size = _chosen_size(selection)
        style.circle(axes, [size], [selection.score_at_choice], 140, 1.6, "choice")
    sizes = sorted(set(selection.curves.loc[selection.curves["method"] != ALL, "num_features"]))
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(FixedLocator(sizes))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(style.plain_number)
    axes.set_ylim(bottom=_bottom(selection))
    style.finish(axes, "", "number of columns", f"cross-validated {metric.label}", size=9)
    figure.legend(fontsize=8, loc="outside lower center", ncols=5, frameon=False)
    return figure


def plot_columns(selection: Selection) -> Figure | None:
    """How often halves of the rows select the columns; ``None`` where no half was tried."""
    table = selection.table[selection.table["frequency"].notna()]
    ranked = table.sort_values(["selected", "frequency"], ascending=False, kind="stable")
    ranked = ranked[(ranked["selected"] == 1) | (ranked["frequency"] > 0)].head(_BARS)
    if not len(ranked):
        return None
    chosen = (ranked["selected"] == 1).to_numpy()
    figure = style.new_figure(0.9 + 0.24 * max(len(ranked), style.MIN_BARS))
    axes = figure.subplots()
    names = [style.literal(style.shorten(name)) for name in ranked["column"]]
    color = np.where(chosen, style.BLUE, "#B0B0B0")
    style.draw_bars(axes, ranked["frequency"].to_numpy(), names, color, "halves of the rows")
    return figure


def _chosen_size(selection: Selection) -> int:
    rows = selection.curves[selection.curves["method"] == selection.method]
    near = (rows["mean"] - selection.score_at_choice).abs().idxmin()
    return int(rows.loc[near, "num_features"])


def _bottom(selection: Selection) -> float | None:
    """An axis of R2 or D2 does not go far below 0, where nothing is to be seen."""
    lowest = float((selection.curves["mean"] - selection.curves["error"]).min())
    return max(lowest, -0.5) - 0.05 if selection.metric in ("r2", "d2") else None
