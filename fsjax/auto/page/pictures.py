"""Pictures of a selection: scores by number of columns, selection frequencies, decoys."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullLocator

from fsjax.auto.answer.selection_record import SelectionRecord
from fsjax.auto.certainty.false_discovery import statistics
from fsjax.auto.contest.method_names import ALL, title
from fsjax.auto.contest.scoring import metric_named
from fsjax.auto.page.charts import BLUE, GREEN, GREY, ORANGE, PURPLE, WIDTH
from fsjax.report.style import circle, draw_bars, finish, literal, new_figure, plain_number
from fsjax.report.wording import shorten, shorten_all

#: Colour, marker and line style by method; other methods take the remaining colours in turn.
_LOOKS: Final = {
    "random": (GREY, "", ":"),
    "univariate": ("#E69F00", "s", "-"),
    "l1": (BLUE, "o", "-"),
    "forest": (GREEN, "^", "-"),
}
_REST: Final = (ORANGE, PURPLE, "#56B4E9", "#000000", "#8B5A2B", "#6A3D9A", "#B15928")

#: Characters of a name beside a bar, and the fewest bars for which a figure has room.
_NAME_LENGTH, _MIN_BARS = 32, 6

#: Most bars of columns, and most ranks of columns beside decoys.
_BARS, _RANKS = 25, 60

#: The false discovery rate of the line, if none was requested.
_RATE = 0.1

#: Most methods with a colour of their own; the others are thin lines.
_NAMED = 8

#: Below this width in inches, labels are short.
_SHORT = 6.0


def plot_contest(selection: SelectionRecord, width: float = WIDTH) -> Figure:
    """The score against the number of columns for every method, with one standard error.

    The grey band is within one standard error of the best score, and a ring marks the choice.
    Methods beyond the :data:`_NAMED` most important ones are thin grey lines.
    """
    facts, label = selection.facts, metric_named(selection.metric, selection.task).label
    narrow = width < _SHORT
    figure = new_figure(5.0 if not narrow else 4.4, width=width)
    axes = figure.subplots()
    low, best = facts.best_score - facts.standard_error, facts.best_score
    axes.axhspan(low, best, color="#9AA3AD", alpha=0.25, linewidth=0)
    axes.axhline(
        selection.score_chance, color=GREY, linewidth=1, linestyle=(0, (1, 3)),
        label="without any column",
    )  # fmt: skip
    rest = iter(_REST)
    named = _named(selection)
    for name, rows in selection.curves.groupby("method", sort=False):
        ordered = rows.sort_values("num_features")
        if name == ALL:
            mean = ordered["mean"].iloc[0]
            axes.axhline(mean, color="black", linewidth=1, linestyle="--", label="all columns")
            continue
        if name not in named:
            axes.plot(
                ordered["num_features"], ordered["mean"], color=GREY, linewidth=0.7,
                alpha=0.5, zorder=1,
            )  # fmt: skip
            continue
        color, marker, line = _LOOKS.get(str(name)) or (next(rest), "D", "-")
        axes.errorbar(
            ordered["num_features"], ordered["mean"], ordered["error"], color=color,
            marker=marker, linestyle=line, markersize=4, linewidth=1.4, elinewidth=0.8,
            label=literal(shorten(title(str(name)), 24 if narrow else 32)),
        )  # fmt: skip
    if selection.method != ALL and selection.better_than_chance:
        size = _chosen_size(selection)
        circle(axes, [size], [selection.score_at_choice], 140, 1.6, "choice")
    sizes = sorted(set(selection.curves.loc[selection.curves["method"] != ALL, "num_features"]))
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(FixedLocator(_spaced(sizes, 2.4 if narrow else 1.3)))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(plain_number)
    axes.set_ylim(bottom=_bottom(selection))
    vertical = "" if narrow else f"cross-validated {label}"
    finish(axes, "", "number of columns", vertical, size=9)
    figure.legend(
        fontsize=7 if narrow else 8, loc="outside lower center", ncols=2 if narrow else 4,
        columnspacing=1.0, frameon=False,
    )  # fmt: skip
    return figure


def plot_columns(selection: SelectionRecord, width: float = WIDTH) -> Figure | None:
    """Selection frequencies; ``None`` if no half of the rows ran, or none selected a column."""
    table = selection.table[selection.table["frequency"].notna()]
    ranked = table.sort_values(["selected", "frequency"], ascending=False, kind="stable")
    ranked = ranked[(ranked["selected"] == 1) | (ranked["frequency"] > 0)].head(_BARS)
    if not len(ranked):
        return None
    chosen = (ranked["selected"] == 1).to_numpy()
    figure = new_figure(0.9 + 0.24 * max(len(ranked), _MIN_BARS), width=width)
    axes = figure.subplots()
    length = _NAME_LENGTH if width >= _SHORT else 20
    names = list(map(literal, shorten_all(ranked["column"], length)))
    color = np.where(chosen, BLUE, "#B0B0B0")
    draw_bars(axes, ranked["frequency"].to_numpy(), names, color, "halves of the rows")
    return figure


def plot_decoys(selection: SelectionRecord, width: float = WIDTH) -> Figure | None:
    """By how much columns are more important than their decoys, and decoys than their columns.

    Both are in descending order. The line is the smallest gain at which the estimated false
    discovery rate is at most the requested one (0.1 by default). ``None`` if no decoys ran.
    """
    if selection.decoy_scores is None:
        return None
    rate = _RATE if selection.fdr is None else selection.fdr
    gains, decoy_gains, threshold = statistics(*selection.decoy_scores, rate)
    ranked = np.sort(gains)[::-1][:_RANKS]
    rank = np.arange(1, len(ranked) + 1)
    decoys = -np.sort(-decoy_gains, axis=1)[:, : len(ranked)]
    figure = new_figure(3.6, width=width)
    axes = figure.subplots()
    axes.fill_between(
        rank, decoys.min(axis=0), decoys.max(axis=0), color=ORANGE, alpha=0.3, linewidth=0
    )
    axes.plot(rank, decoys.mean(axis=0), color=ORANGE, linewidth=1.4, label="decoys")
    axes.plot(rank, ranked, color=BLUE, linewidth=0.8)
    axes.scatter(
        rank, ranked, s=16, linewidths=1.0, edgecolors=BLUE, zorder=3,
        facecolors=np.where(ranked >= threshold, BLUE, "none"), label="columns",
    )  # fmt: skip
    if np.isfinite(threshold):
        axes.axhline(
            threshold, color="black", linewidth=1, linestyle="--",
            label=f"false discovery rate {100 * rate:g} %",
        )  # fmt: skip
    # Below 0, columns and decoys mirror each other.
    axes.set_ylim(bottom=min(0.0, float(ranked.min())))
    finish(axes, "", "rank", "gain in importance", size=9)
    figure.legend(fontsize=8, loc="outside lower center", ncols=3, frameon=False)
    return figure


def _named(selection: SelectionRecord) -> set[str]:
    """Methods with a colour of their own: the choice, random, univariate, and the best others."""
    curves = selection.curves[~selection.curves["method"].isin([ALL])]
    best = curves.groupby("method")["mean"].max().sort_values(ascending=False, kind="stable")
    first = [selection.method, "random", "univariate", *best.index]
    return set(list(dict.fromkeys(name for name in first if name in best.index))[:_NAMED])


def _spaced(sizes: list[int], factor: float) -> list[int]:
    """Sizes that differ by at least this factor, so that their labels do not overlap."""
    kept = sizes[:1]
    for size in sizes[1:]:
        if size >= factor * kept[-1]:
            kept.append(size)
    return kept


def _chosen_size(selection: SelectionRecord) -> int:
    rows = selection.curves[selection.curves["method"] == selection.method]
    near = (rows["mean"] - selection.score_at_choice).abs().idxmin()
    return int(rows.loc[near, "num_features"])


def _bottom(selection: SelectionRecord) -> float | None:
    """Lower end of an axis of R2 or D2, which does not extend far below 0."""
    lowest = float((selection.curves["mean"] - selection.curves["error"]).min())
    known = selection.metric in ("r2", "d2") and math.isfinite(lowest)
    return max(lowest, -0.5) - 0.05 if known else None
