"""Checks of figures that replace a look at them."""

from itertools import combinations

from matplotlib.figure import Figure


def assert_readable(figure: Figure) -> None:
    """Titles, labels and legends lie inside the figure, which is 1200 pixels wide, and apart."""
    figure.canvas.draw()
    texts = [part for one in (figure, *figure.subfigs) for part in (one._suptitle, one._supxlabel)]
    for axes in figure.axes:
        texts += [axes.title, axes.xaxis.label, axes.yaxis.label]
        for axis in (axes.xaxis, axes.yaxis):
            # Tick labels outside the limits of their axis are not drawn.
            low, high = sorted(axis.get_view_interval())
            for tick in axis.get_major_ticks():
                if low - 1e-9 <= tick.get_loc() <= high + 1e-9:
                    texts += [tick.label1, tick.label2]
    texts = [text for text in texts if text and text.get_visible() and text.get_text().strip()]
    boxes = [part.get_window_extent() for part in [*texts, *figure.legends]]
    width, height = figure.canvas.get_width_height()
    assert width == 1200
    for box in boxes:
        assert box.x0 >= 0 and box.y0 >= 0 and box.x1 <= width and box.y1 <= height
    for a, b in combinations(boxes, 2):
        across = min(a.x1, b.x1) - max(a.x0, b.x0)
        assert across <= 1 or min(a.y1, b.y1) - max(a.y0, b.y0) <= 1


def legend_texts(axes_or_figure):
    legend = getattr(axes_or_figure, "legends", None) or [axes_or_figure.get_legend()]
    return [text.get_text() for text in legend[0].get_texts()]
