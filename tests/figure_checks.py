"""Checks of figures that replace a look at them."""

from itertools import combinations

import numpy as np
from matplotlib.figure import Figure
from matplotlib.text import Text


def visible_texts(figure: Figure) -> list[Text]:
    """The texts that are drawn: tick labels outside the limits of their axis are not."""
    figure.canvas.draw()
    texts = [
        text for part in (figure, *figure.subfigs) for text in (part._suptitle, part._supxlabel)
    ]
    for axes in figure.axes:
        texts += [axes.title, axes.xaxis.label, axes.yaxis.label]
        for axis in (axes.xaxis, axes.yaxis):
            low, high = sorted(axis.get_view_interval())
            for tick in axis.get_major_ticks():
                if low - 1e-9 <= tick.get_loc() <= high + 1e-9:
                    texts += [tick.label1, tick.label2]
    return [text for text in texts if text and text.get_visible() and text.get_text().strip()]


def assert_readable(figure: Figure) -> None:
    """Every text lies inside the figure and on no other one, and the figure is 1200 pixels wide."""
    texts = visible_texts(figure)
    boxes = [text.get_window_extent() for text in texts]
    width, height = figure.canvas.get_width_height()
    assert width == 1200
    for text, box in zip(texts, boxes, strict=True):
        inside = box.x0 >= 0 and box.y0 >= 0 and box.x1 <= width and box.y1 <= height
        assert inside, f"{text.get_text()!r} is cut off: {box}"
    for (one, a), (other, b) in combinations(zip(texts, boxes, strict=True), 2):
        overlap = min(a.x1, b.x1) - max(a.x0, b.x0) > 1 and min(a.y1, b.y1) - max(a.y0, b.y0) > 1
        assert not overlap, f"{one.get_text()!r} overlaps {other.get_text()!r}"


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
