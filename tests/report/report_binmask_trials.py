"""Made-up trials, and checks of figures beyond the shared ones, for the reports of BinMask."""

from itertools import combinations

import numpy as np
import pandas as pd
from report_figure_checks import assert_readable

SIX = ("BinMask", "Fisher score", "STG", "LassoNet", "IP-CAE", "random selection")


def selection_rows(datasets=("isolet",), methods=("BinMask", "Fisher score"), trials=8, sizes=5):
    """Accuracies of methods by number of features, with BinMask's strengths and all features."""
    rng = np.random.default_rng(0)
    rows = []
    for dataset in datasets:
        most = int(rng.integers(40, 300))
        for trial in range(trials):
            rows.append((dataset, "all features", trial, 617, 96.5 + 0.3 * rng.normal(), np.nan))
            for number, method in enumerate(methods):
                for part in range(sizes):
                    size = most - part * (most // 5)
                    level = 97.0 - 1.3 * number - 12.0 * np.exp(-3.0 * size / most)
                    strength = 1e-3 * (1 + part) ** 1.5 * (1 + 0.1 * rng.normal())
                    found = strength if method == "BinMask" else np.nan
                    rows.append((dataset, method, trial, size, level + 0.6 * rng.normal(), found))
    names = ["dataset", "method", "trial", "num_features", "accuracy", "strength"]
    return pd.DataFrame(rows, columns=names)


def assert_apart(boxes, figure):
    """The boxes lie inside the figure and on no other one."""
    width, height = figure.canvas.get_width_height()
    for box in boxes:
        assert box.x0 >= 0 and box.y0 >= 0 and box.x1 <= width and box.y1 <= height
    for a, b in combinations(boxes, 2):
        across = min(a.x1, b.x1) - max(a.x0, b.x0)
        assert across <= 1 or min(a.y1, b.y1) - max(a.y0, b.y0) <= 1


def assert_all_readable(figure):
    """Also legends, texts among the marks and top axes, which the shared check leaves out."""
    assert_readable(figure)
    legends = [axes.get_legend() for axes in figure.axes if axes.get_legend()] + figure.legends
    outside = [legend for legend in legends if legend.axes is None or legend._bbox_to_anchor]
    boxes = [legend.get_window_extent() for legend in outside]
    for axes in figure.axes:
        boxes += [text.get_window_extent() for text in axes.texts]
        boxes += [text.get_window_extent() for text in (axes.title, axes.xaxis.label) if text]
        boxes += [t.get_window_extent() for t in axes.get_xticklabels() if t.get_text()]
        for top in axes.child_axes:
            boxes += [t.get_window_extent() for t in (*top.get_xticklabels(), top.xaxis.label)]
    assert_apart([box for box in boxes if box.width and box.height], figure)


def legend_texts(axes_or_figure):
    legend = getattr(axes_or_figure, "legends", None) or [axes_or_figure.get_legend()]
    return [text.get_text() for text in legend[0].get_texts()]


def bars_of(axes):
    """Half lengths of the bars of each line."""
    collections = [container[2][0] for container in axes.containers if container.has_yerr]
    return [[np.ptp(path[:, 1]) / 2 for path in bars.get_segments()] for bars in collections]
