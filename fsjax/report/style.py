"""Shared parts of the figures: colours, sizes, pixel grids, wording, and saving.

Examples:
  >>> from fsjax.report import style, wording
  >>> names = [style.literal(name) for name in wording.shorten_all(["price in $", "weight"])]
  >>> figure = style.new_figure(2.0, title=wording.shorten("a title that may be long"))
  >>> first, second = figure.subplots(1, 2)
  >>> style.draw_bars(first, np.array([0.9, 0.4]), names, "#0072B2", wording.count(10, "seed"))
  >>> style.circle(second, [1.0], [2.0], 100, 1.5, label=None)
  >>> second.xaxis.set_major_formatter(style.plain_number)
  >>> style.finish(second, "a point", "x", "y")
"""

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colorbar import Colorbar
from matplotlib.figure import Figure, FigureBase
from matplotlib.layout_engine import ConstrainedLayoutEngine

from fsjax.engine.result import FitResult
from fsjax.errors import DataError, printable
from fsjax.report.wording import NAME_LENGTH as NAME_LENGTH
from fsjax.report.wording import count, plural, shorten
from fsjax.storage.atomic_files import atomic_open

#: Colours of Okabe and Ito's palette, which can be distinguished with any colour vision.
BLUE: Final = "#0072B2"
ORANGE: Final = "#D55E00"
GREEN: Final = "#009E73"
PURPLE: Final = "#CC79A7"
GREY: Final = "#5F5F5F"

#: Width of the figures in inches.
WIDTH: Final = 8.0

#: Colour map: dark is large, and even the lightest colour differs from the greys of a background.
COLORS: Final = "viridis_r"

#: Pixels per inch: the figures are 1200 pixels wide.
DPI: Final = 150

#: Figures with fewer bars have room for this many.
MIN_BARS: Final = 6

#: A grid with a larger ratio of its sides fills its axes with pixels that are not square.
MAX_ELONGATION: Final = 4


class Picture(Figure):
    """A figure that notebooks display, whether or not pyplot is in use."""

    def _repr_png_(self) -> bytes:
        buffer = io.BytesIO()
        self.savefig(buffer, format="png")
        return buffer.getvalue()


def new_figure(
    height: float,
    layout: Literal["constrained", "compressed"] = "constrained",
    title: str | None = None,
    width: float = WIDTH,
) -> Figure:
    """An empty figure, ``width`` by ``height`` inches, drawn without a display."""
    engine = ConstrainedLayoutEngine(w_pad=0.08, h_pad=0.08, compress=layout == "compressed")
    figure = Picture(figsize=(width, height), dpi=DPI, layout=engine, facecolor="white")
    FigureCanvasAgg(figure)
    if title is not None:
        figure.suptitle(literal(title), fontsize=10)
    return figure


def save_figure(figure: Figure, path: str | Path) -> None:
    """Writes a figure atomically, in the format of the suffix (``.png``, ``.pdf``, ``.svg``).

    Raises:
      OSError: if the folder cannot be written.
      ValueError: if the suffix is not a format that Matplotlib writes.
    """
    with atomic_open(path) as file:
        suffix = Path(path).suffix.lstrip(".") or "png"
        # Without a date, an SVG has the same bytes in every run.
        figure.savefig(file, format=suffix, metadata={"Date": None} if suffix == "svg" else None)


def centred(figure: FigureBase, widths: Sequence[float], room: float) -> list[Axes]:
    """Axes of the given widths side by side, centred in ``room``, all in inches.

    The figure or subfigure needs a constrained layout.
    """
    side = max(room - sum(widths), 0.0) / 2
    if not side:
        return list(figure.subplots(1, len(widths), squeeze=False)[0])
    cells = figure.add_gridspec(1, len(widths) + 2, width_ratios=[side, *widths, side])
    return [figure.add_subplot(cells[number]) for number in range(1, len(widths) + 1)]


def finish(
    axes: Axes, title: str = "", xlabel: str = "", ylabel: str = "", size: int = 8, **grid: Any
) -> None:
    """Sets labels, grid and frame."""
    axes.set_title(literal(shorten(title)), fontsize=9)
    axes.set_xlabel(xlabel, fontsize=size)
    axes.set_ylabel(ylabel, fontsize=size)
    axes.tick_params(labelsize=size - 1)
    axes.grid(**{"alpha": 0.25, "linewidth": 0.5, **grid})
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def draw_bars(
    axes: Axes, lengths: np.ndarray, names: Sequence[str], color: Any, about: str
) -> None:
    """Draws horizontal bars from the top.

    Args:
      axes: where to draw.
      lengths: ``(n,)`` in [0, 1].
      names: n names, escaped by :func:`literal`.
      color: one colour, or n.
      about: what the lengths are shares of.
    """
    places = np.arange(len(lengths))
    axes.barh(places, lengths, height=0.78, color=color)
    axes.set_yticks(places, names)
    axes.set_ylim(max(len(places), MIN_BARS) - 0.4, -0.6)
    axes.set_xlim(0.0, 1.0)
    finish(axes, "", f"share of {about}", size=9, axis="x", alpha=0.3)


def circle(axes: Axes, x: Any, y: Any, size: float, width: float, label: str | None) -> None:
    """Draws black circles around points, above everything else."""
    axes.scatter(
        x, y, s=size, linewidths=width, label=label, facecolors="none", edgecolors="black", zorder=3
    )


def to_grid(
    values: np.ndarray, image_shape: tuple[int, ...], image_order: Literal["C", "F"] = "C"
) -> np.ndarray:
    """Puts values ``(D,)`` on the pixel grid ``(H, W, C)``, with C = 1 where there are no channels.

    The shape is ``(H, W)`` or ``(H, W, C)``, of D entries; the order is ``'C'`` or ``'F'``, as in
    ``numpy.reshape``.
    """
    grid = np.asarray(values).reshape(image_shape, order=image_order)
    return grid.reshape(*image_shape[:2], -1)


def aspect_of(height: int, width: int) -> Literal["equal", "auto"]:
    """Matplotlib's aspect for a pixel grid: square pixels unless the grid is too elongated."""
    square = max(height, width) <= MAX_ELONGATION * min(height, width)
    return "equal" if square else "auto"


def colorbar(figure: FigureBase, shown: Any, axes: Any, label: str, **options: Any) -> Colorbar:
    """Adds a colour bar with a label."""
    bar = figure.colorbar(shown, ax=axes, **options)
    bar.set_label(label, fontsize=9)
    bar.ax.tick_params(labelsize=8)
    return bar


def plain_number(value: float, _: float | None = None) -> str:
    """Formats a tick of an axis without a common exponent."""
    return f"{value:g}"


def cap_percent(axes: Axes) -> None:
    """Limits a vertical axis of percentages to slightly above 100."""
    low, high = axes.get_ylim()
    axes.set_ylim(low, min(high, 100.0 + 0.03 * (high - low)))


def title_of(result: FitResult) -> str:
    """One line: method, data set, K, task and number of runs."""
    return (
        f"{shorten(result.method.name)} on {shorten(result.dataset)}, K = {result.num_features}, "
        f"{result.task}, {count(len(result.seeds), result.runs)}"
    )


def all_runs(result: FitResult) -> str:
    """The runs of a result on an axis: ``seeds``, ``halves of the rows``."""
    return "halves of the rows" if result.runs == "half" else plural(result.runs)


def axis_names(
    result: FitResult, names: Sequence[str] | None, chosen: Sequence[int] | np.ndarray
) -> list[str]:
    """Names of the chosen columns for an axis: from ``names``, the result's, or ``x0``, ``x1``, ...

    Raises:
      DataError: if the number of names is not that of the columns (or groups).
    """
    columns = result.scores.shape[1]
    if names is not None and len(names) != columns:
        raise DataError(f"feature_names has {len(names)} entries; give {columns}, one per column")
    names = result.unit_names if names is None else names
    shown = [f"x{column}" if names is None else names[column] for column in chosen]
    return [literal(shorten(name)) for name in shown]


def literal(text: str) -> str:
    """Escapes text for Matplotlib, to which a pair of dollar signs would be a formula.

    Control characters are replaced: no font has them, and the warning would print them.
    """
    return printable(text).replace("$", r"\$")
