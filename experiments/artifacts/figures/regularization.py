"""AUC and weight norms of a network by regularizer and strength (BinMask, Table 1)."""

import math
from collections.abc import Sequence
from typing import Final

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.container import ErrorbarContainer
from matplotlib.figure import Figure
from scipy import stats

from experiments.artifacts.figures import marks
from experiments.artifacts.statistics.trials import (
    Rows,
    interval_text,
    mean_interval,
    means_by,
    to_table,
)
from experiments.artifacts.text_tables import aligned
from fsjax.report import style

#: Names of logistic regression, which is drawn as a band; letter case does not matter.
BASELINE: Final = frozenset({"lr", "logistic regression", "logistic_regression"})

#: A setting counts as not worse than the best one if the test gives more than this p (Table 1).
NOT_WORSE: Final = 0.3

AUCS: Final = ("train_auc", "valid_auc", "test_auc")
NORMS: Final = ("l0", "l1", "l2")

HEADER: Final = ("method", "strength", "train AUC", "valid AUC", "test AUC", "L0", "L1", "L2")

#: Signs after the test AUC of the best setting, of those that are not worse, and of the others.
BEST, AS_GOOD, WORSE = "*", "~", " "

#: Panels per row if each has at most ``FEW`` strengths; otherwise there are two.
ACROSS: Final = 4
FEW: Final = 6

#: Height of a panel in inches, and the largest number of labels on its axis.
PANEL_HEIGHT: Final = 2.7
MAX_LABELS: Final = 12


def regularization_table(table: Rows) -> str:
    """Formats AUCs and mean weight norms of every method at every strength.

    Args:
      table: one row for each trial of each setting, with the columns ``method``, ``strength`` (NaN
        if it has none), ``trial``, ``train_auc``, ``valid_auc``, ``test_auc`` (0 to 1), and
        ``l0``, ``l1``, ``l2``, the mean weight norms. NaN does not count.

    Returns:
      Aligned text without a final line break: means over the trials, for AUCs with half the width
      of their 95 % confidence intervals. Methods are in the order of the rows, their strengths by
      falling test AUC. Marked are the best test AUC, and those that are not significantly worse:
      one-sided p above 0.3 (:func:`better_pvalue`).

    Raises:
      DataError: if there are no rows, or a column is missing.
    """
    groups = settings(to_table(table, ("method", "trial"), ("strength", *AUCS, *NORMS)))
    signs = marks_of(groups)
    lines: list[tuple[str, ...]] = [(*HEADER[:4], f"{HEADER[4]}  ", *HEADER[5:])]
    for rows, mark in zip(groups, signs, strict=True):
        aucs = [interval_text(*mean_interval(rows[name]), digits=3) for name in AUCS]
        norms = [interval_text(mean_interval(rows[name])[0], None, digits=3) for name in NORMS]
        strength = marks.short_number(rows["strength"].iloc[0])
        lines.append(
            (str(rows["method"].iloc[0]), strength, *aucs[:2], f"{aucs[2]} {mark}", *norms)
        )
    text = aligned(lines)
    notes = []
    if "+-" in text:
        notes.append("+- 95 % confidence interval of the mean over trials")
    if BEST in signs:
        notes.append(f"{BEST} best test AUC")
    if AS_GOOD in signs:
        notes.append(f"{AS_GOOD} not significantly worse (one-sided t test, p > {NOT_WORSE})")
    return f"{text}\n{'; '.join(notes)}" if notes else text


def plot_regularization(table: Rows) -> Figure:
    """Draws test AUC against strength, one panel per method, with logistic regression as a band.

    Args:
      table: as for :func:`regularization_table`; rows of ``LR`` or ``logistic regression`` are the
        band. The norms are not needed.

    Returns:
      The figure, 1200 pixels wide: means over the trials and 95 % confidence intervals. Strengths
      are equally spaced. All panels share the axis of the AUC, which ends at 1 at most; intervals
      are clipped there.

    Raises:
      DataError: if there are no rows, or a column is missing.
    """
    rows = to_table(table, ("method", "trial"), ("strength", "test_auc"))
    baseline = rows["method"].astype(str).str.lower().isin(BASELINE)
    styles = marks.looks(rows.loc[~baseline, "method"]) or {"": marks.Look(style.GREY, "")}
    most = rows[~baseline].groupby("method")["strength"].nunique().max()
    across = min(len(styles), 2 if most > FEW else ACROSS)
    figure, panels = marks.panels(styles, across, PANEL_HEIGHT, 0.3 * baseline.any(), sharey=True)
    for name, axes, outer in panels:
        marks.draw_band(axes, rows.loc[baseline, "test_auc"], "logistic regression")
        _draw_panel(axes, rows[~baseline & (rows["method"] == name)], styles[name])
        style.finish(axes, name, "strength", "test AUC" if outer else "")
        axes.tick_params(labelleft=outer)
    first = figure.axes[0]
    # Intervals of few trials may extend beyond 1.
    first.set_ylim(top=min(first.get_ylim()[1], 1.0))
    if baseline.any():
        band = [part[:1] for part in first.get_legend_handles_labels()]
        figure.legend(*band, loc="outside lower center", fontsize=8, frameon=False)
    return figure


def settings(rows: pd.DataFrame) -> list[pd.DataFrame]:
    """Groups rows by method, in the order of the rows, and strength, best first."""
    ordered = []
    for _, rows_of_method in rows.groupby("method", sort=False):
        groups = [group for _, group in rows_of_method.groupby("strength", dropna=False)]
        ordered += sorted(groups, key=_mean_auc, reverse=True)
    return ordered


def _mean_auc(rows: pd.DataFrame) -> float:
    """The mean test AUC of a setting; minus infinity if there is none."""
    return float(np.nan_to_num(mean_interval(rows["test_auc"])[0], nan=-np.inf))


def marks_of(groups: Sequence[pd.DataFrame]) -> list[str]:
    """:data:`BEST`, :data:`AS_GOOD` or :data:`WORSE` for each setting, by test AUC."""
    best = max(groups, key=_mean_auc)
    if not np.isfinite(_mean_auc(best)):
        return [WORSE] * len(groups)
    good = {True: AS_GOOD, False: WORSE}
    marks = [good[better_pvalue(best, other) > NOT_WORSE] for other in groups]
    return [BEST if other is best else mark for other, mark in zip(groups, marks, strict=True)]


def better_pvalue(best: pd.DataFrame, other: pd.DataFrame) -> float:
    """p of the hypothesis that the test AUC of one setting is no better than that of another.

    A paired t test if both have the same trials, which share their splits of the data, otherwise
    Welch's t test.

    Args:
      best, other: rows with ``trial`` and ``test_auc``; values that are not finite do not count.

    Returns:
      p in [0, 1], one-sided; NaN if either has fewer than two values.
    """
    a, b = (
        rows[np.isfinite(rows["test_auc"])].set_index("trial")["test_auc"].sort_index()
        for rows in (best, other)
    )
    if min(a.size, b.size) < 2:
        return float("nan")
    paired = a.index.is_unique and a.index.equals(b.index)
    spread = np.ptp(a.to_numpy() - b.to_numpy()) if paired else np.ptp(a) + np.ptp(b)
    if spread < 1e-12:  # nothing varies, so t has no value
        return 0.0 if a.mean() - b.mean() > 1e-12 else 1.0
    if paired:
        return float(stats.ttest_rel(a, b, alternative="greater").pvalue)
    return float(stats.ttest_ind(a, b, equal_var=False, alternative="greater").pvalue)


def _draw_panel(axes: Axes, rows: pd.DataFrame, look: marks.Look) -> None:
    points = means_by(rows, "strength", "test_auc")
    places = np.arange(len(points.places), dtype=np.float64)
    marks.draw_line(axes, points._replace(places=places), look)
    # Marks at an AUC of 1 are not clipped; bars are.
    for container in axes.containers:
        if isinstance(container, ErrorbarContainer):
            container.lines[0].set_clip_on(False)
    step = max(math.ceil(len(places) / MAX_LABELS), 1)
    axes.set_xticks(places[::step], [marks.short_number(value) for value in points.places[::step]])
    axes.set_xlim(-0.5, max(len(places), 1) - 0.5)
