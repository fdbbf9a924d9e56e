"""Connections of the inputs of a rewiring network: WAST's Figure 6, or a profile for other data."""

from typing import Final, Literal

import numpy as np
from matplotlib import colormaps
from matplotlib.colors import Normalize
from matplotlib.figure import FigureBase
from matplotlib.ticker import FixedLocator, MaxNLocator, NullLocator

from fsjax.engine.result import FitResult
from fsjax.report import style

#: Most epochs that are shown: the first, the last and some in between.
MAX_EPOCHS: Final = 5

#: Inches of a map: its largest height, and the smallest width, which its title needs.
MAX_MAP_HEIGHT: Final = 2.4
MIN_MAP_WIDTH: Final = 1.15

#: Inches around a row of maps: at the sides, and for titles and the colour bar.
MAPS_SIDES: Final = 0.4
MAPS_TITLES: Final = 1.15

PROFILE_HEIGHT: Final = 3.0

#: With more input neurons than this the axis is logarithmic, which keeps the first ranks apart.
MAX_LINEAR: Final = 100


def connections_height(result: FitResult, image_shape: tuple[int, ...] | None) -> float:
    """Height in inches that :func:`plot_connections` needs; 0 if nothing was counted."""
    if not result.connection_epochs or result.input_connections is None:
        return 0.0
    if image_shape is None:
        return PROFILE_HEIGHT
    height, _ = map_size(len(shown_epochs(result.connection_epochs)), image_shape)
    return height + MAPS_TITLES


def plot_connections(
    figure: FigureBase,
    result: FitResult,
    image_shape: tuple[int, ...] | None = None,
    image_order: Literal["C", "F"] = "C",
) -> None:
    """Draws the number of connections of each input neuron at the counted epochs.

    For images, one pixel map per epoch: the mean over the seeds, summed over the channels (WAST,
    Figure 6). Otherwise one line per epoch: the numbers of each seed in decreasing order, averaged
    over the seeds.

    Args:
      figure: an empty figure or subfigure.
      result: with ``input_connections`` ``(S, T, D)``.
      image_shape, image_order: as for :func:`fsjax.report.plot_selection`.
    """
    shown = shown_epochs(result.connection_epochs)
    epochs = [result.connection_epochs[index] for index in shown]
    titles = [f"after epoch {epoch}" if epoch else "before training" for epoch in epochs]
    counts = np.asarray(result.input_connections, np.float64)[:, shown]
    over = ", mean over seeds" if len(counts) > 1 else ""
    if image_shape is None:
        profiles = np.sort(counts, axis=2)[:, :, ::-1].mean(axis=0)
        _draw_profiles(figure, profiles, titles, f"connections{over}")
    else:
        means = counts.mean(axis=0)
        grids = [style.to_grid(mean, image_shape, image_order).sum(axis=-1) for mean in means]
        channels = image_shape[2] if len(image_shape) == 3 else 1
        what = "input neuron" if channels == 1 else f"pixel, summed over {channels} channels"
        _draw_maps(figure, grids, titles, f"connections of each {what}{over}")


def shown_epochs(epochs: tuple[int, ...]) -> list[int]:
    """Positions of at most :data:`MAX_EPOCHS` epochs, with the first and the last one."""
    places = np.linspace(0, len(epochs) - 1, min(len(epochs), MAX_EPOCHS))
    return [int(place) for place in places.round()]


def map_size(number: int, image_shape: tuple[int, ...]) -> tuple[float, float]:
    """Height and width in inches of each of several maps that share the width of a figure."""
    ratio = image_shape[0] / image_shape[1]
    width = (style.WIDTH - MAPS_SIDES) / number
    if style.aspect_of(*image_shape[:2]) == "auto":
        return min(1.5, width), width
    height = min(width * ratio, MAX_MAP_HEIGHT)
    return height, min(max(height / ratio, MIN_MAP_WIDTH), width)


def _draw_maps(figure: FigureBase, grids: list[np.ndarray], titles: list[str], label: str) -> None:
    _, width = map_size(len(grids), grids[0].shape)
    panels = style.centred(figure, [width] * len(grids), style.WIDTH - MAPS_SIDES)
    norm = Normalize(0.0, max(1.0, max(float(grid.max()) for grid in grids)))
    for axes, grid, title in zip(panels, grids, titles, strict=True):
        shown = axes.imshow(
            grid,
            cmap=style.COLORS,
            norm=norm,
            aspect=style.aspect_of(*grid.shape),
            interpolation="nearest",
        )
        axes.set_title(title, fontsize=9)
        axes.xaxis.set_major_locator(NullLocator())
        axes.yaxis.set_major_locator(NullLocator())
    bar = style.colorbar(figure, shown, panels, label, location="bottom", pad=0.05, aspect=50)
    bar.ax.xaxis.set_major_locator(MaxNLocator(8, integer=True))


def _draw_profiles(figure: FigureBase, profiles: np.ndarray, titles: list[str], label: str) -> None:
    axes = figure.subplots()
    ranks = np.arange(1, profiles.shape[1] + 1)
    # Light to dark in the order of the epochs, without the lightest colours.
    colors = colormaps[style.COLORS](np.linspace(0.15, 1.0, len(profiles)))
    for profile, title, color in zip(profiles, titles, colors, strict=True):
        axes.plot(ranks, profile, label=title, color=color, linewidth=1.5)
    axes.margins(x=0.01)
    if len(ranks) > MAX_LINEAR:
        axes.set_xscale("log")
        ticks = [m * 10**e for e in range(len(str(len(ranks)))) for m in (1, 2, 5)]
        axes.xaxis.set_major_locator(FixedLocator([tick for tick in ticks if tick <= len(ranks)]))
        axes.xaxis.set_major_formatter(style.plain_number)
        axes.xaxis.set_minor_locator(NullLocator())
    axes.set_ylim(bottom=0.0)
    axes.yaxis.set_major_locator(MaxNLocator(6, integer=True))
    style.finish(axes, "", "rank of the input neuron", label, size=9, alpha=0.3)
    axes.legend(fontsize=8, frameon=False, loc="upper right")
