"""Selected columns: on the pixel grid for images, as ranked bars otherwise.

For networks with masks, a second picture below shows the connections of their inputs.
"""

from collections.abc import Sequence
from typing import Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure, FigureBase, SubFigure
from matplotlib.ticker import MaxNLocator

from fsjax.engine.result import FitResult
from fsjax.errors import DataError
from fsjax.report import style
from fsjax.report.connections import connections_height, plot_connections

#: Most bars in a figure.
MAX_BARS = 40

#: Inches: width of a pixel map alone and above the connections, room below it and at its sides.
MAP_ALONE = 5.6
MAP_ABOVE = 4.2
MAP_LABELS = 1.2
MAP_SIDES = 1.8

#: Largest side in pixels of a grid on which single pixels are outlined.
MAX_OUTLINED = 64


def plot_selection(
    result: FitResult,
    image_shape: tuple[int, ...] | None = None,
    image_order: Literal["C", "F"] = "C",
    feature_names: Sequence[str] | None = None,
    background: np.ndarray | None = None,
) -> Figure:
    """Shows which columns the seeds selected and, below, the connections of the inputs.

    Args:
      result: what ``fsjax.fit`` returned, for D columns; the second picture needs its
        ``input_connections``.
      image_shape: ``(H, W)`` or ``(H, W, C)`` if a row is an image; the share of the seeds is then
        shown on the pixel grid, summed over the channels.
      image_order: ``'C'`` if rows hold pixels line by line, ``'F'`` column by column.
      feature_names: D names for the bars; by default the result's own, or ``x0``, ``x1``, ...
      background: ``(D,)`` values that are shown in grey behind the pixels, such as the mean image.

    Returns:
      The figure, 1200 pixels wide.

    Raises:
      DataError: if the image, the names or the background do not have D columns.
    """
    columns = result.scores.shape[1]
    if image_shape is not None and (
        int(np.prod(image_shape)) != columns or len(image_shape) not in (2, 3)
    ):
        raise DataError(
            f"image_shape={image_shape} does not fit {columns} columns; "
            f"give (H, W) or (H, W, C) whose product is {columns}"
        )
    if background is not None and len(background) != columns:
        raise DataError(f"background has {len(background)} entries; give {columns}, one per column")
    names = style.axis_names(result, feature_names, most_selected(result))
    extra = connections_height(result, image_shape)
    if image_shape is None:
        height = 1.6 + 0.19 * max(len(names), 6)
    else:
        width = MAP_ABOVE if extra else MAP_ALONE
        height = float(np.clip(width * image_shape[0] / image_shape[1] + MAP_LABELS, 2.8, 8.0))
    # In a subfigure, a compressed layout would cut off what is beside a map.
    layout: Literal["constrained", "compressed"] = (
        "constrained" if image_shape is None or extra else "compressed"
    )
    figure = style.new_figure(height + extra, layout, style.title_of(result))
    upper: FigureBase = figure
    if extra:
        upper, lower = figure.subfigures(2, 1, squeeze=False, height_ratios=(height, extra))[:, 0]
        plot_connections(lower, result, image_shape, image_order)
    if image_shape is None:
        _draw_bars(upper, result, names)
    else:
        _draw_image(upper, result, image_shape, image_order, background)
    return figure


def most_selected(result: FitResult, limit: int = MAX_BARS) -> np.ndarray:
    """The most often selected columns, at most ``limit``; ties by larger mean score."""
    frequency = result.selection_frequency
    order = np.lexsort((-np.mean(result.scores, axis=0), -frequency))
    return order[: min(limit, np.count_nonzero(frequency))]


def set_notes(
    figure: FigureBase, result: FitResult, bars: int | None = None, more: str = ""
) -> None:
    """Writes below a figure how many columns were selected by any seed and by every seed.

    If there are fewer bars than selected columns, their number follows, and then ``more``.
    """
    frequency, run = result.selection_frequency, result.runs
    ever, always = np.count_nonzero(frequency), np.count_nonzero(np.isclose(frequency, 1.0))
    text = f"{ever} of {style.count(len(frequency), result.unit)} selected"
    if len(result.seeds) > 1:
        text += f" by at least one {run}, {always} by every {run}"
    if bars is not None and bars < ever:
        text += f"; the first {bars} are shown"
    figure.supxlabel(text + more, fontsize=8, color=style.GREY)


def _draw_image(
    figure: FigureBase,
    result: FitResult,
    image_shape: tuple[int, ...],
    image_order: Literal["C", "F"],
    background: np.ndarray | None,
) -> None:
    share = style.to_grid(result.selection_frequency, image_shape, image_order).sum(axis=-1)
    height, width = share.shape
    aspect = style.aspect_of(height, width)
    if isinstance(figure, SubFigure):
        room = style.WIDTH - MAP_SIDES
        inches = (figure.bbox.height / style.DPI - MAP_LABELS) * width / height
        (axes,) = style.centred(figure, [inches if aspect == "equal" else room], room)
    else:
        axes = figure.add_subplot()
    more = ""
    if background is not None:
        grey = style.to_grid(background, image_shape, image_order).mean(axis=-1)
        low, high = float(np.nanmin(grey)), float(np.nanmax(grey))
        spread = high - low or 1.0
        # Light greys only, so that the selected pixels stand out.
        norm = Normalize(low - 0.1 * spread, low + 2.4 * spread)
        axes.imshow(grey, cmap="Greys", norm=norm, aspect=aspect)
        more = "; grey: background values, dark for large ones"
    else:
        axes.set_facecolor("#EFEFEF")
    norm = Normalize(0.0, max(1.0, float(share.max())))
    shown = axes.imshow(np.ma.masked_equal(share, 0.0), cmap=style.COLORS, norm=norm, aspect=aspect)
    label = f"share of {style.all_runs(result)}"
    if len(image_shape) == 3 and image_shape[2] > 1:
        label += f", summed over {image_shape[2]} channels"
    style.colorbar(figure, shown, axes, label, pad=0.02, aspect=30)
    _outline_pixels(axes, height, width)
    set_notes(figure, result, more=more)


def _outline_pixels(axes: Axes, height: int, width: int) -> None:
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MaxNLocator(8, integer=True, min_n_ticks=1))
    axes.tick_params(labelsize=8)
    axes.set_xlabel("pixel column", fontsize=9)
    axes.set_ylabel("pixel row", fontsize=9)
    if max(height, width) > MAX_OUTLINED:
        return
    axes.set_xticks(np.arange(width + 1) - 0.5, minor=True)
    axes.set_yticks(np.arange(height + 1) - 0.5, minor=True)
    axes.grid(which="minor", color="white", linewidth=0.6)
    axes.tick_params(which="minor", length=0)


def _draw_bars(figure: FigureBase, result: FitResult, names: Sequence[str]) -> None:
    columns = most_selected(result)
    scores = np.mean(result.scores, axis=0)[columns]
    finite = scores[np.isfinite(scores)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
    # Widened where all scores are equal.
    norm = Normalize(low, high if high > low else low + (abs(low) or 1.0))
    shown = ScalarMappable(norm, style.COLORS)
    axes, shares = figure.add_subplot(), result.selection_frequency[columns]
    style.draw_bars(axes, shares, names, shown.to_rgba(scores), style.all_runs(result))
    style.colorbar(figure, shown, axes, "mean score", pad=0.02, aspect=30, format="%g")
    set_notes(figure, result, len(columns))
