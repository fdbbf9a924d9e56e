"""Agreement of the seeds: the columns that they selected most often, and the stability."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from fsjax.engine.result import FitResult
from fsjax.engine.stability import consensus, stability_metrics
from fsjax.errors import check_whole
from fsjax.report import style
from fsjax.report.selection import set_notes

#: Colours of the bars: of the consensus columns and of the others.
CONSENSUS_COLOR = style.BLUE
OTHER_COLOR = "#B0B0B0"


def plot_stability(
    result: FitResult,
    feature_names: Sequence[str] | None = None,
    top: int = 30,
    runs: str | None = None,
) -> Figure:
    """Selection frequencies of the columns, and the stability of the selection.

    There is a bar for each column that any seed selected, in the order of
    :func:`fsjax.engine.stability.consensus`, so that the first K are the consensus columns. The
    title has the stability and its interval, which is cut off at 1, the largest stability.

    Args:
      result: what ``fsjax.fit`` returned, for D columns and any number of seeds.
      feature_names: D names; by default the result's own, or ``x0``, ``x1``, ...
      top: at most this many bars.
      runs: name of the runs on the axis; by default seeds, or halves of the rows for results of
        :func:`fsjax.fit_subsamples`.

    Returns:
      The figure, 1200 pixels wide.

    Raises:
      DataError: if there are not D names.
      ConfigError: if ``top`` is not a whole number from 1.
    """
    columns = result.scores.shape[1]
    frequency = result.selection_frequency
    bars = min(check_whole("top", top), np.count_nonzero(frequency))
    shown = consensus(result.selected, result.scores, columns)[:bars]
    names = style.axis_names(result, feature_names, shown)

    stability = stability_text(stability_metrics(result), result.runs)
    height = 1.75 + 0.19 * max(len(shown), 6)
    figure = style.new_figure(height, title=f"{style.title_of(result)}\n{stability}")
    axes = figure.add_subplot()
    in_consensus = np.arange(len(shown)) < result.num_features
    colors = np.where(in_consensus, CONSENSUS_COLOR, OTHER_COLOR)
    style.draw_bars(axes, frequency[shown], names, colors, runs or style.all_runs(result))
    handles = [Patch(color=CONSENSUS_COLOR, label=f"consensus ({result.num_features})")]
    if not in_consensus.all():
        handles.append(Patch(color=OTHER_COLOR, label="others"))
    # Beside the axes, where the legend hides no bar.
    look = {"fontsize": 8, "frameon": False, "borderaxespad": 0.0}
    axes.legend(handles=handles, loc="upper left", bbox_to_anchor=(1.01, 1.0), **look)
    set_notes(figure, result, len(shown))
    return figure


def stability_text(metrics: Mapping[str, Any], run: str = "seed") -> str:
    """The result of :func:`fsjax.engine.stability.stability_metrics` as text.

    For example ``stability 0.62 (95 % interval 0.51 to 0.73)``, or why there is none.
    """
    value, interval = metrics["stability"], metrics["interval"]
    if metrics["num_seeds"] == 1:
        return f"only one {run}: stability needs two or more"
    if value is None:
        return "stability not defined: every column is selected"
    if interval is None:
        return f"stability {value:z.2f} (two {style.plural(run)}: no interval)"
    lower, upper, percent = interval[0], min(interval[1], 1.0), 100 * metrics["level"]
    return f"stability {value:z.2f} ({percent:g} % interval {lower:z.2f} to {upper:z.2f})"
