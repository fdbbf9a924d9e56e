"""Checks of figures that replace a look at them."""

from itertools import combinations

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
